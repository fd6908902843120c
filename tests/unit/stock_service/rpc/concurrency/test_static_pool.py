"""The static pool: what it guarantees beyond what every executor does, in the order of its docstring."""

import threading
import time
import weakref
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread, get_ident

import pytest

from stock_service.rpc.concurrency import static_pool
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.errors import Overloaded
from tests.conformance.gates import TOO_SHORT_S, WAIT_S, Gate, execute, occupy, running, until


def pool_threads() -> list[Thread]:
    """The threads of all static pools."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("static-pool-")]


def asleep(pool: StaticPool, count: int) -> None:
    """Waits until so many threads sleep."""
    until(lambda: len(pool._sleeping) == count)


def set_patience(monkeypatch: pytest.MonkeyPatch, patience_s: float) -> None:
    """Makes the pool take a batch for stuck only after so long, so that nothing depends on who is quick."""
    monkeypatch.setattr(static_pool, "PATIENCE_S", patience_s)
    monkeypatch.setattr(static_pool, "_PATIENCE_NS", int(patience_s * 1e9))


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
    """Where the system gives too few threads the constructor raises, and those that it did give have ended."""
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


def test_tasks_start_in_the_order_of_acceptance() -> None:
    """One by one and in batches, first come, first served."""
    order: list[int] = []
    with running(StaticPool, 1, 100) as (pool, gate):
        occupy(pool, gate, 1)
        for first in range(0, 60, 6):
            for number in range(first, first + 3):
                pool.execute(partial(order.append, number))
            assert pool.execute_all([partial(order.append, number) for number in range(first + 3, first + 6)]) == 3
    assert order == list(range(60))


def test_a_task_goes_to_a_sleeping_thread() -> None:
    """While one thread sleeps, no task waits: each of four is handed to a thread of its own."""
    with running(StaticPool, 4, 0) as (pool, gate):
        assert isinstance(pool, StaticPool)
        asleep(pool, 4)
        for _ in range(4):
            pool.execute(gate.stand)
        gate.wait_for(4)
        with pytest.raises(Overloaded, match="0 tasks are waiting for 4 threads"):
            pool.execute(gate.stand)


def test_the_thread_that_slept_last_is_woken_first() -> None:
    """Under light load one thread does it all; where two go to sleep, the later one is taken."""
    seen: list[int] = []
    with running(StaticPool, 4, 4) as (pool, _):
        assert isinstance(pool, StaticPool)
        asleep(pool, 4)
        for number in range(20):
            pool.execute(lambda: seen.append(get_ident()))
            until(lambda number=number: len(seen) == number + 1)  # type: ignore[misc]
            asleep(pool, 4)
        assert len(set(seen)) == 1
        first, second = Gate(), Gate()
        pool.execute(first.stand)
        pool.execute(lambda: (second.stand(), seen.append(get_ident())))  # type: ignore[func-returns-value]
        first.open()
        asleep(pool, 3)
        second.open()
        asleep(pool, 4)
        pool.execute(lambda: seen.append(get_ident()))
        until(lambda: len(seen) == 22)
        assert seen[20] == seen[21] != seen[0]


def test_a_batch_that_only_computes_stays_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other threads sleep on; the caller comes back when all is done."""
    set_patience(monkeypatch, 5.0)
    seen: list[int] = []
    with running(StaticPool, 4, 100) as (pool, _):
        assert isinstance(pool, StaticPool)
        asleep(pool, 4)
        assert pool.execute_all([lambda: seen.append(get_ident())] * 50) == 50
        assert len(seen) == 50
        assert len(set(seen)) == 1


def test_without_a_gil_each_task_of_a_batch_has_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, whatever the last one did: two tasks that wait for each other both end."""
    set_patience(monkeypatch, 5 * WAIT_S)
    monkeypatch.setattr(static_pool, "has_gil", lambda: False)
    both = Barrier(2)
    met: list[int] = []
    with running(StaticPool, 2, 10) as (pool, _):
        assert isinstance(pool, StaticPool)
        asleep(pool, 2)
        assert pool.execute_all([lambda: met.append(both.wait(WAIT_S))] * 2) == 2
        until(lambda: sorted(met) == [0, 1])


def test_a_stuck_batch_goes_to_the_other_threads() -> None:
    """Where the first task of a batch blocks, the caller comes back and the others run elsewhere."""
    seen: list[int] = []
    with running(StaticPool, 3, 10) as (pool, gate):
        assert isinstance(pool, StaticPool)
        asleep(pool, 3)
        assert pool.execute_all([gate.stand, lambda: seen.append(1), gate.stand, lambda: seen.append(2)]) == 4
        gate.wait_for(2)
        until(lambda: sorted(seen) == [1, 2])
        assert gate.left == 0


def test_a_batch_that_takes_too_long_goes_to_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where tasks are taken all the while: after ``BATCH_S`` more threads are woken."""
    monkeypatch.setattr(static_pool, "PATIENCE_S", 0.005)
    monkeypatch.setattr(static_pool, "_PATIENCE_NS", int(WAIT_S * 1e9))  # a task has always just been taken
    monkeypatch.setattr(static_pool, "_BATCH_NS", 10**7)
    with running(StaticPool, 3, 10) as (pool, gate):
        assert isinstance(pool, StaticPool)
        asleep(pool, 3)
        assert pool.execute_all([gate.stand] * 3) == 3
        gate.wait_for(3)
        assert gate.left == 0


FOREVER_S = 3600.0
"""Longer than a test may take: what waits for it fails."""


def test_a_batch_is_spread_at_once_where_tasks_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task that ended last blocked: the caller comes back, while every task of the next batch stands."""
    set_patience(monkeypatch, FOREVER_S)
    monkeypatch.setattr(static_pool, "_PATIENCE_NS", 10**7)
    monkeypatch.setattr(static_pool, "_TURN_NS", 0)
    with running(StaticPool, 4, 10) as (pool, gate):
        assert isinstance(pool, StaticPool)
        asleep(pool, 4)
        pool.execute(lambda: Event().wait(0.02))
        until(lambda: pool._blocking)
        asleep(pool, 4)
        assert pool.execute_all([gate.stand] * 4) == 4
        gate.wait_for(4)
        assert gate.left == 0


def test_waiting_for_the_gil_is_no_blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task may take a turn longer for every thread that is awake, and the batch behind it stays on one thread."""
    monkeypatch.setattr(static_pool, "_PATIENCE_NS", 0)
    monkeypatch.setattr(static_pool, "_TURN_NS", int(FOREVER_S * 1e9))
    seen: list[int] = []
    with running(StaticPool, 4, 100) as (pool, gate):
        assert isinstance(pool, StaticPool)
        pool.execute(gate.stand)
        gate.wait_for(1)
        gate.open()
        asleep(pool, 4)
        assert not pool._blocking
        monkeypatch.setattr(static_pool, "PATIENCE_S", WAIT_S)
        assert pool.execute_all([lambda: seen.append(get_ident())] * 50) == 50
        assert len(set(seen)) == 1


def test_long_tasks_share_a_look_at_the_processor_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in ``LOOK_S`` one thread of all asks how long it computed, and what it finds holds for those behind it."""
    looks: list[int] = []

    def look() -> int:
        looks.append(0)
        return time.monotonic_ns()  # as if it had computed all the while

    monkeypatch.setattr(static_pool, "_PATIENCE_NS", 0)
    monkeypatch.setattr(static_pool, "_TURN_NS", 0)
    monkeypatch.setattr(static_pool, "_LOOK_NS", 60 * 10**9)
    monkeypatch.setattr(time, "thread_time_ns", look)
    with running(StaticPool, 4, 10) as (pool, gate):
        assert isinstance(pool, StaticPool)
        pool._looked_ns = time.monotonic_ns() - 61 * 10**9
        pool.execute(lambda: None)
        until(lambda: pool._computing)
        for _ in range(4):
            execute(pool, gate.stand)
        gate.wait_for(4)
        gate.open()
        asleep(pool, 4)
        assert pool._computing
        assert len(looks) == 1


def compute() -> None:
    """Computes for some milliseconds, with the GIL."""
    until_ns = time.thread_time_ns() + 4_000_000
    while time.thread_time_ns() < until_ns:
        pass


def test_a_batch_that_computes_for_long_stays_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though each of its tasks takes longer than the patience: others would only take the GIL from the one at work."""
    monkeypatch.setattr(static_pool, "_COMPUTING_NS", int(WAIT_S * 1e9))
    monkeypatch.setattr(static_pool, "_STUCK_LOOKS", 10**6)  # a busy machine may stop a thread that has no GIL
    seen: list[int] = []

    def spin() -> None:
        compute()
        seen.append(get_ident())

    with running(StaticPool, 4, 100) as (pool, _):
        assert isinstance(pool, StaticPool)
        pool.execute(compute)
        until(lambda: pool._computing)
        asleep(pool, 4)
        assert pool.execute_all([spin] * 10) == 10
        until(lambda: len(seen) == 10)
        assert len(set(seen)) == 1
        assert not pool._blocking


def test_a_stuck_batch_goes_to_others_where_tasks_compute_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last task computed, the first of this batch blocks: nobody is at the GIL, and the others run elsewhere."""
    monkeypatch.setattr(static_pool, "_COMPUTING_NS", int(FOREVER_S * 1e9))
    monkeypatch.setattr(static_pool, "_PROMPT_NS", int(WAIT_S * 1e9))  # however busy the machine is
    with running(StaticPool, 3, 10) as (pool, gate):
        assert isinstance(pool, StaticPool)
        pool.execute(compute)
        until(lambda: pool._computing)
        asleep(pool, 3)
        assert pool.execute_all([gate.stand] * 3) == 3
        gate.wait_for(3)
        assert gate.left == 0


def test_a_batch_that_computes_for_very_long_goes_to_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """After ``COMPUTING_S`` the caller comes back, and every task of it stands."""
    monkeypatch.setattr(static_pool, "_STUCK_LOOKS", 10**6)
    with running(StaticPool, 3, 10) as (pool, gate):
        assert isinstance(pool, StaticPool)
        pool.execute(compute)
        until(lambda: pool._computing)
        asleep(pool, 3)
        assert pool.execute_all([gate.stand] * 3) == 3
        gate.wait_for(3)
        assert gate.left == 0


def test_an_empty_batch_is_nothing() -> None:
    """No thread wakes and nobody waits."""
    with running(StaticPool, 1, 1) as (pool, _):
        assert pool.execute_all([]) == 0


def test_the_bound_holds_while_a_batch_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sleeping threads that a batch has been counted on are not counted on again for other tasks."""
    set_patience(monkeypatch, 0.1)
    accepted: list[int] = []
    with running(StaticPool, 4, 2) as (pool, gate):
        assert isinstance(pool, StaticPool)
        asleep(pool, 4)

        def first() -> None:
            for number in range(10):
                try:
                    pool.execute(gate.stand)
                except Overloaded:
                    break
                accepted.append(number)
            gate.stand()

        assert pool.execute_all([first, *[gate.stand] * 5]) == 6
        gate.wait_for(4)
    assert accepted == []


def test_stopping_does_not_leave_a_batch_to_a_stuck_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a batch has waiting when ``stop`` comes still runs where the first of it blocks: sleepers see to it."""
    set_patience(monkeypatch, 0.1)
    done = Event()
    results: list[bool] = []
    pool = StaticPool(2, 4)
    asleep(pool, 2)
    stopper = Thread(target=lambda: results.append(pool.stop(WAIT_S)))

    def first() -> None:
        stopper.start()
        results.append(done.wait(1.0))

    assert pool.execute_all([first, done.set]) == 2
    stopper.join(WAIT_S)
    assert results == [True, True]


def test_a_sleeping_thread_costs_no_cpu() -> None:
    """Between two tasks no thread of the pool is ever switched to."""
    with running(StaticPool, 4, 4) as (pool, _):
        assert isinstance(pool, StaticPool)
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
    """How often the threads of all pools were switched to, or how much they ran where the system does not tell."""
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
        assert isinstance(pool, StaticPool)
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


def test_what_waits_when_the_grace_is_over_never_runs() -> None:
    """A stop that gives up drops the queue, and the threads end as soon as they can."""
    pool, gate = StaticPool(1, 4), Gate()
    ran: list[int] = []
    occupy(pool, gate, 1)
    for number in range(4):
        pool.execute(partial(ran.append, number))
    assert pool.stop(TOO_SHORT_S) is False
    gate.open()
    assert pool.stop(WAIT_S) is True
    assert ran == []
