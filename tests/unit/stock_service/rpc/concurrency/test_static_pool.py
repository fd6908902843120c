"""The static pool: its guarantees beyond those of every executor, in the order of its docstring."""

import threading
import time
import weakref
from functools import partial
from pathlib import Path
from threading import Event, Thread, get_ident

import pytest

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.concurrency.thread_pool import ThreadPool
from tests.conformance.gates import Gate, MakeExecutor, execute, occupy, running, until


def pool_threads() -> list[Thread]:
    """The threads of all static pools."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("static-pool-")]


def asleep(pool: Executor, count: int) -> None:
    """Waits until this number of threads sleep."""
    assert isinstance(pool, StaticPool)
    until(lambda: len(pool._sleeping) == count)


def test_all_threads_are_there_from_the_start() -> None:
    """The constructor starts every thread, named and no daemon, and no more come with work."""
    with running(StaticPool, 3, 9) as (pool, gate):
        at_first = pool_threads()
        assert sorted(thread.name for thread in at_first) == ["static-pool-0", "static-pool-1", "static-pool-2"]
        assert not any(thread.daemon for thread in at_first)
        occupy(pool, gate, 3)
        pool.execute_all([gate.stand] * 9)
        assert pool_threads() == at_first


def test_a_pool_that_cannot_have_its_threads_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructor raises where the system gives too few threads, and the given threads have ended."""
    before = set(threading.enumerate())
    start = Thread.start
    started: list[Thread] = []

    def start_two(thread: Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", start_two)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            StaticPool(4, 4)
    assert len(started) == 2
    until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("kind", [StaticPool, ThreadPool])
def test_tasks_start_in_the_order_of_acceptance(kind: MakeExecutor) -> None:
    """Tasks start in the order of acceptance, one by one and in batches."""
    order: list[int] = []
    with running(kind, 1, 100) as (pool, gate):
        occupy(pool, gate, 1)
        for first in range(0, 60, 6):
            for number in range(first, first + 3):
                pool.execute(partial(order.append, number))
            assert pool.execute_all([partial(order.append, number) for number in range(first + 3, first + 6)]) == 3
    assert order == list(range(60))


def test_the_thread_that_slept_last_is_woken_first() -> None:
    """Under light load one thread does it all; where two go to sleep, the later one is taken."""
    seen: list[int] = []
    with running(StaticPool, 4, 4) as (pool, _):
        asleep(pool, 4)
        for number in range(20):
            pool.execute(lambda: seen.append(get_ident()))
            until(lambda number=number: len(seen) == number + 1)  # type: ignore[misc]
            asleep(pool, 4)
        assert len(set(seen)) == 1
        first, second = Gate(), Gate()
        pool.execute(first.stand)
        first.wait_for(1)
        pool.execute(lambda: (second.stand(), seen.append(get_ident())))  # type: ignore[func-returns-value]
        second.wait_for(1)
        first.open()
        asleep(pool, 3)
        second.open()
        asleep(pool, 4)
        pool.execute(lambda: seen.append(get_ident()))
        until(lambda: len(seen) == 22)
        assert seen[20] == seen[21] != seen[0]


def test_no_more_tasks_are_accepted_than_idle_threads_and_the_queue_take() -> None:
    """A thread that was woken for a task is not counted on again for another."""
    with running(StaticPool, 4, 2) as (pool, gate):
        asleep(pool, 4)
        assert pool.execute_all([gate.stand] * 10) == 6
        assert pool.under_way == pool.limit == 6
        gate.wait_for(4)
        assert pool.under_way == 6


def test_a_sleeping_thread_costs_no_cpu() -> None:
    """Between two tasks no thread of the pool is ever switched to."""
    with running(StaticPool, 4, 4) as (pool, _):
        execute(pool, get_ident)
        asleep(pool, 4)
        idle_switches = -1
        for _ in range(100):  # a thread counts as asleep a moment before it is
            before = switches()
            Event().wait(0.02)
            idle_switches = switches() - before
            if idle_switches == 0:
                break
        assert idle_switches == 0


def switches() -> int:
    """The number of switches to the threads of all pools, or their run time where the system does not tell."""
    count = 0
    for thread in pool_threads():
        status = Path(f"/proc/self/task/{thread.native_id}/status")
        if not status.exists():
            assert thread.ident is not None
            count += int(time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) * 1e9)
            continue
        for line in status.read_text().splitlines():
            if "ctxt_switches" in line:
                count += int(line.split()[1])
    return count


class Held:
    """Something that a task holds on to."""

    def task(self) -> None:
        """Does nothing."""


def test_a_task_is_let_go_when_it_has_ended() -> None:
    """A sleeping thread keeps nothing alive that its last task held, taken from the queue or handed over."""
    with running(StaticPool, 1, 4) as (pool, gate):
        asleep(pool, 1)
        handed, queued = Held(), Held()
        references = [weakref.ref(handed), weakref.ref(queued)]
        pool.execute(handed.task)
        asleep(pool, 1)
        occupy(pool, gate, 1)
        pool.execute(queued.task)
        del handed, queued
        gate.open()
        until(lambda: [reference() for reference in references] == [None, None])
        asleep(pool, 1)


def test_an_empty_batch_is_nothing() -> None:
    """An empty batch wakes no thread."""
    with running(StaticPool, 1, 1) as (pool, _):
        assert pool.execute_all([]) == 0
