"""Where a server listens, and its limits: what every transport's server is given."""

import argparse
import ipaddress
import socket
from dataclasses import dataclass
from typing import Any

from stock_service.rpc.metrics import Metrics
from stock_service.rpc.option_types import integer, number, seconds
from stock_service.rpc.security import Access
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.tls import ServerTls
from stock_service.rpc.wire.framing import FRAME_BYTES_MAX

Address = tuple[str, int]
"""A host (a name, or an address without brackets) and a port, 0 to 65535."""


class Peer(tuple[str, int]):
    """The address of a client that may have shown a certificate."""

    certificate = ""
    """The certificate's common name, once it is verified; else empty."""


def certificate_of(peer: Address) -> str:
    """Whose certificate a connection's other end has shown; empty: none."""
    return peer.certificate if isinstance(peer, Peer) else ""


@dataclass(slots=True)
class PassedListener:
    """A listener that goes from one server's process to the next, and is closed by none of them before it ends."""

    socket: socket.socket
    passed_on: bool = False
    """Whether the next process has it, and with it all connections that wait. Then this one accepts no more."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where a server listens, and its limits. Each transport's module says how it keeps them."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    requests_max: int = 1032
    """Requests accepted and not answered yet, at most: the executor's workers and its queue."""
    connections_max: int = 4096
    """Connections at a time, at most."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    """Bytes of one request, at most."""
    idle_timeout_s: float = 300.0
    """A connection on which nothing happens for so long is closed."""
    connection_age_s: float = 0.0
    """A connection's age, give or take a tenth, at which the server has its client go on with another; 0: none."""
    connection_grace_s: float = 5.0
    """Time that calls under way then have to end."""
    pipeline_max: int = 64
    """Requests under way on one connection, at most; the server reads no more until one is answered."""
    timeline: Timeline | None = None
    """Where to note when each request was where; None: nowhere, which costs nothing."""
    metrics: Metrics | None = None
    """Where to count what the service does not see; None: nowhere, which costs nothing."""
    shares_port: bool = False
    """Whether other processes of the same server listen on the port too (SO_REUSEPORT)."""
    tls: ServerTls | None = None
    """What connections are encrypted with; None: they are not."""
    access: Access | None = None
    """Who may call what; None: whoever can connect may call everything."""
    listener: PassedListener | None = None
    """What to listen with; None: a listener of the server's own, on ``host`` and ``port``."""
    own: Any = None
    """What the transport's ``own_options`` gave; None: its defaults."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on. A name other than ``localhost`` may lead anywhere."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a transport on this core can be told beyond what every server can."""

    read_timeout_s: float = 10.0
    """A request that has begun to arrive must be whole, and a reply be taken, within this."""
    delay_target_ms: float = 20.0
    """What waits longer in a queue that stands is refused; see ``admission.py``. 0: nothing is."""
    buffered_bytes_max: int = 64 << 20
    """Bytes of requests that are not whole or not begun, and of replies not taken, of all connections together."""


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """``--read-timeout-s``, ``--delay-target-ms`` and ``--buffered-bytes-max``."""
    defaults = ReadOptions()
    help_text = "time for a request to be whole, and for a reply to be taken"
    parser.add_argument("--read-timeout-s", type=seconds(0.05, 3600), default=defaults.read_timeout_s, help=help_text)
    add_delay_target(parser)
    help_text = "bytes of requests not whole or not begun and of replies not taken, of all connections together"
    kind = integer(1 << 16, 1 << 40)
    parser.add_argument("--buffered-bytes-max", type=kind, default=defaults.buffered_bytes_max, help=help_text)


def add_delay_target(parser: argparse.ArgumentParser) -> None:
    """``--delay-target-ms``."""
    help_text = (
        "milliseconds after which a waiting request is refused while the server is overloaded, or a quarter of the "
        "time that its client waits, if that is more; 0: never"
    )
    default = ReadOptions().delay_target_ms
    parser.add_argument("--delay-target-ms", type=number(0, 60_000), default=default, help=help_text)


def read_options(options: argparse.Namespace) -> ReadOptions:
    """What was given."""
    return ReadOptions(options.read_timeout_s, options.delay_target_ms, options.buffered_bytes_max)
