"""HTTP endpoint of ``--metrics HOST:PORT``: the metrics of ``rpc/metrics.py`` in Prometheus' format, at ``/metrics``.

The endpoint has its own thread with an event loop. The endpoint answers an HTTP request once the whole request has
come. So a slow client delays no other client. A client must send the whole request within ``SCRAPE_S``, and then take
the answer within ``SCRAPE_S``. If a connection comes when ``CONNECTIONS_MAX`` connections are open, the endpoint closes
the connection whose time limit ends first. A stopping server does not wait for connections of the endpoint.

The endpoint shows numbers and the names of methods and outcomes, and no content of requests. The endpoint counts the
server's connections at each request. The endpoint has no TLS. So only this machine may reach the endpoint, unless
``--insecure`` is given. The endpoint needs the library prometheus-client, which the extra ``metrics`` installs.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from email import message_from_bytes
from typing import TYPE_CHECKING, Self

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import UsageError
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import NAME, Metrics
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.server_core.options import Address, is_loopback
from stock_service.rpc.wire.http1_status import TEXT, encode_response

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_log = logging.getLogger(__name__)

SCRAPE_S = 5.0
"""Longest time, in seconds, for a client to send its request, and to take the answer."""

CONNECTIONS_MAX = 16
"""Largest number of open connections. Each Prometheus server has one connection."""

HEAD_BYTES_MAX = 8192
"""Largest size of a request, in bytes. Prometheus sends some 300 bytes."""

_END = b"\r\n\r\n"
"""An empty line: the end of an HTTP request without a body, and of the head of an HTTP answer."""

PATH = b"/metrics"

_CLOSES = b"Connection: close\r\n"

_OPEN = ("ESTABLISHED", "CLOSE_WAIT")
"""States of a TCP connection that the server has not closed."""


def metrics_at(address: Address, insecure: bool) -> Metrics:
    """Makes the metrics for an endpoint at an address. Raises UsageError if the address is not allowed, or if the
    library is missing.
    """
    shown = shown_address(address)
    if not is_loopback(address[0]) and not insecure:
        allowed = "a loopback address (127.0.0.1, ::1, localhost), or any with --insecure: there is no TLS here"
        raise UsageError("--metrics", shown, allowed)
    try:
        return Metrics()
    except ModuleNotFoundError as error:
        raise UsageError("--metrics", shown, "with its library: uv sync --extra metrics") from error


def show(metrics: Metrics, health: Health, server: Address, executor: Executor, workers: int) -> None:
    """Adds gauges of a running server (threads, queue, connections, health) to the metrics. Each HTTP request for the
    metrics reads the gauges' values anew.
    """
    from prometheus_client import Gauge

    gauges: dict[str, tuple[str, Callable[[], float]]] = {
        "workers": ("Threads that run requests.", lambda: workers),
        "workers_busy": ("Threads that have a request now.", lambda: executor.busy),
        "queue_length": ("Requests that wait for a thread now.", lambda: max(0, executor.under_way - executor.busy)),
        "connections": ("Open connections now.", lambda: connections(server[1])),
        "serving": ("1, or 0 while it stops, or is sick.", health.serving),
    }
    for name, (meaning, value) in gauges.items():
        Gauge(f"{NAME}_{name}", meaning, registry=metrics.registry).set_function(value)


def connections(port: int) -> int:
    """Counts the open TCP connections to this process's own port ``port``, by a search of all its descriptors."""
    import psutil

    own = psutil.Process().net_connections("tcp")
    return sum(each.laddr.port == port and each.status in _OPEN for each in own)


class Scraped:
    """HTTP endpoint of the metrics; a context manager. The constructor opens the port. The ``with`` statement starts
    and ends the endpoint's thread.
    """

    def __init__(self, address: Address, registry: "CollectorRegistry", scrape_s: float = SCRAPE_S) -> None:
        """Opens the port. Raises UsageError if the address cannot be used."""
        self._registry, self._scrape_s = registry, scrape_s
        try:
            self._listener = socket.create_server(address, family=family_of(address[0]))
        except OSError as error:
            allowed = f"an address of this machine, with a port that is free ({error.strerror})"
            raise UsageError("--metrics", shown_address(address), allowed) from error
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self._open: dict[asyncio.StreamWriter, None] = {}  # open connections, in the order in which to close them
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="metrics")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        """Main function of the endpoint's thread."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """Answers HTTP requests until ``__exit__``. Then ``asyncio.Runner`` cancels the tasks of open connections."""
        server = await asyncio.start_server(
            self._asked, sock=self._listener, limit=HEAD_BYTES_MAX, backlog=CONNECTIONS_MAX
        )
        await self._stopping.wait()
        server.close()

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection: answers its request once the request is whole. With too many connections, first closes
        the connection whose time limit ends first.
        """
        if len(self._open) >= CONNECTIONS_MAX:
            first = next(iter(self._open))
            del self._open[first]
            first.transport.abort()
        self._open[writer] = None
        try:
            question = await asyncio.wait_for(reader.readuntil(_END), self._scrape_s)
            writer.write(_answered(question, self._registry))
            writer.close()
            self._open.pop(writer, None)
            self._open[writer] = None  # moves this connection to the end of the order, since its time begins anew
            await asyncio.wait_for(writer.wait_closed(), self._scrape_s)
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # not logged: a client that is late, sends too much, or leaves; and the stop
        except Exception:
            _log.exception("the metrics could not be shown")
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()


def _answered(question: bytes, registry: "CollectorRegistry") -> bytes:
    """Returns the answer to an HTTP request, with ``Connection: close``: the metrics in a format that the client
    accepts, or an error. The answer to HEAD has no body.
    """
    from prometheus_client.exposition import choose_encoder

    line, _, fields = question.partition(b"\r\n")
    verb, _, target = line.partition(b" ")
    if target.partition(b" ")[0].partition(b"?")[0] != PATH:
        answer = encode_response(404, TEXT, b"allowed: GET " + PATH, _CLOSES)
    elif verb not in (b"GET", b"HEAD"):
        answer = encode_response(405, TEXT, b"allowed: GET " + PATH, b"Allow: GET, HEAD\r\n" + _CLOSES)
    else:
        accept = str(message_from_bytes(fields).get("Accept", ""))
        encode, content_type = choose_encoder(accept)
        answer = encode_response(200, content_type.encode(), encode(registry), _CLOSES)
    return answer.partition(_END)[0] + _END if verb == b"HEAD" else answer
