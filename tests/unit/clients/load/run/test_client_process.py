"""A client process from inside: the effects of SIGTERM, and the counts after it."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from clients.load.plan.load_plan import ClientKind, LoadPlan
from clients.load.record.records import Deadline, Window
from clients.load.run import client_process
from clients.load.run.client_process import Client, Interrupted, Stopping, _Multiplexed, _Threads
from stock_service.rpc.process.command_line import address

pytestmark = pytest.mark.usefixtures("no_leaks")

MS = 1_000_000


@pytest.fixture
def stopping() -> Stopping:
    """Handler of the signal. It is not installed: tests call it, as a signal would."""
    return Stopping(Deadline(2**62))


@pytest.fixture(autouse=True)
def _handlers_stay() -> Iterator[None]:
    """Restores the handlers of both signals after each test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupt_after(seconds: float) -> None:
    """Sends this process SIGTERM after this time."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def test_sigterm_ends_the_sending_at_once(stopping: Stopping) -> None:
    """SIGTERM ends the sending at once, at any place in the main thread. A second signal is ignored."""
    with pytest.raises(Interrupted):
        stopping()
    assert stopping.deadline.ns == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_what_is_held_back_is_done_whole(stopping: Stopping) -> None:
    """A held block is done whole, and the signal is raised after it. Sending ends at once in any case."""
    done: list[int] = []

    def work() -> None:
        with stopping.held_back():
            stopping()
            done.append(stopping.deadline.ns)

    with pytest.raises(Interrupted):
        work()
    assert done == [0]
    with Stopping(Deadline(1)).held_back():
        pass


def plan(server: str, **changes: object) -> LoadPlan:
    """A plan of Lookups."""
    base = LoadPlan("sockets", address(server), 1, {"lookup": 1.0}, ("GameStart",), 0.0, 0.1)
    return replace(base, **changes)  # type: ignore[arg-type]


def window(warm_up_ns: int, duration_ns: int) -> Window:
    """A window from now on."""
    now_ns = time.perf_counter_ns()
    return Window(now_ns, now_ns + warm_up_ns, now_ns + warm_up_ns + duration_ns)


@pytest.mark.parametrize("rate_hz", [None, 500.0])
def test_a_client_that_is_interrupted_reports_what_it_did_until_then(server: str, rate_hz: float | None) -> None:
    """A client that is interrupted in its warm-up reports no request and no processor time of the window. No request is
    lost."""
    client = Client(plan(server, connections_per_client=2, rate_hz=rate_hz), 0, [0] * 4096)
    interrupt_after(0.05)
    report = client.measure(window(30_000 * MS, 100 * MS))
    close(client)
    assert (report.interrupted, report.cpu_s) == (True, 0.0)
    assert report.recorded is not None
    assert report.recorded.requests["lookup"].outcomes == {}
    assert all(span.began == span.recorded > 0 for span in report.recorded.spans)


@pytest.mark.parametrize(("client", "connections"), [("lean", 2), ("library", 1), ("library", 2)])
def test_what_waits_when_it_is_interrupted_is_counted(
    client: ClientKind, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At an interruption, requests under way or due at a server that never answers are counted. No latency has them."""
    monkeypatch.setattr(client_process, "_INTERRUPTED_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = plan(f"127.0.0.1:{silent.getsockname()[1]}", rate_hz=500.0, arrivals="constant", timeout_s=5.0)
        made = Client(replace(asked, client=client, connections_per_client=connections), 0, [0] * 4096)
        interrupt_after(0.1)
        report = made.measure(window(0, 30_000 * MS))
    close(made)
    assert report.interrupted
    assert 20 <= report.unanswered <= 500 * 30
    assert report.recorded is not None
    assert [(span.began, span.recorded) for span in report.recorded.spans] == [(0, 0)] * connections


def close(client: Client) -> None:
    """Close all as the kernel closes a process that was interrupted; threads end once the server is gone."""
    load = client._load
    if isinstance(load, _Multiplexed):
        load._lanes.close()
    elif isinstance(load, _Threads):
        load._pool.shutdown()
        for driver in load._drivers:
            driver.close()
