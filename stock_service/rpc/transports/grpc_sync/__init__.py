"""The gRPC transport on grpcio: its thread-based server (``server.py``) and its blocking client.

Both are imported when they are asked for, so that the lean client, which speaks gRPC without grpcio, does not load it.
Its codec is in ``wire``, for every transport that speaks gRPC.
"""

import argparse
from collections.abc import Callable

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.option_types import shown_address
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


def add_options(_parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def own_options(_options: argparse.Namespace) -> None:
    """It has none of its own."""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns. Raises OSError where it cannot."""
    from stock_service.rpc.transports.grpc_sync.server import GrpcServer

    return GrpcServer(service, executor, options)


def __getattr__(name: str) -> Callable[..., Connection]:
    """``connect``, of ``rpc/grpcio``. Asking for it loads grpcio, so that no connection's time has that in it."""
    if name != "connect":
        raise AttributeError(name)
    from stock_service.rpc.grpcio.client import connect

    return connect


def codec(address: Address, timeout_s: float, token: str = "") -> Codec:
    """What a new connection of the lean client speaks."""
    return GrpcCodec(shown_address(address), timeout_s, token)


def null_answers(reply: bytes) -> Callable[[], GrpcNull]:
    """What the null server answers to everything."""
    return answers(reply)
