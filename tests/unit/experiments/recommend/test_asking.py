"""Measurement of a server: its processes, their kind, and the order of the loads."""

import os
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from experiments.measure.others import MachineWatch
from experiments.recommend import asking
from experiments.recommend.asking import (
    NO_GIL,
    ROUNDS,
    TRIES,
    Asked,
    Server,
    by_turns,
    has_stopped,
    loaded,
    server_at,
)
from experiments.recommend.seen import Load
from experiments.recommend.started import serving
from experiments.results.observed import RoundSeen


@pytest.mark.slow
def test_the_processes_that_listen_are_found() -> None:
    """This process listens and is found as a Python with a GIL. Its processor time can be read."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_at(listening.getsockname())
    assert os.getpid() in server.pids
    assert server.processor_s() == pytest.approx(sum(os.times()[:2]), rel=0.5, abs=1)
    assert server.has_gil() == (not sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.slow
def test_where_nobody_listens_there_is_nothing_to_read() -> None:
    """Without a process on this machine processor time is None, and a GIL is assumed."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        server = server_at(held.getsockname())
    assert server.pids == ()
    assert server.processor_s() is None
    assert server.has_gil()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="programs are told by /proc")
def test_another_program_has_no_gil() -> None:
    """A program without Python has no GIL. After its end its processor time is None."""
    with subprocess.Popen(["sleep", "30"]) as process:
        try:
            assert not Server((process.pid,)).has_gil()
        finally:
            process.kill()
    assert Server((process.pid,)).processor_s() is None


@pytest.mark.parametrize(
    ("name", "free"), [("python3.13t", True), ("libpython3.14t.so.1.0", True), ("python3.13", False)]
)
def test_a_python_without_a_gil_is_told_by_its_name(name: str, free: bool) -> None:
    """A Python without a GIL has a t in its name."""
    assert bool(NO_GIL.search(f"/usr/bin/{name}")) is free


def turns(monkeypatch: pytest.MonkeyPatch, rates_hz: dict[int, list[float]], lost_ticks: int) -> dict[int, list[float]]:
    """Measures levels with planted rates by turns, and returns the rates of each level's loads. The last rate of a
    level repeats."""
    asked: dict[int, list[float]] = {level: [] for level in rates_hz}

    def load(level: int) -> Load:
        hz = rates_hz[level][min(len(asked[level]), len(rates_hz[level]) - 1)]
        asked[level].append(hz)
        return Load(level, hz, 0.1, None, 0.1)

    monkeypatch.setattr(MachineWatch, "seen", lambda _: RoundSeen(1.0, lost_ticks, 0))
    found = by_turns(tuple(rates_hz), load, "workers", lambda _: None)
    disturbed = [each.is_disturbed for level in found for each in level.rounds]
    assert disturbed == [lost_ticks > 0] * len(disturbed)
    return asked


@pytest.mark.parametrize(
    ("rates_hz", "lost_ticks", "loads"),
    [
        ({1: [40.0], 2: [90.0], 4: [100.0]}, 0, [1, 2, 2]),
        ({2: [90.0, 100.0], 4: [100.0]}, 0, [ROUNDS, ROUNDS]),
        ({2: [100.0]}, 50, [2 * TRIES]),
    ],
    ids=["far from the best", "rounds differ", "disturbed"],
)
def test_the_number_of_loads_of_each_level(
    monkeypatch: pytest.MonkeyPatch, rates_hz: dict[int, list[float]], lost_ticks: int, loads: list[int]
) -> None:
    """A level far from the best is loaded once, and another twice if its rounds agree. Rounds that differ are followed
    by more, up to a bound. A window in which other programs took half a second of a core is repeated."""
    assert [len(rounds) for rounds in turns(monkeypatch, rates_hz, lost_ticks).values()] == loads


def test_connections_stop_where_two_doublings_gain_nothing() -> None:
    """Connections stop where two doublings gain nothing, since one may be noise."""
    assert not has_stopped([100.0, 101.0])
    assert not has_stopped([100.0, 101.0, 150.0])
    assert has_stopped([100.0, 101.0, 102.0])


@pytest.mark.slow
def test_a_window_in_which_nothing_came_back_is_repeated_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window without a reply is repeated longer: a slow server and a stall of the machine look the same."""
    monkeypatch.setattr(asking, "WARM_UP_S", 0.05)
    serve = f"{sys.executable} -m experiments.services serve stock --transport sockets --io-ms 200 --store memory"
    command = f"{serve} --port {{port}}"
    with serving(command, (1,), 1, lambda at: Asked("sockets", at, None, ("GameStart",))) as servers:
        assert loaded(servers[1].asked, Server(()), 1, 0.05).throughput_hz < 10
