"""The transport ``grpc_aio``: grpcio's asyncio server (``server.py``), and grpcio's blocking client.

One event loop on one thread receives all calls. ``--dispatch`` decides which thread answers the calls:

- ``loop`` (the default): the loop itself answers all calls, one after the other. The executor's threads stay idle. The
  sum of ``--workers`` and ``--queue-limit`` only limits the number of calls under way. While a handler blocks, all
  other calls, health checks and a stop must wait. A method may have a coroutine function (``Method.on_loop``): the loop
  awaits the coroutine, and answers other calls meanwhile.
- ``request``: a call is a task of the executor, and the loop sends the reply.

The server listens only on a loopback address. After one call whose path is not UTF-8, grpcio's asyncio server takes no
further call. So any client that can connect could end the service for all other clients.

The transports ``grpc_aio`` and ``grpc`` (``grpc_sync``) have the same limits and send the same faults. The first use of
the server or of the client imports grpcio.
"""

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

from stock_service.rpc import grpcio
from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import UsageError
from stock_service.rpc.server_core.options import is_loopback
from stock_service.rpc.service import Service
from stock_service.rpc.transports import ServeOptions, Server

Dispatch = Literal["loop", "request"]
"""Dispatch model: ``--dispatch``."""

LABEL = "gRPC, asyncio"
DEFAULT_PORT = 50053
DEFAULT_EXECUTOR = "static-pool"
REFUSED_EXECUTORS = {"leader-followers": "grpcio reads by threads of its own"}
TLS_PROTOCOLS = ("h2",)
TAKES_LISTENER = False
DEFAULT_DISPATCH: Dispatch = "loop"

codec, null_answers = grpcio.codec, grpcio.null_answers
__getattr__ = grpcio.loaded  # gives ``connect``


@dataclass(frozen=True, slots=True)
class AioOptions:
    """Values of the options that only ``grpc_aio`` has."""

    dispatch: Dispatch = DEFAULT_DISPATCH


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--dispatch`` to a command line."""
    help_text = "who answers a call: the event loop itself, or the executor, a task for each request"
    parser.add_argument("--dispatch", choices=get_args(Dispatch), default=DEFAULT_DISPATCH, help=help_text)


def own_options(options: argparse.Namespace) -> AioOptions:
    """Returns the values of the transport's own options."""
    return AioOptions(options.dispatch)


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a server that listens on a loopback address.

    Raises OSError if the server cannot listen, UsageError for an address that is not loopback.
    """
    if not is_loopback(options.host):
        allowed = "a loopback address (127.0.0.1, ::1, localhost): grpc_aio is for experiments on one machine"
        raise UsageError("--host", options.host, allowed)
    from stock_service.rpc.transports.grpc_aio.server import AioServer

    own: AioOptions = options.own or AioOptions()
    return AioServer(service, executor, own.dispatch != "request", options)
