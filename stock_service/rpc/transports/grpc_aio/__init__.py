"""gRPC on grpcio's asyncio server (``server.py``); its client is grpcio's blocking one, as that of ``grpc_sync``.

All calls are taken by one event loop on one thread. ``--dispatch`` says who answers them:

- ``loop`` (the default): the loop itself, one call after the other. No call is ever handed to another thread, which is
  what asyncio saves. The executor's threads stay idle; ``--workers`` and ``--queue-limit`` then only add up to how many
  calls may be under way. A handler that blocks holds up all calls, health and a stop too. A method may bring a
  coroutine function for it (``Method.on_loop``): that is awaited, and holds up no call while it waits.
- ``request``: a call is a task of the executor, and the loop sends its reply.

It listens on loopback alone, whatever is asked: grpcio's asyncio server takes none behind one whose path is not UTF-8,
so whoever reaches it can end it for everybody.

The limits are those of ``grpc_sync``, and so are the faults on the wire. Its codec is in ``wire``, for every transport
that speaks gRPC. Server and client are imported when they are asked for: the lean client does without grpcio.
"""

from collections.abc import Callable

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.options import only_loopback
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server
from stock_service.rpc.transports.grpc_aio.options import AioOptions, add_options, own_options
from stock_service.rpc.wire.codec import Codec
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.rpc.wire.grpc_null import GrpcNull
from stock_service.rpc.wire.grpc_null import null_answers as answers

__all__ = [
    "DEFAULT_DISPATCH",
    "DEFAULT_EXECUTOR",
    "DEFAULT_PORT",
    "LABEL",
    "REFUSED_EXECUTORS",
    "TAKES_LISTENER",
    "TLS_PROTOCOLS",
    "AioOptions",
    "add_options",
    "codec",
    "null_answers",
    "own_options",
    "serve",
]

LABEL = "gRPC, asyncio"
DEFAULT_PORT = 50053
DEFAULT_EXECUTOR = "static-pool"
REFUSED_EXECUTORS = {"leader-followers": "grpcio reads by threads of its own"}
TLS_PROTOCOLS = ("h2",)
TAKES_LISTENER = False
DEFAULT_DISPATCH = AioOptions().dispatch


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns, on a loopback address.

    Raises OSError where it cannot, UsageError for another address.
    """
    only_loopback("grpc_aio", options.host)
    from stock_service.rpc.transports.grpc_aio.server import AioServer

    own = options.own or AioOptions()
    assert isinstance(own, AioOptions), f"the options of another transport: {own}"
    return AioServer(service, executor, own.dispatch != "request", options)


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
