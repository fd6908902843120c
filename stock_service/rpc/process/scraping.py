"""What ``--metrics HOST:PORT`` shows: the numbers of ``rpc/metrics.py`` in Prometheus' format, at ``/metrics``.

A thread of its own answers, one request after the other. Each must be whole within ``SCRAPE_S``, and its answer taken
within that again. A server that stops waits for none of them. It shows numbers and the names of methods and outcomes,
nothing of what a client sent. Connections are counted as it is asked, by looking through the
process's descriptors. Only this machine may ask, unless ``--insecure`` says otherwise: there is no TLS here.

It needs the library prometheus-client, which the extra ``metrics`` installs.
"""

import io
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import UsageError
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import BOUNDS_S, ONE_IN, Metrics, Times
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.server_core.options import Address, is_loopback

if TYPE_CHECKING:
    from types import TracebackType

    from prometheus_client import Metric

_log = logging.getLogger(__name__)

SCRAPE_S = 5.0
"""How long one who asks may take to do so, and how long to take the answer."""

PATH = "/metrics"

_OPEN = ("01", "08")
"""States of a TCP connection that the server has not closed: ESTABLISHED and CLOSE_WAIT (Linux, tcp_states.h)."""

_SAMPLED = f"of one request in {ONE_IN}"


def metrics_at(address: Address, insecure: bool) -> Metrics:
    """What is to be counted for that address. Raises UsageError for one that is not allowed, or without the library."""
    shown = shown_address(address)
    if not is_loopback(address[0]) and not insecure:
        allowed = "a loopback address (127.0.0.1, ::1, localhost), or any with --insecure: there is no TLS here"
        raise UsageError("--metrics", shown, allowed)
    try:
        import prometheus_client  # noqa: F401  # to be missed at once
    except ModuleNotFoundError as error:
        raise UsageError("--metrics", shown, "with its library: uv sync --extra metrics") from error
    return Metrics()


class Shown:
    """The metrics of a server that serves. Any thread."""

    def __init__(self, metrics: Metrics, health: Health, server: Address, executor: Executor, workers: int) -> None:
        self._metrics, self._health = metrics, health
        self._server, self._executor, self._workers = server, executor, workers

    def collect(self) -> "Iterator[Metric]":
        """Everything, as prometheus-client asks for it."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        metrics = self._metrics
        requests = CounterMetricFamily("stock_service_requests", "Requests that ended.", labels=("method", "outcome"))
        handling = 0
        for path, meter in metrics.meters.items():
            handling += meter.under_way()
            for outcome, number in meter.outcomes().items():
                requests.add_metric((path, outcome), number)
        yield requests
        refusals = CounterMetricFamily(
            "stock_service_refusals", "Refused: for want of room, or of a right.", labels=("what", "fault")
        )
        for (what, code), number in metrics.refusals().items():
            refusals.add_metric((what, code), number)
        yield refusals
        yield _histogram("queue_wait", f"From a request's arrival to a thread, {_SAMPLED}.", {(): metrics.queue_wait})
        yield _histogram("lock_wait", f"For the catalog's lock, {_SAMPLED}; none with a file.", {(): metrics.lock_wait})
        times: dict[tuple[str, ...], Times] = {(path,): meter.times for path, meter in metrics.meters.items()}
        yield _histogram("handler", f"In the handler, {_SAMPLED}.", times, ("method",))
        gauges = {
            "workers": ("Threads that run requests.", self._workers),
            "workers_busy": ("Requests in a handler now.", handling),
            "queue_length": ("Requests that wait for a thread now.", self._executor.waiting),
            "connections": ("Open connections now.", connections(self._server[1])),
            "serving": ("1, or 0 while it stops, or is sick.", int(self._health.serving())),
        }
        for name, (meaning, value) in gauges.items():
            yield GaugeMetricFamily(f"stock_service_{name}", meaning, value=value)


def _histogram(name: str, meaning: str, times: dict[tuple[str, ...], Times], labels: tuple[str, ...] = ()) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(f"stock_service_{name}_seconds", meaning, labels=labels)
    for label, each in times.items():
        counts, sum_s = each.seen()
        total, buckets = 0, []
        for bound, number in zip((*map(_said, BOUNDS_S), "+Inf"), counts, strict=True):
            total += number
            buckets.append((bound, total))
        family.add_metric(label, buckets, sum_s)
    return family


def _said(bound_s: float) -> str:
    return f"{bound_s:g}"


def connections(port: int) -> int:
    """Open TCP connections of this process to a port of its own. Takes some 3 µs for each descriptor of the process."""
    own = set()
    with os.scandir("/proc/self/fd") as entries:
        for entry in entries:
            try:
                own.add(os.readlink(entry.path))
            except OSError:
                continue  # closed meanwhile
    number, suffix = 0, f":{port:04X}"
    for table in ("tcp", "tcp6"):
        path = Path("/proc/self/net", table)
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[1].endswith(suffix) and fields[3] in _OPEN and f"socket:[{fields[9]}]" in own:
                number += 1
    return number


class Scraped:
    """The endpoint, for a ``with`` statement: it listens when made, and its thread ends with the statement."""

    def __init__(self, address: Address, shown: Shown, scrape_s: float = SCRAPE_S) -> None:
        """Raises UsageError where the address cannot be had."""
        from prometheus_client import CollectorRegistry

        registry = CollectorRegistry()
        registry.register(shown)
        try:
            self._server = _Server(address, _handler(registry, scrape_s))
        except OSError as error:
            allowed = f"an address of this machine, with a port that is free ({error.strerror})"
            raise UsageError("--metrics", shown_address(address), allowed) from error
        host, port = self._server.server_address[:2]
        self.address: Address = (str(host), port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: "TracebackType | None"
    ) -> None:
        self._server.cut()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(HTTPServer):
    """Of the family that its address has; with one who asks at a time, who can be cut off."""

    def __init__(self, address: Address, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        """Raises OSError."""
        self.address_family = family_of(address[0])
        self.asking: socket.socket | None = None
        """Of who asks now."""
        self.stopping = False
        super().__init__(address, handler)

    def cut(self) -> None:
        """Ends what is being asked. From another thread."""
        self.stopping = True  # before it is looked who asks: who comes after that sees it
        if (asking := self.asking) is not None:
            with suppress(OSError):  # it has ended meanwhile
                asking.shutdown(socket.SHUT_RDWR)

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Who leaves before the answer is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            _log.exception("the metrics could not be shown")


class _Question(io.RawIOBase):
    """What is asked on a connection, as far as it comes in time."""

    def __init__(self, connection: socket.socket, server: _Server, patience_s: float) -> None:
        self._connection, self._server = connection, server
        self._by_s = time.monotonic() + patience_s

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises TimeoutError: the time is for all of the question, however it comes."""
        left_s = self._by_s - time.monotonic()
        if left_s <= 0 or self._server.stopping:
            raise TimeoutError
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)


def _handler(registry: Any, scrape_s: float) -> Callable[..., BaseHTTPRequestHandler]:
    """What answers one who asks."""
    from prometheus_client.exposition import choose_encoder

    class Handler(BaseHTTPRequestHandler):
        server: _Server
        server_version, sys_version = "stock_service", ""

        def setup(self) -> None:
            """Takes a connection."""
            super().setup()
            self.rfile.close()
            self.server.asking = self.connection
            self.rfile = io.BufferedReader(_Question(self.connection, self.server, scrape_s))

        def finish(self) -> None:
            """It ends."""
            self.server.asking = None
            super().finish()

        def do_GET(self) -> None:  # the library's name
            """Answers."""
            self.connection.settimeout(scrape_s)
            if self.path.partition("?")[0] != PATH:
                self.send_error(404)
                return
            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            shown: bytes = encode(registry)
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(shown)))
            self.end_headers()
            self.wfile.write(shown)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the library's name
            """Nothing: a request is no news."""

    return Handler
