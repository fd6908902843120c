"""gRPC on grpcio's asyncio server (``server.py``), with grpcio's blocking client, which ``grpc_sync`` also has.

One event loop on one thread takes all calls. ``--dispatch`` decides which thread answers them:

- ``loop`` (the default): the loop itself answers one call after the other. Asyncio saves time because no call is handed
  to another thread. The executor's threads stay idle; the sum of ``--workers`` and ``--queue-limit`` only limits the
  calls under way. A handler that blocks delays all other calls, health checks and a stop. A method may have a coroutine
  function (``Method.on_loop``): the loop awaits the coroutine, and answers other calls meanwhile.
- ``request``: a call is a task of the executor, and the loop sends its reply.

The server listens on loopback alone, and refuses any other address: after one call whose path is not UTF-8, grpcio's
asyncio server takes no further call. So any client that reaches the server could make the server useless for all other
clients.

The transports ``grpc_aio`` and ``grpc_sync`` have the same limits, and the same faults on the wire. Every transport
that speaks gRPC has the same codec and the same client. Server and client are imported on their first use.
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
"""Dispatch of a call: to the event loop itself, or to a thread of the executor, as its task."""

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
    """The transport's own options."""

    dispatch: Dispatch = DEFAULT_DISPATCH
    """Dispatch of calls."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds ``--dispatch``."""
    help_text = "who answers a call: the event loop itself, or the executor, a task for each request"
    parser.add_argument("--dispatch", choices=get_args(Dispatch), default=DEFAULT_DISPATCH, help=help_text)


def own_options(options: argparse.Namespace) -> AioOptions:
    """The value given for ``--dispatch``."""
    return AioOptions(options.dispatch)


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """Starts a server, which listens on a loopback address when this function returns.

    Raises OSError if it cannot listen, UsageError for another address.
    """
    if not is_loopback(options.host):
        allowed = "a loopback address (127.0.0.1, ::1, localhost): grpc_aio is for experiments on one machine"
        raise UsageError("--host", options.host, allowed)
    from stock_service.rpc.transports.grpc_aio.server import AioServer

    own: AioOptions = options.own or AioOptions()
    return AioServer(service, executor, own.dispatch != "request", options)
