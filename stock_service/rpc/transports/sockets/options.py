"""Options that only the sockets server has."""

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

from stock_service.rpc.errors import UsageError
from stock_service.rpc.server_core.options import ReadOptions, add_read_options, read_options

Dispatch = Literal["request", "connection"]
"""What one task of the executor is: a request, or a connection for as long as it lasts."""

DISPATCHES = get_args(Dispatch)


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The sockets transport's own options."""

    read_timeout_s: float = 10.0
    """A request that has begun to arrive must be whole, and a reply be taken, within this."""
    delay_target_ms: float = ReadOptions().delay_target_ms
    """With request dispatch, what waits longer in a queue that stands is refused. 0: nothing is."""
    buffered_bytes_max: int = ReadOptions().buffered_bytes_max
    """With request dispatch, bytes not answered yet and replies not taken, of all connections together."""
    dispatch: Dispatch = "request"
    """What one task of the executor is."""

    @property
    def reading(self) -> ReadOptions:
        """What the server core is told of them."""
        return ReadOptions(self.read_timeout_s, self.delay_target_ms, self.buffered_bytes_max)


_DEFAULTS = SocketOptions()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those of every transport on the server core, and ``--dispatch``."""
    add_read_options(parser)
    help_text = "what one task of the executor is"
    parser.add_argument("--dispatch", choices=DISPATCHES, default=_DEFAULTS.dispatch, help=help_text)


def own_options(options: argparse.Namespace) -> SocketOptions:
    """The values given. Raises UsageError for an executor that connection dispatch cannot have."""
    if options.dispatch == "connection" and options.executor == "leader-followers":
        raise UsageError(
            "--executor", options.executor, "another one with --dispatch connection: each thread reads one connection"
        )
    read = read_options(options)
    return SocketOptions(read.read_timeout_s, read.delay_target_ms, read.buffered_bytes_max, options.dispatch)
