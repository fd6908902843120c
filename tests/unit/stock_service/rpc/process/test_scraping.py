"""The endpoint of ``--metrics``: no reader holds up the endpoint or the server."""

import logging
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.conformance.running import WAIT_S, until

prometheus_client = pytest.importorskip("prometheus_client")

from stock_service.rpc.process.scraping import CONNECTIONS_MAX, HEAD_BYTES_MAX, Scraped  # noqa: E402  # which needs it

RESET = struct.pack("ii", 1, 0)
"""Value for SO_LINGER: closing resets."""


class Numbers:
    """Numbers to show."""

    def collect(self) -> Iterator[object]:
        """Collects one number."""
        yield prometheus_client.Metric("a", "A number.", "gauge")


NUMBERS = Numbers()


class Large:
    """A page of more than the kernel holds for a connection."""

    def collect(self) -> Iterator[object]:
        """Numbers with long meanings."""
        for number in range(32):
            yield prometheus_client.Metric(f"a{number}", "A number. " * 40_000, "gauge")


@contextmanager
def scraped(scrape_s: float, shown: Numbers | Large = NUMBERS) -> Iterator[Scraped]:
    """An endpoint on a free port."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(shown)
    with Scraped(("127.0.0.1", 0), registry, scrape_s) as endpoint:
        yield endpoint


def answered(endpoint: Scraped, line: str) -> str:
    """The whole answer to a request, for another client."""
    with socket.create_connection(endpoint.address, WAIT_S) as client, client.makefile("rb") as file:
        client.sendall(f"{line} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return file.read().decode()


def test_who_asks_byte_by_byte_is_cut_off() -> None:
    """The time is for the whole question, not for each byte of it; then the next one is answered."""
    with scraped(0.1) as endpoint, socket.create_connection(endpoint.address, WAIT_S) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\nx: ")
        client.settimeout(0.02)
        for _ in range(100):
            try:
                client.sendall(b"x")
                assert client.recv(1) == b""
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("it was read on and on")
        assert answered(endpoint, "GET /metrics").startswith("HTTP/1.1 200 OK")


def test_silent_peers_keep_nobody_waiting() -> None:
    """A request is answered while others are silent. Of too many clients the first one is closed."""
    with scraped(3600) as endpoint, ExitStack() as silent:
        clients = [
            silent.enter_context(socket.create_connection(endpoint.address, WAIT_S)) for _ in range(CONNECTIONS_MAX)
        ]
        assert answered(endpoint, "GET /metrics").startswith("HTTP/1.1 200 OK")
        assert clients[0].recv(1) == b""
        assert len(endpoint._open) < CONNECTIONS_MAX + 1


def test_a_question_is_bounded() -> None:
    """A request that is too long is closed without an answer."""
    with scraped(3600) as endpoint, socket.create_connection(endpoint.address, WAIT_S) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\nx: " + b"x" * HEAD_BYTES_MAX)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_an_answer_that_nobody_takes_is_given_up() -> None:
    """An answer that is not taken in time is given up. Meanwhile others are answered."""
    with scraped(0.1, Large()) as endpoint, socket.create_connection(endpoint.address, WAIT_S) as idle:
        idle.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        until(lambda: any(each.is_closing() for each in endpoint._open), "its answer is made")
        assert answered(endpoint, "GET /none").startswith("HTTP/1.1 404")
        until(lambda: not endpoint._open, "it is closed")


def test_verbs_and_paths() -> None:
    """HEAD is answered as GET, without the body; another verb is told which are allowed; only ``/metrics`` is there."""
    for line, status, allowed, has_body in (
        ("GET /metrics", "200 OK", False, True),
        ("HEAD /metrics", "200 OK", False, False),
        ("POST /metrics", "405 Method Not Allowed", True, True),
        ("GET /none", "404 Not Found", False, True),
        ("HEAD /none", "404 Not Found", False, False),
        ("POST /none", "404 Not Found", False, True),
    ):
        with scraped(WAIT_S) as endpoint:
            head, _, body = answered(endpoint, line).partition("\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status}\r\n")
        assert ("Allow: GET, HEAD" in head.split("\r\n"), bool(body)) == (allowed, has_body)


def test_who_asks_nothing_holds_up_no_stop() -> None:
    """Silent clients, and those behind them, hold up no stop."""
    with scraped(3600) as endpoint:
        silent = [socket.create_connection(endpoint.address, WAIT_S) for _ in range(3)]
        until(lambda: len(endpoint._open) == 3, "they are listened to")
    for client in silent:
        with client, suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_who_leaves_is_no_news(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """A client that leaves causes neither a log line nor a traceback."""
    with scraped(WAIT_S) as endpoint, caplog.at_level(logging.DEBUG):
        client = socket.create_connection(endpoint.address, WAIT_S)
        client.sendall(b"GET /metrics")
        until(lambda: bool(endpoint._open), "it is listened to")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
        until(lambda: not endpoint._open, "it is over")
    assert (caplog.text, capfd.readouterr().err) == ("", "")
