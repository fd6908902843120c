"""What ``--metrics HOST:PORT`` shows: the numbers of ``rpc/metrics.py`` in Prometheus' format, at ``/metrics``.

A thread of its own answers each question once it is whole, so that nobody waits for another. A question must be whole
within ``SCRAPE_S``, and its answer taken within that again. Over ``CONNECTIONS_MAX`` the one that has had most of its
time is closed. A server that stops waits for none of them. The endpoint shows numbers and the names of methods and
outcomes, nothing of what a client sent. Connections are counted as it is asked, by looking through the
process's descriptors. Only this machine may ask, unless ``--insecure`` says otherwise: there is no TLS here.

It needs the library prometheus-client, which the extra ``metrics`` installs.
"""

import io
import logging
import os
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Self

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import UsageError
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import NAME, Metrics
from stock_service.rpc.option_types import family_of, shown_address
from stock_service.rpc.server_core.listening import Waker
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

_RETRY_S = 1.0
"""Until the next try to take a connection, where the process can open no more files."""

PATH = "/metrics"

_OPEN = ("01", "08")
"""States of a TCP connection that the server has not closed: ESTABLISHED and CLOSE_WAIT (Linux, tcp_states.h)."""


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

    def __init__(self, address: Address, registry: "CollectorRegistry", scrape_s: float = SCRAPE_S) -> None:
        """Raises UsageError where the address cannot be had."""
        self._registry, self._scrape_s = registry, scrape_s
        try:
            self._listener = socket.create_server(address, family=family_of(address[0]))
        except OSError as error:
            allowed = f"an address of this machine, with a port that is free ({error.strerror})"
            raise UsageError("--metrics", shown_address(address), allowed) from error
        self._listener.setblocking(False)
        host, port = self._listener.getsockname()[:2]
        self.address: Address = (host, port)
        self._scrapes: dict[socket.socket, _Scrape] = {}  # the next to be closed comes first
        self._waker = Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker.fd, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="metrics")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: "TracebackType | None"
    ) -> None:
        self._waker.wake()
        self._thread.join()
        for connection in (*self._scrapes, self._listener):
            connection.close()
        self._selector.close()
        self._waker.close()

    def _run(self) -> None:
        """Until it is woken."""
        while True:
            now_s = time.monotonic()
            while self._scrapes and (first := next(iter(self._scrapes.values()))).by_s <= now_s:
                self._close(first)
            left_s = first.by_s - now_s if self._scrapes else None
            for key, _ in self._selector.select(left_s):
                if key.fd == self._waker.fd:
                    return
                if key.data is None:
                    self._accept()
                elif key.fileobj in self._scrapes:  # else it was closed for one that has just come
                    self._go_on(key.data)

    def _accept(self) -> None:
        """Takes a connection, for which the one that has had most of its time is closed where there are too many."""
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it has gone
        except OSError:  # the process can open no more files: until it can, this is tried now and then
            select.select([self._waker.fd], [], [], _RETRY_S)
            return
        if len(self._scrapes) >= CONNECTIONS_MAX:
            self._close(next(iter(self._scrapes.values())))
        connection.setblocking(False)
        scrape = self._scrapes[connection] = _Scrape(connection, time.monotonic() + self._scrape_s)
        self._selector.register(connection, selectors.EVENT_READ, scrape)

    def _go_on(self, scrape: "_Scrape") -> None:
        """Reads what has come of a question, or sends what can be of its answer; closes where that is all."""
        try:
            over = self._asked(scrape) if scrape.answer is None else False
            if scrape.answer is not None:
                scrape.answer = scrape.answer[scrape.connection.send(scrape.answer) :]
                over = not scrape.answer
        except BlockingIOError:
            return
        except OSError:
            over = True  # who leaves before the answer is no news
        except Exception:
            _log.exception("the metrics could not be shown")
            over = True
        if over:
            self._close(scrape)

    def _asked(self, scrape: "_Scrape") -> bool:
        """Reads what has come of a question, and answers it once it is whole. Whether nothing more is to come of it."""
        connection, came = scrape.connection, scrape.connection.recv(HEAD_BYTES_MAX)
        scrape.question += came
        if _END not in scrape.question:
            return not came or len(scrape.question) > HEAD_BYTES_MAX
        scrape.answer = memoryview(_Answer(scrape.question, self._registry).made)
        scrape.by_s = time.monotonic() + self._scrape_s
        self._scrapes[connection] = self._scrapes.pop(connection)  # the last to be closed now
        self._selector.modify(connection, selectors.EVENT_WRITE, scrape)
        return False

    def _close(self, scrape: "_Scrape") -> None:
        self._selector.unregister(scrape.connection)
        del self._scrapes[scrape.connection]
        scrape.connection.close()


class _Scrape:
    """A connection, and how far it is: by when its question must be whole, and then its answer taken."""

    def __init__(self, connection: socket.socket, by_s: float) -> None:
        self.connection, self.by_s = connection, by_s
        self.question = b""
        self.answer: memoryview | None = None  # what of it is not sent yet; None: it is not made


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
