"""Places that the static pool lends: who may run tasks itself, when, and that the pool's size stays what it is."""

import time
from functools import partial
from threading import Event, Thread, get_ident

import pytest

from stock_service.rpc.concurrency import static_pool
from stock_service.rpc.concurrency.static_pool import LEARNT, StaticPool
from tests.conformance.gates import WAIT_S, Gate, until


def nothing() -> None:
    """A task that is short."""


def taught(workers: int = 2, queue_limit: int = 100) -> StaticPool:
    """A pool of which all threads sleep, and that has had so many short tasks that it lends places."""
    pool = StaticPool(workers, queue_limit)
    teach(pool)
    return pool


def teach(pool: StaticPool) -> None:
    """Gives a pool as many short tasks as it needs, and waits until its threads sleep."""
    for _ in range(LEARNT):
        assert pool.execute_all([nothing]) == 1
    until(lambda: len(pool._sleeping) == pool.workers)


def lent(pool: StaticPool, *tasks: static_pool.Task) -> static_pool._Sleeper:
    """A place: until the pool lends one, for a busy machine may make a short task long."""
    places = []

    def borrowed() -> bool:
        place = pool.lend(tasks)
        if place is None:
            teach(pool)
            return False
        places.append(place)
        return True

    until(borrowed)
    return places[0]


def test_whoever_has_a_place_runs_what_waits_itself() -> None:
    """In order, on its own thread, and all threads of the pool may sleep afterwards."""
    pool = taught()
    seen: list[tuple[int, int]] = []

    def note(number: int) -> None:
        seen.append((number, get_ident()))

    try:
        place = lent(pool, *[partial(note, number) for number in range(5)])
        assert pool.waiting == 5
        before = pool.worked_on
        pool.work_on(place)
        until(lambda: len(seen) == 5)  # a busy machine may make one long: then the pool runs the rest
        assert [number for number, _ in seen] == list(range(5))
        assert seen[0][1] == get_ident()
        assert 1 <= pool.worked_on - before <= 5
        until(lambda: len(pool._sleeping) == pool.workers)
    finally:
        assert pool.stop(WAIT_S)


def test_a_place_is_lent_once_tasks_were_short() -> None:
    """A new pool lends none before ``LEARNT`` tasks of batches were. What is offered with no place lent is not kept."""
    pool = StaticPool(2, 10)
    try:
        until(lambda: len(pool._sleeping) == 2)
        assert pool.lend([nothing]) is None
        pool.execute_all([nothing])
        until(lambda: len(pool._sleeping) == 2)
        assert pool.lend([nothing]) is None
        assert pool.waiting == 0
        pool.work_on(lent(pool, nothing))
    finally:
        assert pool.stop(WAIT_S)


def test_after_a_long_task_none_is_lent_for_a_while() -> None:
    """Whoever ran it: by time, and by the number of short ones."""
    pool = taught()
    try:
        pool.work_on(lent(pool, partial(time.sleep, 0.002)))
        assert pool._batched < pool._lends_from
        assert pool._lends_from_ns > time.monotonic_ns() + 50 * 1_000_000
        assert pool.lend([nothing]) is None
        teach(pool)
        pool._lends_from_ns = time.monotonic_ns() + 10**12
        assert pool.lend([nothing]) is None
        pool._lends_from_ns = 0
        pool.work_on(lent(pool, nothing))
        pool._lends_from = 0
        pool.execute(partial(time.sleep, 0.002))
        until(lambda: pool._lends_from > 0)
    finally:
        assert pool.stop(WAIT_S)


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_tasks_run_than_there_are_threads(workers: int) -> None:
    """The one that runs on a lent place counts: its thread sleeps until then, and takes the next behind it."""
    pool, gate, more = taught(workers), Gate(), Gate()
    try:
        place = lent(pool, gate.stand)
        helper = Thread(target=pool.work_on, args=(place,))
        helper.start()
        gate.wait_for(1)
        assert pool.lend([nothing]) is None
        for _ in range(workers):
            pool.execute(more.stand)
        more.wait_for(workers - 1)
        assert pool.waiting == 1
        assert pool._sleeping == []
        gate.open()
        more.wait_for(1)
        more.open()
        helper.join(WAIT_S)
    finally:
        gate.open()
        more.open()
        assert pool.stop(WAIT_S)


def test_a_long_task_leaves_the_rest_to_the_pool() -> None:
    """Its own thread goes on with what waited behind it."""
    pool = taught()
    threads: list[int] = []
    try:
        pool.work_on(lent(pool, partial(time.sleep, 0.002), lambda: threads.append(get_ident())))
        until(lambda: bool(threads))
        assert threads != [get_ident()]
    finally:
        assert pool.stop(WAIT_S)


def test_after_a_while_the_rest_is_left_to_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short tasks are: whoever runs them has something else to do."""
    monkeypatch.setattr(static_pool, "_BATCH_NS", 0)
    pool = taught()
    done = Event()
    try:
        before = pool.worked_on
        pool.work_on(lent(pool, nothing, done.set))
        assert pool.worked_on <= before + 1
        assert done.wait(WAIT_S)
    finally:
        assert pool.stop(WAIT_S)


def test_none_is_lent_without_a_gil_without_room_and_once_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself is enough."""
    monkeypatch.setattr(static_pool, "has_gil", lambda: False)
    free = taught()
    assert free.lend([nothing]) is None
    assert free.stop(WAIT_S)
    monkeypatch.undo()
    pool = taught(2, 3)
    assert pool.lend([nothing] * 6) is None
    assert pool.waiting == 0
    pool.work_on(lent(pool, *[nothing] * 5))
    assert pool.stop(WAIT_S)
    assert pool.lend([nothing]) is None


def test_a_stop_waits_for_a_place_that_is_lent() -> None:
    """What was accepted still runs, and the thread whose place it was ends behind it."""
    pool, gate = taught(1), Gate()
    done = Event()
    place = lent(pool, gate.stand, done.set)
    helper = Thread(target=pool.work_on, args=(place,))
    helper.start()
    gate.wait_for(1)
    assert not pool.stop(0.01)
    gate.open()
    helper.join(WAIT_S)
    assert pool.stop(WAIT_S)
    assert gate.left == 1


def test_a_task_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever runs it here goes on."""
    pool = taught()
    done = Event()
    try:
        pool.work_on(lent(pool, lambda: 1 / 0, done.set))
        assert done.wait(WAIT_S)
        assert "a task raised" in caplog.text
    finally:
        assert pool.stop(WAIT_S)
