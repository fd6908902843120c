"""The sockets transport: length-prefixed frames (``wire/framing.py``) over TCP, many requests to a connection.

``serve`` starts the server of the dispatch model that is asked for; both keep the same limits and send the same bytes.
``connect`` is the client. Linux only: the server sleeps in epoll and is woken through an eventfd.

Limits, besides the executor's: ``connections_max`` (one more is told RESOURCE_EXHAUSTED and closed),
``frame_bytes_max``, ``idle_s``, ``read_s``, ``pipeline_max``.
"""

from typing import assert_never

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.service import Service
from stock_service.rpc.transports import ServeOptions, Server
from stock_service.rpc.transports.sockets.client import connect
from stock_service.rpc.transports.sockets.connection_server import ConnectionServer
from stock_service.rpc.transports.sockets.request_server import RequestServer

__all__ = ["DEFAULT_EXECUTOR", "DEFAULT_PORT", "connect", "serve"]

DEFAULT_PORT = 50052
DEFAULT_EXECUTOR = "static-pool"


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns. Raises OSError where it cannot."""
    match options.dispatch:
        case "request":
            return RequestServer(service, executor, options)
        case "connection":
            return ConnectionServer(service, executor, options)
        case unknown:
            assert_never(unknown)
