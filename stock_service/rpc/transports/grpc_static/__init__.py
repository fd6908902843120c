"""The gRPC transport of our own: HTTP/2 spoken by hand on the server core, with grpcio's client.

``serve`` starts it: the core's reading thread cuts calls (``wire/grpc_session.py``). The executor's threads answer them
(``requests.py``); with ``leader-followers`` the thread that read them does, where they are short. Offered besides: the
standard health service and server reflection, v1alpha and v1. The codec and the null server are those of every
transport that speaks gRPC.

Limits, besides the executor's: ``connections_max``, ``frame_bytes_max`` (of a message; one more is RESOURCE_EXHAUSTED),
``idle_timeout_s``, ``pipeline_max`` (calls of one connection at a time) and of its own ``read_timeout_s``.

It alone carries a service's ``streams`` and what a method says beside its reply (``call.ReplyMetadata``). A call whose
reply is several messages holds no worker between two of them, and is asked for the next once the last has left.

Left out: a call of several messages whose replies do not follow from one of them each.
"""

from collections.abc import Callable
from dataclasses import replace

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.options import ReadOptions, add_read_options, read_options
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server
from stock_service.rpc.wire.codec import Codec
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.rpc.wire.grpc_null import GrpcNull
from stock_service.rpc.wire.grpc_null import null_answers as answers

LABEL = "gRPC, our own"
DEFAULT_PORT = 50056
DEFAULT_EXECUTOR = "leader-followers"
REFUSED_EXECUTORS: dict[str, str] = {}
TLS_PROTOCOLS = ("h2",)
TAKES_LISTENER = True

add_options = add_read_options
own_options = read_options

_RESETS = 4
"""Calls that the executor may have of one connection, for each that may be open: those that were reset count on."""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns. Raises OSError where it cannot."""
    from stock_service.rpc.server_core.guarding import guarded
    from stock_service.rpc.server_core.protocol import methods_of
    from stock_service.rpc.server_core.reactor import RequestServer
    from stock_service.rpc.transports.grpc_static.requests import RIGHTS, GrpcRequests

    own = options.own or ReadOptions()
    assert isinstance(own, ReadOptions), f"the options of another transport: {own}"
    methods = methods_of(service)
    protocol = GrpcRequests(service, methods, options.frame_bytes_max, options.pipeline_max)
    unpaused = replace(options, pipeline_max=_RESETS * options.pipeline_max)
    streams = {path.encode(): method.right for path, method in service.streams.items()}
    closed = guarded(protocol, options.access, service, {**streams, **RIGHTS})
    return RequestServer(methods, closed, executor, unpaused, own, sessions=protocol.decoder)


def __getattr__(name: str) -> Callable[..., Connection]:
    """``connect``, of ``rpc/grpcio``. Asking for it loads grpcio, so that no connection's time has that in it."""
    if name != "connect":
        raise AttributeError(name)
    from stock_service.rpc.grpcio.client import connect

    return connect


def codec(address: Address, token: str = "") -> Codec:
    """What a new connection of the lean client speaks."""
    return GrpcCodec(shown_address(address), token)


def null_answers(reply: bytes) -> Callable[[], GrpcNull]:
    """What the null server answers to everything."""
    return answers(reply)
