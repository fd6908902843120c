"""Asking a server: which processes it is, what they are, and which response times count."""

import os
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from clients.load.record.times import Times
from experiments.recommend import asking
from experiments.recommend.asking import NO_GIL, Asked, Server, loaded, rounds_within, server_at, usual_s
from experiments.recommend.started import serving


@pytest.mark.slow
def test_the_processes_that_listen_are_found() -> None:
    """This one does, and it is a Python with a GIL; its processor time can be read, and the kernel's part of it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_at(listening.getsockname())
    assert os.getpid() in server.pids
    assert server.processor_s() == pytest.approx(sum(os.times()[:2]), rel=0.5, abs=1)
    kernel_s, all_s = server.kernel_s()
    assert 0 <= kernel_s <= all_s
    assert server.has_gil() == (not sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.slow
def test_where_nobody_listens_there_is_nothing_to_read() -> None:
    """Nor for a server elsewhere: processor time is None, and a GIL is assumed."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        server = server_at(held.getsockname())
    assert server.pids == ()
    assert server.processor_s() is None
    assert server.has_gil()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="programs are told by /proc")
def test_another_program_has_no_gil() -> None:
    """One that has no Python in it."""
    with subprocess.Popen(["sleep", "30"]) as process:
        try:
            assert not Server((process.pid,)).has_gil()
        finally:
            process.kill()


def test_a_server_that_is_gone_cannot_be_read() -> None:
    """Its processor time is None."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert Server((process.pid,)).processor_s() is None


@pytest.mark.parametrize(
    ("name", "free"), [("python3.13t", True), ("libpython3.14t.so.1.0", True), ("python3.13", False)]
)
def test_a_python_without_a_gil_is_told_by_its_name(name: str, free: bool) -> None:
    """Its build has a t."""
    assert bool(NO_GIL.search(f"/usr/bin/{name}")) is free


def test_a_stall_of_the_machine_is_in_no_usual_time() -> None:
    """One response in a hundred may take as long as it likes: mean and deviation are those of the others."""
    times = Times()
    times.record(np.array([1_000_000] * 99 + [2_000_000] * 99 + [10**9] * 2))
    mean_s, deviation_s = usual_s(times)
    assert mean_s == pytest.approx(0.0015, rel=0.002)
    assert deviation_s == pytest.approx(0.0005, rel=0.01)


def test_a_slow_server_gets_fewer_rounds() -> None:
    """So that an answer comes in time; never none."""
    assert [rounds_within(45.0, window_s, 8, 3) for window_s in (0.6, 2.0, 3.0)] == [3, 2, 1]
    assert rounds_within(10.0, 3.0, 8, 3) == 1


@pytest.mark.slow
def test_a_window_in_which_nothing_came_back_is_repeated_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reply takes longer than the first window: a stall of the machine looks the same."""
    monkeypatch.setattr(asking, "WARM_UP_S", 0.05)
    serve = f"{sys.executable} -m experiments.services serve stock --transport sockets --io-ms 200 --store memory"
    with serving(f"{serve} --port {{port}}", 1) as at:
        assert loaded(Asked("sockets", at, None, ("GameStart",)), Server(()), 1, 0.05).throughput_hz < 10
