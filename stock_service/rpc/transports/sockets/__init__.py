"""The sockets transport: length-prefixed frames (``wire/framing.py``) over TCP, with many requests on one connection.

``serve`` starts the server of the chosen dispatch model. The servers of both models have the same limits and the same
protocol. ``connect`` opens a client's connection. Linux only: the server uses epoll and eventfd.

Limits, besides the executor's: ``connections_max`` (a further connection gets RESOURCE_EXHAUSTED and is closed),
``frame_bytes_max``, ``idle_timeout_s``, ``pipeline_max``, and the transport's own ``read_timeout_s``.

A server with the default options does not import the code of clients, of access control and of connection dispatch.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import UsageError
from stock_service.rpc.security import Metadata
from stock_service.rpc.server_core.options import ReadOptions, add_read_options, read_options
from stock_service.rpc.server_core.protocol import Methods, Request, WireProtocol, methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.service import Service
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server
from stock_service.rpc.transports.sockets.frames import HELLO, Frames
from stock_service.rpc.wire.codec import Codec, NullAnswers

LABEL = "sockets"
DEFAULT_PORT = 50052
DEFAULT_EXECUTOR = "static-pool"
REFUSED_EXECUTORS: dict[str, str] = {}
TAKES_LISTENER = True
TLS_PROTOCOLS = ()

Dispatch = Literal["request", "connection"]
"""Dispatch model. One task of the executor is a request, or a whole connection."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """Values of the sockets transport's own options."""

    reading: ReadOptions = field(default_factory=ReadOptions)
    """Options of reading. Connection dispatch uses only ``read_timeout_s``."""
    dispatch: Dispatch = "request"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every transport on the server core, and ``--dispatch``."""
    add_read_options(parser)
    help_text = "what one task of the executor is"
    parser.add_argument("--dispatch", choices=get_args(Dispatch), default=SocketOptions().dispatch, help=help_text)


def own_options(options: argparse.Namespace) -> SocketOptions:
    """Returns the values of the transport's own options. Raises UsageError if connection dispatch cannot use the given
    executor or connection age.
    """
    if options.dispatch == "connection" and options.executor == "leader-followers":
        raise UsageError(
            "--executor", options.executor, "another one with --dispatch connection: each thread reads one connection"
        )
    if options.dispatch == "connection" and options.connection_age_s:
        allowed = "0 with --dispatch connection: a connection has its thread until its client leaves"
        raise UsageError("--connection-age-s", options.connection_age_s, allowed)
    return SocketOptions(read_options(options), options.dispatch)


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a listening server. Raises OSError if the server cannot listen, and UsageError if ``options`` ask for both
    TLS and connection dispatch.
    """
    own: SocketOptions = options.own or SocketOptions()
    service = service.with_health()
    methods = methods_of(service)
    if options.access is None:
        return _serve(methods, Frames(methods, options.frame_bytes_max), executor, options, own)
    from stock_service.rpc.server_core.guarding import guarded
    from stock_service.rpc.transports.sockets.greeting import RIGHTS, GreetedFrames

    greeted = GreetedFrames(methods, options.frame_bytes_max, options.access)
    return _serve(methods, guarded(greeted, options.access, service, RIGHTS), executor, options, own)


def _serve(
    methods: Methods, protocol: WireProtocol[Request], executor: Executor, options: ServeOptions, own: SocketOptions
) -> Server:
    """Starts the server of the chosen dispatch model. Raises OSError, UsageError."""
    if own.dispatch == "request":
        return RequestServer(methods, protocol, executor, options, own.reading)
    if options.tls is not None:
        raise UsageError("--dispatch", own.dispatch, "request with --tls-cert: a connection's thread speaks no TLS")
    from stock_service.rpc.transports.sockets.connection_server import ConnectionServer

    return ConnectionServer(methods, protocol, executor, options, own.reading.read_timeout_s)


def codec(address: Address, token: str = "", metadata: Metadata = ()) -> Codec:
    """Makes the lean client's codec of a new connection. Raises UsageError for metadata, since a frame has no place for
    metadata.
    """
    from stock_service.rpc.transports.sockets.frame_codec import SocketCodec

    _refuse(metadata)
    return SocketCodec(address, token)


def _refuse(metadata: Metadata) -> None:
    if metadata:
        raise UsageError("--metadata", f"{metadata[0][0]}=…", "on gRPC and http1; a frame of sockets has no metadata")


def connect(address: Address, timeout_s: float, credentials: ClientCredentials = NO_CREDENTIALS) -> Connection:
    """Opens a connection, as ``transports.Transport.connect`` describes. If ``credentials`` have a token, also blocks
    until the server has accepted the token.
    """
    from stock_service.rpc.codec_connection import CodecConnection
    from stock_service.rpc.transports.sockets.frame_codec import SocketCodec

    _refuse(credentials.metadata)
    hello = (HELLO.decode(), credentials.token.encode()) if credentials.token else None
    new_codec = partial(SocketCodec, address)
    return CodecConnection(address, new_codec, credentials.context(), greeting=hello).open(timeout_s)


def null_answers(reply: bytes) -> Callable[[], NullAnswers]:
    """Returns a function that makes the null server's codecs: every request gets ``reply``."""
    from stock_service.rpc.transports.sockets import null

    return null.null_answers(reply)
