"""The ZeroMQ transport, on pyzmq: a ROUTER at the server (``server.py``), a DEALER at the client (``client.py``).

A request and its reply are one message part each, whose bytes are in ``wire/messages.py``; what a ROUTER puts before
them, and an empty part of a REQ client, comes back as it was. So any ZeroMQ client that writes those bytes will do.

Of a server's limits, libzmq keeps its own way:

- ``requests_max`` and ``frame_bytes_max`` as every transport: RESOURCE_EXHAUSTED, INVALID_ARGUMENT. But the connection
  of a client that sends over four times ``frame_bytes_max`` is dropped without a word, before the rest is read.
- ``pipeline_max`` bounds a client's requests that wait in libzmq unread; then TCP holds the client back.
- ``idle_s``: a peer that answers no ZeroMQ ping for so long is dropped. A live one that asks nothing is kept.
- ``stop`` refuses new requests at once, with UNAVAILABLE, but new connections only when what was accepted is answered:
  libzmq closes every connection together with the listener.
- ``connections_max`` is not kept: libzmq accepts by itself, and tells nobody before. Descriptors are the limit.

A method that asks who calls (``Call.peer``) is told nothing: libzmq does not say a client's port. Both parts are
imported when they are asked for: pyzmq is of the extra ``transports``, and may be missing.
"""

import argparse

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.messaging import library
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server

LABEL = "ZeroMQ"
DEFAULT_PORT = 50054
DEFAULT_EXECUTOR = "static-pool"


def add_options(_parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def own_options(_options: argparse.Namespace) -> None:
    """It has none of its own."""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns. Raises OSError where it cannot, UsageError without pyzmq."""
    with library("zeromq", "pyzmq"):
        from stock_service.rpc.transports.zeromq.server import ZeroServer
    return ZeroServer(service, executor, options)


def connect(address: Address, timeout_s: float) -> Connection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most.

    Raises Unavailable, DeadlineExceeded where nobody answers there, UsageError without pyzmq.
    """
    with library("zeromq", "pyzmq"):
        from stock_service.rpc.transports.zeromq import client
    return client.connect(address, timeout_s)


def codec(_address: Address, _timeout_s: float) -> None:
    """A load is sent by its library alone."""


def null_answers(_reply: bytes) -> None:
    """Nor is there a null server."""
