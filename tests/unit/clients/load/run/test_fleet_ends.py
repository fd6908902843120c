"""Ends of runs: by Ctrl-C in every phase, and without a client. Nothing is lost, no process is left."""

import itertools
import os
import signal
import threading

import pytest

from clients.load.record.result import ALL, CLIENT_LOST
from clients.load.run import fleet
from clients.load.run.fleet import Progress
from clients.load.run.processes import Processes
from stock_service.rpc.service import Service
from stock_service.trading.service import LOOKUP
from tests.raw_service import raw
from tests.unit.clients.fakes import service
from tests.unit.clients.load.run.fleet_bench import CONNECTIONS, at_measuring, client_pids, plan_on, serving

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warmed")]


@pytest.mark.parametrize("phase", ["starting", "standing", "warm-up", "measuring", "finishing"])
def test_ctrl_c_is_kept_in_every_phase_and_as_often_as_it_comes(phase: str) -> None:
    """Ctrl-C in every phase, again and again, ends the run early with its results. No process is left."""
    pressed: list[str] = []

    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def press_in_phase(progress: Progress) -> None:
        if pressed or progress.phase == phase:
            pressed.append(progress.phase)
            press()

    watch = at_measuring(press, often=True) if phase == "measuring" else press_in_phase
    with serving("sockets") as where:
        duration_s = 0.3 if phase == "finishing" else 30.0
        result = fleet.run(plan_on("sockets", where, connections_per_client=3, duration_s=duration_s), watch)
    assert result.interrupted
    assert result.errors == {}
    assert result.began == result.recorded
    assert (result.requests[ALL].count > 0) == (phase in ("measuring", "finishing"))
    assert client_pids() == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_the_last_replies_are_waited_for_loses_nothing() -> None:
    """Ctrl-C during the wait for the last replies of a hanging server keeps the window."""
    gate = threading.Event()

    def slow(payload: bytes) -> bytes:
        gate.wait(20)
        return answer(payload)

    stocks = service()
    answer = stocks.methods[LOOKUP].answer()
    calls = itertools.count()
    lookup = raw(lambda p: answer(p) if next(calls) < 200 else slow(p))
    hanging = Service(stocks.name, {**stocks.methods, LOOKUP: lookup})

    def press(progress: Progress) -> None:
        if progress.phase == "finishing":
            os.kill(os.getpid(), signal.SIGINT)

    with serving("sockets", served=hanging) as address:
        plan = plan_on("sockets", address, connections_per_client=2, mix={"lookup": 1.0}, timeout_s=15.0)
        try:
            result = fleet.run(plan, press)
        finally:
            gate.set()
    assert (result.interrupted, result.errors) == (True, {})
    assert result.recorded >= 190
    assert result.began == result.recorded


def test_an_interrupt_does_not_wait_for_starved_clients() -> None:
    """An interruption does not wait for starved clients in their first call. They are counted as starved."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with serving("sockets", CONNECTIONS, workers=1) as where:
        result = fleet.run(plan_on("sockets", where, clients=3, duration_s=30.0), at_measuring(interrupt))
    assert (result.interrupted, result.starved_clients, result.errors) == (True, 2, {})


def test_a_client_that_dies_is_counted_as_lost() -> None:
    """The run goes on without the dead client, and counts the client among the errors."""
    with serving("sockets") as where:
        plan = plan_on("sockets", where, duration_s=1.0)
        result = fleet.run(plan, at_measuring(lambda: os.kill(client_pids()[0], signal.SIGKILL)))
    assert result.errors == {CLIENT_LOST: 1}
    assert (result.started_clients, result.starved_clients) == (2, 1)
    assert result.requests[ALL].count > 0


def test_a_client_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C a client that does not report is killed, and counted as lost."""
    monkeypatch.setattr(fleet, "INTERRUPTED_S", 0.3)

    def interrupt() -> None:
        os.kill(client_pids()[0], signal.SIGSTOP)
        raise KeyboardInterrupt

    with serving("sockets") as where:
        result = fleet.run(plan_on("sockets", where, duration_s=30.0), at_measuring(interrupt))
    assert (result.interrupted, result.errors) == (True, {CLIENT_LOST: 1})
    assert client_pids() == []


def _stay(_: object) -> None:
    signal.pause()


def test_ctrl_c_while_processes_are_waited_for_ends_them_at_once() -> None:
    """Ctrl-C during the wait kills all processes. A second ``reap`` finds no process."""
    clients = Processes()
    for _ in range(3):
        clients.start(_stay)
    pressing = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        clients.reap(20.0)
    pressing.join()
    assert client_pids() == []
    clients.reap(0.0)
