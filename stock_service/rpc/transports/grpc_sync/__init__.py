"""The transport ``grpc``: grpcio's thread-based server (``server.py``), and grpcio's blocking client.

The first use of the server or of the client imports grpcio. So the lean client, which speaks gRPC without grpcio, does
not load grpcio. All gRPC transports share one codec, and grpcio's client.
"""

import argparse

from stock_service.rpc import grpcio
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.server_core.options import ReadOptions, add_delay_target
from stock_service.rpc.service import Service
from stock_service.rpc.transports import ServeOptions, Server

LABEL = "gRPC"
DEFAULT_PORT = 50051
DEFAULT_EXECUTOR = "thread-pool"
REFUSED_EXECUTORS = {"leader-followers": "grpcio reads by threads of its own"}
TLS_PROTOCOLS = ("h2",)
TAKES_LISTENER = False

add_options = add_delay_target
codec, null_answers = grpcio.codec, grpcio.null_answers
__getattr__ = grpcio.loaded  # gives ``connect``


def own_options(options: argparse.Namespace) -> ReadOptions:
    """Returns the values of the transport's own options. Only the delay target is used, by ``handlers.py``."""
    return ReadOptions(delay_target_ms=options.delay_target_ms)


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a listening server. Raises OSError if the server cannot listen."""
    from stock_service.rpc.transports.grpc_sync.server import GrpcServer

    own: ReadOptions = options.own or ReadOptions()
    return GrpcServer(service, executor, own.delay_target_ms, options)
