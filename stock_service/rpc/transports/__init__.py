"""Transports, which carry a service's requests. Each transport is a file or folder with a server and a client.

A transport uses a ``Service``, and nothing about stocks. A transport's module has the attributes of ``Transport``,
defined below, which tell every special property of the transport. So no other module names a transport. The table names
the modules, and ``load`` imports only the chosen module. So a socket server never imports gRPC.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.security import Metadata
from stock_service.rpc.server_core.options import Address as Address
from stock_service.rpc.server_core.options import ServeOptions as ServeOptions
from stock_service.rpc.service import Service
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.wire.codec import Codec, NullAnswers


class Server(Protocol):
    """A server that is listening. ``stop`` ends the server's own threads; the maker of the server stops the
    executor.
    """

    @property
    def address(self) -> Address:
        """Address on which the server listens, with the real port, never 0."""

    def stop(self, grace_s: float) -> bool:
        """Stops accepting, closes idle connections, and finishes accepted requests. Blocks until the stop is complete.

        Returns True if all requests ended within ``grace_s``; the other requests are abandoned. May be repeated. The
        executor still runs, and must be stopped next.
        """


class Connection(Protocol):
    """A client's connection. One thread at a time may use it."""

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """The encoded response to an encoded request of the method ``/package.Service/Method``. Blocks; raises a Fault.

        After DeadlineExceeded or Unavailable the request's effect is unknown. The object may be used again: it
        reconnects if necessary, and never sends a request twice.
        """

    def close(self) -> None:
        """Frees the connection. May be repeated."""


class Transport(Protocol):
    """The interface of a transport's module."""

    LABEL: str
    """The transport's name for people."""
    DEFAULT_PORT: int
    DEFAULT_EXECUTOR: str
    REFUSED_EXECUTORS: Mapping[str, str]
    """Executors that the transport's server cannot have, each with the reason. Empty if the server can have every
    executor.
    """
    TAKES_LISTENER: bool
    """True if a server can take over the listening socket of a previous server: ``serve`` then uses
    ``ServeOptions.listener``.
    """

    TLS_PROTOCOLS: Sequence[str]
    """Protocol names that the transport's server accepts in TLS (ALPN); empty for a transport without a name in ALPN.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options that only this transport's server has, if any."""

    def own_options(self, options: argparse.Namespace) -> object:
        """The values of the transport's own options, for ``ServeOptions.own``; None for a transport without own
        options.
        """

    def serve(self, service: Service, executor: Executor, options: ServeOptions) -> Server:
        """Starts a server, which listens when this returns. Raises OSError if it cannot listen."""

    def connect(
        self, address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS
    ) -> Connection:
        """Opens a connection. Blocks until the connection is made, for ``timeout_s`` at most.

        Raises Unavailable, or DeadlineExceeded where the server's host does not answer. With ``credentials`` also
        raises UsageError, for files that cannot be used, and Unauthenticated.
        """

    def codec(self, address: Address, token: str = "", metadata: Metadata = ()) -> Codec | None:
        """Codec of a new connection of the lean client.

        The connection shows ``token`` to the server, unless ``token`` is empty. The connection sends ``metadata`` with
        every request; a transport without metadata raises UsageError.

        None for a protocol that only its library can speak: then only the library's client can send a load. Imports no
        library.
        """

    def null_answers(self, reply: bytes) -> Callable[[], NullAnswers] | None:
        """Returns a factory of a connection's answers on a server that does nothing: the answer to every request is
        ``reply``. None for a transport without a codec.
        """


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
