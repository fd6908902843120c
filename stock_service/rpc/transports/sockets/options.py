"""What a server on sockets can be told beyond what every server can."""

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

from stock_service.rpc.option_types import seconds

Dispatch = Literal["request", "connection"]
"""What one task of the executor is: a request, or a connection for as long as it lasts."""

DISPATCHES = get_args(Dispatch)


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The sockets transport's own options."""

    read_s: float = 10.0
    """A request that has begun to arrive must be whole, and a reply be taken, within this."""
    dispatch: Dispatch = "request"
    """What one task of the executor is."""


_DEFAULTS = SocketOptions()


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--read-s`` and ``--dispatch``."""
    help_text = "time for a request to be whole, and for a reply to be taken"
    parser.add_argument("--read-s", type=seconds(0.05, 3600), default=_DEFAULTS.read_s, help=help_text)
    help_text = "what one task of the executor is"
    parser.add_argument("--dispatch", choices=DISPATCHES, default=_DEFAULTS.dispatch, help=help_text)


def own_options(options: argparse.Namespace) -> SocketOptions:
    """What was given."""
    return SocketOptions(options.read_s, options.dispatch)
