"""The gRPC transport on grpcio: its thread-based server (``server.py``) and its blocking client.

Both are imported when they are asked for, so that the lean client, which speaks gRPC without grpcio, does not load it.
Its codec is in ``wire``, for every transport that speaks gRPC.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.server_core.options import ReadOptions, add_delay_target
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server
from stock_service.rpc.wire.codec import Codec
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.rpc.wire.grpc_null import GrpcNull
from stock_service.rpc.wire.grpc_null import null_answers as answers

LABEL = "gRPC"
DEFAULT_PORT = 50051
DEFAULT_EXECUTOR = "thread-pool"
REFUSED_EXECUTORS = {"leader-followers": "grpcio reads by threads of its own"}
TLS_PROTOCOLS = ("h2",)
TAKES_LISTENER = False


@dataclass(frozen=True, slots=True)
class GrpcOptions:
    """The transport's own options."""

    delay_target_ms: float = ReadOptions().delay_target_ms
    """A call that waits longer for a thread while the server is overloaded is refused; see ``handlers.py``."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--delay-target-ms``."""
    add_delay_target(parser)


def own_options(options: argparse.Namespace) -> GrpcOptions:
    """What was given."""
    return GrpcOptions(options.delay_target_ms)


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns. Raises OSError where it cannot."""
    from stock_service.rpc.transports.grpc_sync.server import GrpcServer

    own = options.own or GrpcOptions()
    assert isinstance(own, GrpcOptions), f"the options of another transport: {own}"
    return GrpcServer(service, executor, own.delay_target_ms, options)


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
