"""The ZeroMQ transport, on pyzmq: a ROUTER at the server (``server.py``), a DEALER at the client (``client.py``).

A request and its reply are one message part each, whose bytes are in ``wire/messages.py``; what a ROUTER puts before
them, and an empty part of a REQ client, comes back as it was. So any ZeroMQ client that writes those bytes will do.

Of a server's limits, libzmq keeps its own way:

- ``requests_max`` and ``frame_bytes_max`` as every transport: RESOURCE_EXHAUSTED, INVALID_ARGUMENT. But the connection
  of a client that sends over four times ``frame_bytes_max`` is dropped without a word, before the rest is read.
- ``idle_s``: a peer that answers no ZeroMQ ping for so long is dropped. A live one that asks nothing is kept.
- ``stop`` refuses new requests at once, with UNAVAILABLE, but new connections only when what was accepted is answered:
  libzmq closes every connection together with the listener.
- ``connections_max`` and ``pipeline_max`` cannot be kept, and are refused: libzmq accepts by itself, and has one queue
  for what all clients sent. What is under way is bounded by ``requests_max`` alone.

A method that asks who calls (``Call.peer``) is told nothing: libzmq does not say a client's port. Both parts are
imported when they are asked for: pyzmq is of the extra ``transports``, and may be missing.
"""

import argparse
from collections.abc import Callable

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.messaging import library
from stock_service.rpc.server_core.options import only_loopback
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server

LABEL = "ZeroMQ"
DEFAULT_PORT = 50054
DEFAULT_EXECUTOR = "static-pool"
REFUSED_EXECUTORS: dict[str, str] = {}
TLS_PROTOCOLS = None
SHARES_PORT = False
TAKES_LISTENER = False


def add_options(_parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def own_options(_options: argparse.Namespace) -> None:
    """It has none of its own."""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns, on a loopback address.

    Raises OSError where it cannot; UsageError for another address, for a limit that is not kept, and without pyzmq.
    """
    only_loopback("zeromq", options.host)
    with library("zeromq", "pyzmq"):
        from stock_service.rpc.transports.zeromq.server import ZeroServer
    return ZeroServer(service, executor, options)


def __getattr__(name: str) -> Callable[[Address, float], Connection]:
    """``connect``, of ``client.py``. Asking for it loads pyzmq, so that no connection's time has that in it.

    Raises UsageError without pyzmq.
    """
    if name != "connect":
        raise AttributeError(name)
    with library("zeromq", "pyzmq"):
        from stock_service.rpc.transports.zeromq.client import connect

    return connect


def codec(_address: Address, _timeout_s: float) -> None:
    """A load is sent by its library alone."""


def null_answers(_reply: bytes) -> None:
    """Nor is there a null server."""
