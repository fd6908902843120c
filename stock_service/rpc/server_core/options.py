"""Options of every transport's server (address and limits), and options of the servers on the server core."""

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
    """Address (host and port) of a client that connects with TLS. The object also has the name in the client's
    certificate.
    """

    certificate = ""
    """Common name of the client's verified certificate; empty for a client without a certificate."""


def certificate_of(peer: Address) -> str:
    """Returns the common name of a client's verified certificate; empty for a client without a certificate."""
    return peer.certificate if isinstance(peer, Peer) else ""


@dataclass(slots=True)
class PassedListener:
    """A listening socket that a server's process hands over to the next process. Each process keeps the socket open
    until the process ends.
    """

    socket: socket.socket
    passed_on: bool = False
    """True if this process has handed over the socket to the next process. Then this process accepts no more
    connections.
    """


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Address and limits of a server. Each transport's module documents how the transport keeps the limits."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port to listen on; 0 for any free port."""
    requests_max: int = 1032
    """Largest number of accepted requests without a reply: the executor's workers plus its queue limit."""
    connections_max: int = 4096
    """Largest number of open connections."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    """Largest size of a request, in bytes."""
    idle_timeout_s: float = 300.0
    """Time in seconds. The server closes a connection on which nothing has happened for this time."""
    connection_age_s: float = 0.0
    """Age limit of a connection in seconds, varied at random by a tenth; 0 for no limit. At this age the server tells
    the client to connect again.
    """
    connection_grace_s: float = 5.0
    """Time in seconds for the calls of a connection to end after the age limit."""
    pipeline_max: int = 64
    """Largest number of requests under way on one connection. At this limit the server stops reading the connection."""
    timeline: Timeline | None = None
    """Timeline of the requests; None for a server without a timeline."""
    metrics: Metrics | None = None
    """Metrics of the transport (refusals, waits); None for a server without metrics."""
    shares_port: bool = False
    """True if other processes of the same server also listen on the port (SO_REUSEPORT)."""
    tls: ServerTls | None = None
    """TLS of the connections; None for connections without encryption."""
    access: Access | None = None
    """Access list: callers, and the rights of each caller; None if every client may call every method."""
    listener: PassedListener | None = None
    """Listening socket to use; None for a server that opens a socket on ``host`` and ``port``."""
    own: Any = None
    """Result of the transport's ``own_options``; None for the transport's defaults."""


def is_loopback(host: str) -> bool:
    """Returns True for ``localhost`` and for a loopback address, which only this machine can reach. Returns False for
    any other name.
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of the transports on the server core. Other transports may use some of these options."""

    read_timeout_s: float = 10.0
    """Limit of two times, in seconds: from a request's first byte to its last byte, and until the client takes a reply.
    """
    delay_target_ms: float = 20.0
    """Delay target in milliseconds (``admission.py``). The server refuses requests that wait longer in a standing
    queue; 0: no such refusal.
    """
    buffered_bytes_max: int = 64 << 20
    """Largest number of bytes that all connections together may hold. These are the bytes of unfinished requests, of
    requests that the server has not begun, and of replies that clients have not taken.
    """


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Adds ``--read-timeout-s``, ``--delay-target-ms`` and ``--buffered-bytes-max`` to a command line."""
    defaults = ReadOptions()
    help_text = "time for a request to be whole, and for a reply to be taken"
    parser.add_argument("--read-timeout-s", type=seconds(0.05, 3600), default=defaults.read_timeout_s, help=help_text)
    add_delay_target(parser)
    help_text = "bytes of requests not whole or not begun and of replies not taken, of all connections together"
    kind = integer(1 << 16, 1 << 40)
    parser.add_argument("--buffered-bytes-max", type=kind, default=defaults.buffered_bytes_max, help=help_text)


def add_delay_target(parser: argparse.ArgumentParser) -> None:
    """Adds ``--delay-target-ms`` to a command line."""
    help_text = (
        "milliseconds after which a waiting request is refused while the server is overloaded, or a quarter of the "
        "time that its client waits, if that is more; 0: never"
    )
    default = ReadOptions().delay_target_ms
    parser.add_argument("--delay-target-ms", type=number(0, 60_000), default=default, help=help_text)


def read_options(options: argparse.Namespace) -> ReadOptions:
    """Returns the parsed values of the options that ``add_read_options`` has added."""
    return ReadOptions(options.read_timeout_s, options.delay_target_ms, options.buffered_bytes_max)
