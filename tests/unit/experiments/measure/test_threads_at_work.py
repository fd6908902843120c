"""Threads of a pool that ran requests, found by their names in the kernel and their processor time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import SimpleNamespace
from typing import cast

import pytest

from experiments.design.arms import ServerKey
from experiments.measure.programs import Program
from experiments.measure.slices import SHARED_S, Servers, Spent, look, threads_at_work, threads_cpu_s
from stock_service.rpc.concurrency.executor import tell_name

PREFIX = "planted"
WAIT_S = 10.0


@contextmanager
def pool(*computes_s: float) -> Iterator[None]:
    """Threads that have computed for these times. The threads live until ``with`` ends."""
    over, done = Event(), [Event() for _ in computes_s]

    def live(number: int) -> None:
        tell_name()
        while time.thread_time() < computes_s[number]:
            pass
        done[number].set()
        over.wait(WAIT_S)

    threads = [Thread(target=live, args=(number,), name=f"{PREFIX}-{number}") for number in range(len(computes_s))]
    for thread in threads:
        thread.start()
    try:
        assert all(each.wait(WAIT_S) for each in done)
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(WAIT_S)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("computes_s", "number"), [((0.2, 0, 0), 1), ((0.1, 0.15, 0), 2), ((SHARED_S / 3, 0, 0), None)]
)
def test_threads_that_computed_are_counted(computes_s: tuple[float, ...], number: int | None) -> None:
    """Threads that computed are counted. Too little processor time gives no count."""
    with pool(*computes_s):
        assert threads_at_work({}, threads_cpu_s([os.getpid()], PREFIX)) == number


@pytest.mark.slow
def test_a_server_is_looked_at_from_where_its_measured_part_began() -> None:
    """Processor time before the measured part is left out of the count."""
    key: ServerKey = ((("executor", PREFIX),), 0)
    readings = dict.fromkeys(("threads", "memory_mib"), lambda: 1) | {"user_and_kernel_s": lambda: (1.0, 1.0)}
    program = cast(Program, SimpleNamespace(pids=(os.getpid(),), connections=lambda _: 1, **readings))
    servers = Servers({key: ("127.0.0.1", 1)}, {key: program}, {})
    with pool(0.1, 0.1):
        seen, since = look(servers, key), look(servers, key, Spent.so_far(program, key))
    assert seen is not None
    assert since is not None
    assert (seen.at_work, since.at_work) == (2, None)


def test_threads_of_another_name_and_processes_that_are_gone_count_as_nothing() -> None:
    """Threads with another name, and ended processes, give no count."""
    assert threads_at_work({}, threads_cpu_s([os.getpid(), 2**22 - 1], "no-such-thread")) is None


def test_what_threads_computed_before_the_measured_part_does_not_count() -> None:
    """Only processor time after the first reading counts. A new thread counts with all its time."""
    before_s = {1: 1.0, 2: 1.0, 3: 1.0}
    assert threads_at_work({}, {1: 2.0, 2: 1.0, 3: 1.0}) == 3
    assert threads_at_work(before_s, {1: 2.0, 2: 1.0, 3: 1.0}) == 1
    assert threads_at_work(before_s, {1: 1.5, 2: 1.0, 3: 1.0, 4: 0.5}) == 2
    assert threads_at_work(before_s, {1: 1.0 + SHARED_S / 2, 2: 1.0, 3: 1.0}) is None
