"""Transports: what carries a service's requests. One file or folder each, with its server and its client.

A transport knows a ``Service`` and nothing of stocks. What a module must offer is ``Transport`` below: all that is
special about it, so that nobody else names one. The table names the modules, and ``load`` imports the one that is asked
for, so that a socket server never loads gRPC.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.server_core.options import Address as Address
from stock_service.rpc.server_core.options import ServeOptions as ServeOptions
from stock_service.rpc.service import Service
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.wire.codec import Codec, NullAnswers


class Server(Protocol):
    """A server that is listening. Its threads are its own; the executor is its maker's."""

    @property
    def address(self) -> Address:
        """Where it listens, the port a real one."""

    def stop(self, grace_s: float) -> bool:
        """Accepts no more, closes idle connections, finishes what was accepted; blocks until that is done.

        Says whether all of it ended within ``grace_s``; what had not was abandoned. May be repeated. The executor still
        runs, and is to be stopped next.
        """


class Connection(Protocol):
    """A client's connection. One thread at a time may use it."""

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """The encoded response to an encoded request of the method ``/package.Service/Method``. Blocks; raises a Fault.

        After DeadlineExceeded or Unavailable the request's effect is unknown. The connection may be used again: it
        connects anew where it must, and never sends a request twice.
        """

    def close(self) -> None:
        """Frees the connection. May be repeated."""


class Transport(Protocol):
    """What a transport's module offers."""

    LABEL: str
    """Its name for people."""
    DEFAULT_PORT: int
    DEFAULT_EXECUTOR: str
    REFUSED_EXECUTORS: Mapping[str, str]
    """Executors that its server cannot have, each with the reason. Empty: it can have all."""
    TAKES_LISTENER: bool
    """Whether a server can go on with the port of the one before it: then ``serve`` keeps ``ServeOptions.listener``."""

    TLS_PROTOCOLS: Sequence[str]
    """What its server answers to in TLS (ALPN), none where it has no name there."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options that its server has beside those of every server, if any."""

    def own_options(self, options: argparse.Namespace) -> object:
        """What was given for them, as ``serve`` takes it in ``ServeOptions.own``; None where it has none."""

    def serve(self, service: Service, executor: Executor, options: ServeOptions) -> Server:
        """A server that listens when this returns, and keeps what the options say. Raises OSError where it cannot."""

    def connect(
        self, address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS
    ) -> Connection:
        """A connection that is made when this returns. Blocks for ``timeout_s`` at most.

        Raises Unavailable, or DeadlineExceeded where the server's host does not answer. With ``credentials`` also
        UsageError, for files that cannot be used, and Unauthenticated.
        """

    def codec(self, address: Address, token: str = "") -> Codec | None:
        """Codec of a new connection of the lean client.

        ``token`` is what it shows of itself; empty: nothing.

        None where the protocol's bytes cannot be spoken without its library: then a load is sent by that alone. Loads
        no library.
        """

    def null_answers(self, reply: bytes) -> Callable[[], NullAnswers] | None:
        """What a server that does nothing says on a new connection: ``reply`` to everything. None where no codec is."""


TRANSPORTS: dict[str, str] = {
    "grpc": "stock_service.rpc.transports.grpc_sync",
    "sockets": "stock_service.rpc.transports.sockets",
    "http1": "stock_service.rpc.transports.http1",
    "grpc_static": "stock_service.rpc.transports.grpc_static",
    "grpc_aio": "stock_service.rpc.transports.grpc_aio",
}
"""Every transport's module, by the name that ``--transport`` takes."""


def load(name: str) -> Transport:
    """The transport of that name in the table."""
    return cast(Transport, import_module(TRANSPORTS[name]))
