"""The NNG transport, on pynng: a REP at the server (``server.py``), a REQ at the client (``client.py``), over TCP.

A request and its reply are one message each, whose bytes are in ``wire/messages.py``. Any client of NNG or nanomsg that
writes those bytes will do. A server has a context for each request that may be under way, and one more, which refuses.

Of a server's limits, NNG keeps its own way:

- ``requests_max`` and ``frame_bytes_max`` as every transport: RESOURCE_EXHAUSTED, INVALID_ARGUMENT. But the connection
  of a client that sends over four times ``frame_bytes_max`` is dropped without a word.
- ``pipeline_max``: NNG reads one request of a connection at a time for each context that waits; then TCP holds it back.
- ``idle_s`` is not kept: NNG keeps a connection until TCP says that it is lost.
- ``stop`` refuses new requests at once, with UNAVAILABLE, but new connections only when what was accepted is answered:
  NNG closes every connection together with the listener.
- ``connections_max`` is not kept: NNG accepts by itself. Descriptors are the limit.

Both parts are imported when they are asked for: pynng is of the extra ``transports``, and may be missing.
"""

import argparse

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.messaging import library
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server

LABEL = "NNG"
DEFAULT_PORT = 50055
DEFAULT_EXECUTOR = "static-pool"


def add_options(_parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def own_options(_options: argparse.Namespace) -> None:
    """It has none of its own."""


def serve(service: Service, executor: Executor, options: ServeOptions) -> Server:
    """A server that listens when this returns. Raises OSError where it cannot, UsageError without pynng."""
    with library("nng", "pynng"):
        from stock_service.rpc.transports.nng.server import NngServer
    return NngServer(service, executor, options)


def connect(address: Address, timeout_s: float) -> Connection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most.

    Raises Unavailable, DeadlineExceeded where nobody answers there, UsageError without pynng.
    """
    with library("nng", "pynng"):
        from stock_service.rpc.transports.nng import client
    return client.connect(address, timeout_s)


def codec(_address: Address, _timeout_s: float) -> None:
    """A load is sent by its library alone."""


def null_answers(_reply: bytes) -> None:
    """Nor is there a null server."""
