"""The NNG transport, on pynng: a REP at the server (``server.py``), a REQ at the client (``client.py``), over TCP.

A request and its reply are one message each, whose bytes are in ``wire/messages.py``. Any client of NNG or nanomsg that
writes those bytes will do. A server has a context for each request that may be under way, and one more, which refuses.

Of a server's limits, NNG keeps its own way:

- ``requests_max`` and ``frame_bytes_max`` as every transport: RESOURCE_EXHAUSTED, INVALID_ARGUMENT. But the connection
  of a client that sends over four times ``frame_bytes_max`` is dropped without a word.
- ``connections_max``: one more is closed, without a word.
- ``stop`` refuses new requests at once, with UNAVAILABLE, and closes new connections. The port is free only when what
  was accepted is answered: NNG closes every connection together with the listener.
- ``idle_s`` and ``pipeline_max`` cannot be kept, and are refused: NNG keeps a connection until TCP loses it, and
  reads all that it carries. What is under way is bounded by ``requests_max`` alone.

Both parts are imported when they are asked for: pynng is of the extra ``transports``, and may be missing.
"""

import argparse
from collections.abc import Callable

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.messaging import library
from stock_service.rpc.server_core.options import only_loopback
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, Connection, ServeOptions, Server

LABEL = "NNG"
DEFAULT_PORT = 50055
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

    Raises OSError where it cannot; UsageError for another address, for a limit that is not kept, and without pynng.
    """
    only_loopback("nng", options.host)
    with library("nng", "pynng"):
        from stock_service.rpc.transports.nng.server import NngServer
    return NngServer(service, executor, options)


def __getattr__(name: str) -> Callable[[Address, float], Connection]:
    """``connect``, of ``client.py``. Asking for it loads pynng, so that no connection's time has that in it.

    Raises UsageError without pynng.
    """
    if name != "connect":
        raise AttributeError(name)
    with library("nng", "pynng"):
        from stock_service.rpc.transports.nng.client import connect

    return connect


def codec(_address: Address, _timeout_s: float) -> None:
    """A load is sent by its library alone."""


def null_answers(_reply: bytes) -> None:
    """Nor is there a null server."""
