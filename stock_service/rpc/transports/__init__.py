"""Table of the transports, and their common interface. A transport carries a service's requests over a network.

Each transport is a folder with a server and a client. A transport uses a ``Service``, and knows nothing about stocks.
The folder's module has the attributes of the protocol ``Transport``. The attributes state every property in which
transports differ. So no code outside a transport depends on the transport's name. ``load`` imports only the chosen
transport. So a server on sockets never imports grpcio.
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
    """A server that is listening. ``stop`` ends the server's own threads."""

    @property
    def address(self) -> Address:
        """Address on which the server listens, with the real port, never 0."""

    def stop(self, grace_s: float) -> bool:
        """Stops accepting, closes idle connections, and finishes accepted requests. Blocks until the stop is complete.

        Returns True if all accepted requests ended within ``grace_s``. Otherwise gives up the remaining requests, and
        returns False. May be called again. After ``stop``, the caller must stop the executor.
        """


class Connection(Protocol):
    """A client's connection. Not thread-safe."""

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        """Sends an encoded request of the method ``path`` (``/package.Service/Method``), and returns the encoded
        response. Blocks for ``timeout_s`` at most; raises a Fault.

        After DeadlineExceeded or Unavailable the client cannot know whether the server has executed the request. After
        a Fault the connection may be used again, and reconnects if necessary. The connection never sends a request
        twice.
        """

    def close(self) -> None:
        """Closes the connection. May be called again."""


class Transport(Protocol):
    """Interface of a transport's module."""

    LABEL: str
    """Name of the transport in reports and figures."""
    DEFAULT_PORT: int
    DEFAULT_EXECUTOR: str
    REFUSED_EXECUTORS: Mapping[str, str]
    """Names of the executors that the transport's server cannot use, each with the reason."""
    TAKES_LISTENER: bool
    """True if the transport's server can use the listening socket of a previous server (``ServeOptions.listener``)."""

    TLS_PROTOCOLS: Sequence[str]
    """Names of the protocol that the transport's server accepts in TLS (ALPN). Empty for a protocol without such a
    name.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds to a command line the options that only this transport's server has. A transport without such options
        adds none.
        """

    def own_options(self, options: argparse.Namespace) -> object:
        """Returns the values of the transport's own options, for ``ServeOptions.own``; None for a transport without own
        options.
        """

    def serve(self, service: Service, executor: Executor, options: ServeOptions) -> Server:
        """Starts a server, which listens when ``serve`` returns. Raises OSError if the server cannot listen."""

    def connect(
        self, address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS
    ) -> Connection:
        """Opens a connection. Blocks until the connection is made, for ``timeout_s`` at most.

        Raises Unavailable, or DeadlineExceeded if the server's host does not answer (with grpcio also Unavailable).
        Raises UsageError if the files of ``credentials`` cannot be used. On sockets, raises Unauthenticated if the
        server refuses the token.
        """

    def codec(self, address: Address, token: str = "", metadata: Metadata = ()) -> Codec | None:
        """Makes the lean client's codec for a new connection. Imports no library of the transport.

        The codec shows ``token`` to the server, unless ``token`` is empty. The codec sends ``metadata`` with every
        request; if the transport's requests cannot have metadata, raises UsageError.

        Returns None for a protocol that only a library can speak. Then only the library's client can send a load.
        """

    def null_answers(self, reply: bytes) -> Callable[[], NullAnswers] | None:
        """Returns a function that makes the null server's codecs: every request gets ``reply``. None for a transport
        without a ``codec``.
        """


TRANSPORTS: dict[str, str] = {
    "grpc": "stock_service.rpc.transports.grpc_sync",
    "sockets": "stock_service.rpc.transports.sockets",
    "http1": "stock_service.rpc.transports.http1",
    "grpc_static": "stock_service.rpc.transports.grpc_static",
    "grpc_aio": "stock_service.rpc.transports.grpc_aio",
}
"""Import path of every transport's module, by the transport's name on the command line (``--transport``)."""


def load(name: str) -> Transport:
    """Imports and returns the module of a transport. ``name`` is a key of ``TRANSPORTS``."""
    return cast(Transport, import_module(TRANSPORTS[name]))
