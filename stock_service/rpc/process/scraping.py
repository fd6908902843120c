"""What ``--metrics HOST:PORT`` shows: the numbers of ``rpc/metrics.py`` in Prometheus' format, at ``/metrics``.

A thread of its own answers each question once it is whole, so that nobody waits for another. A question must be whole
within ``SCRAPE_S``, and its answer taken within that again. Over ``CONNECTIONS_MAX`` the one that has had most of its
time is closed. A server that stops waits for none of them. The endpoint shows numbers and the names of methods and
outcomes, nothing of what a client sent. Connections are counted when somebody asks. Only this machine may ask, unless
``--insecure`` says otherwise: there is no TLS here.

It needs the library prometheus-client, which the extra ``metrics`` installs.
"""

import asyncio
import io
import logging
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Self

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import UsageError
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import NAME, Metrics
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.server_core.options import Address, is_loopback

if TYPE_CHECKING:
    from types import TracebackType

    from prometheus_client import CollectorRegistry

_log = logging.getLogger(__name__)

SCRAPE_S = 5.0
"""How long one who asks may take to do so, and how long to take the answer."""

CONNECTIONS_MAX = 16
"""Connections at a time, at most: a Prometheus has one, and a pair of them two."""

HEAD_BYTES_MAX = 8192
"""Bytes of a question, at most; Prometheus sends some 300."""

_END = b"\r\n\r\n"
"""What a question ends with."""

PATH = "/metrics"

_OPEN = ("ESTABLISHED", "CLOSE_WAIT")
"""States of a TCP connection that the server has not closed."""


def metrics_at(address: Address, insecure: bool) -> Metrics:
    """What is to be counted for that address. Raises UsageError for one that is not allowed, or without the library."""
    shown = shown_address(address)
    if not is_loopback(address[0]) and not insecure:
        allowed = "a loopback address (127.0.0.1, ::1, localhost), or any with --insecure: there is no TLS here"
        raise UsageError("--metrics", shown, allowed)
    try:
        return Metrics()
    except ModuleNotFoundError as error:
        raise UsageError("--metrics", shown, "with its library: uv sync --extra metrics") from error


def show(metrics: Metrics, health: Health, server: Address, executor: Executor, workers: int) -> None:
    """Adds to the metrics what a server that serves can be asked for."""
    from prometheus_client import Gauge

    gauges: dict[str, tuple[str, Callable[[], float]]] = {
        "workers": ("Threads that run requests.", lambda: workers),
        "workers_busy": ("Requests in a handler now.", metrics.under_way),
        "queue_length": ("Requests that wait for a thread now.", lambda: max(0, executor.under_way - executor.workers)),
        "connections": ("Open connections now.", lambda: connections(server[1])),
        "serving": ("1, or 0 while it stops, or is sick.", health.serving),
    }
    for name, (meaning, value) in gauges.items():
        Gauge(f"{NAME}_{name}", meaning, registry=metrics.registry).set_function(value)


def connections(port: int) -> int:
    """Open TCP connections of this process to a port of its own; looks through all descriptors of the process."""
    import psutil

    own = psutil.Process().net_connections("tcp")
    return sum(each.laddr.port == port and each.status in _OPEN for each in own)


class Scraped:
    """The endpoint, for a ``with`` statement: it listens when made, and its thread ends with the statement."""

    def __init__(self, address: Address, registry: "CollectorRegistry", scrape_s: float = SCRAPE_S) -> None:
        """Raises UsageError where the address cannot be had."""
        self._registry, self._scrape_s = registry, scrape_s
        try:
            self._listener = socket.create_server(address, family=family_of(address[0]))
        except OSError as error:
            allowed = f"an address of this machine, with a port that is free ({error.strerror})"
            raise UsageError("--metrics", shown_address(address), allowed) from error
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self._open: dict[asyncio.StreamWriter, None] = {}  # the next to be closed comes first
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="metrics")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: "TracebackType | None"
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        """The thread's life."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """Until the stop; the runner then ends those that still ask."""
        server = await asyncio.start_server(
            self._asked, sock=self._listener, limit=HEAD_BYTES_MAX, backlog=CONNECTIONS_MAX
        )
        await self._stopping.wait()
        server.close()

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers a question once it is whole; for too many connections the one with most of its time is closed."""
        if len(self._open) >= CONNECTIONS_MAX:
            first = next(iter(self._open))
            del self._open[first]
            first.transport.abort()
        self._open[writer] = None
        try:
            question = await asyncio.wait_for(reader.readuntil(_END), self._scrape_s)
            writer.write(_Answer(question, self._registry).made)
            writer.close()
            self._open.pop(writer, None)
            self._open[writer] = None  # the last to be closed now
            await asyncio.wait_for(writer.wait_closed(), self._scrape_s)
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # who is late, asks for too much, or leaves is no news; nor is the stop
        except Exception:
            _log.exception("the metrics could not be shown")
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()


class _Answer(BaseHTTPRequestHandler):
    """The answer to a question, from memory to memory."""

    server_version, sys_version = "stock_service", ""

    def __init__(self, question: bytes, registry: "CollectorRegistry") -> None:
        self._registry = registry
        self.rfile, self.wfile = io.BytesIO(question), io.BytesIO()
        self.handle_one_request()
        self.made = self.wfile.getvalue()

    def do_GET(self) -> None:  # the library's name
        """Answers."""
        from prometheus_client.exposition import choose_encoder

        if self.path.partition("?")[0] != PATH:
            self.send_error(404)
            return
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        shown: bytes = encode(self._registry)
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(shown)))
        self.end_headers()
        self.wfile.write(shown)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
        """Nothing: a request is no news."""
