"""Which threads of a pool ran requests, by their names in the kernel and their processor time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from experiments.measure.block import SHARED_S, threads_at_work
from stock_service.rpc.concurrency.executor import tell_name

PREFIX = "planted"
WAIT_S = 10.0


@contextmanager
def pool(*computes_s: float) -> Iterator[None]:
    """Threads of which each has computed for so long; they last until ``with`` ends."""
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
    """A thread that only slept is not; of too little nothing is said."""
    with pool(*computes_s):
        assert threads_at_work([os.getpid()], PREFIX) == number


def test_threads_of_another_name_and_processes_that_are_gone_count_as_nothing() -> None:
    """Nothing is known then."""
    assert threads_at_work([os.getpid(), 2**22 - 1], "no-such-thread") is None
