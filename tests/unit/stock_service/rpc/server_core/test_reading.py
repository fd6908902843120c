"""Which thread reads: the one that runs requests, until one of them does not end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import current_thread

import pytest

from stock_service.rpc.concurrency.static_pool import LEARNT, StaticPool, Task
from stock_service.rpc.concurrency.thread_pool import ThreadPool
from stock_service.rpc.server_core import reading
from stock_service.rpc.server_core.reading import Reading
from tests.conformance.gates import WAIT_S, Gate, until


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much time is between two batches, it is little."""
    monkeypatch.setattr(reading, "NEAR_NS", 10**15)


class Reader:
    """Reads batches of tasks from a queue, and has them executed; an empty one is the end."""

    def __init__(self, pool: StaticPool, runs: bool = True) -> None:
        self.pool = pool
        self.batches: SimpleQueue[list[Task]] = SimpleQueue()
        self.seen: list[str] = []
        """The threads that read, batch by batch."""
        self.ended = 0
        self.reading = Reading(pool, runs, self._read, self._end)

    def _read(self) -> None:
        while batch := self.batches.get(timeout=WAIT_S):
            self.seen.append(current_thread().name)
            assert self.reading.execute_all(batch) == len(batch), "the pool's queue was full"

    def _end(self) -> None:
        self.ended += 1

    def teach(self) -> None:
        """Has the pool learn that tasks are short; waits until all were run."""
        ran: list[None] = []
        for _ in range(LEARNT):
            self.batches.put([lambda: ran.append(None)])
        until(lambda: len(ran) == LEARNT)
        until(lambda: len(self.pool._sleeping) == self.pool.workers)
        self.pool._lends_from = self.pool._lends_from_ns = 0  # whatever a busy machine made of that

    def stand(self, gate: Gate, *behind: Task) -> None:
        """Has the thread that reads stand at a gate, with tasks behind it."""
        where: list[str] = []
        while where[-1:] not in (["server-reader"], ["server-relief"]):
            self.teach()
            one: Gate = Gate()
            number = len(where)
            self.batches.put([lambda: where.append(current_thread().name), one.open])
            until(lambda number=number: len(where) > number)  # type: ignore[misc]
        self.teach()
        self.batches.put([gate.stand, *behind])
        gate.wait_for(1)


@contextmanager
def reader(workers: int = 2, runs: bool = True) -> Iterator[Reader]:
    """One that reads; in the end it is stopped, with its pool."""
    pool = StaticPool(workers, 100)
    made = Reader(pool, runs)
    made.reading.start()
    try:
        yield made
    finally:
        made.batches.put([])
        assert made.reading.over.wait(WAIT_S)
        made.reading.join(WAIT_S)
        assert made.ended == 1
        assert pool.stop(WAIT_S)


def test_short_requests_are_run_by_the_thread_that_reads() -> None:
    """Once the pool has learnt that they are; before that its own threads run them."""
    threads: list[str] = []

    def note() -> None:
        threads.append(current_thread().name)

    with reader() as made:
        made.batches.put([note])
        until(lambda: len(threads) == 1)
        assert threads[0].startswith("static-pool")

        def read_here() -> bool:
            made.teach()
            number = len(threads)
            made.batches.put([note])
            until(lambda: len(threads) > number)
            return threads[-1] == "server-reader"

        until(read_here)


@pytest.mark.parametrize("workers", [1, 2])
def test_while_a_request_waits_another_thread_reads(workers: int) -> None:
    """And the pool runs what was behind it, as far as it has threads left. Then the first looks on, and so on."""
    gates = [Gate() for _ in range(3)]
    with reader(workers) as made:
        try:
            for gate in gates:
                made.stand(gate)
                at_work, behind = Gate(), len(made.seen)
                made.batches.put([at_work.stand])
                until(lambda behind=behind: len(made.seen) > behind)  # type: ignore[misc]
                assert made.seen[-1] != made.seen[-2]
                if workers == 1:
                    until(lambda: made.pool.waiting == 1)
                    gate.open()
                at_work.wait_for(1)
                gate.open()
                at_work.open()
            assert {*made.seen} == {"server-reader", "server-relief"}
        finally:
            for gate in gates:
                gate.open()


def test_requests_that_come_now_and_then_are_left_to_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """So whoever looks on sleeps: it would have to wake for each."""
    monkeypatch.setattr(reading, "NEAR_NS", 0)
    with reader() as made:
        made.teach()
        made.teach()
        assert made.pool.worked_on == 0


def test_what_waits_behind_a_request_is_run_by_the_pool() -> None:
    """Though nothing more is read: whoever takes over sees to it."""
    gate, threads = Gate(), SimpleQueue[str]()
    with reader() as made:
        try:
            made.stand(gate, lambda: threads.put(current_thread().name))
            assert threads.get(timeout=WAIT_S).startswith("static-pool")
            assert gate.left == 0
        finally:
            gate.open()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_end_that_fails_is_an_end() -> None:
    """Whoever stops the server waits for it, and for both threads."""
    pool = StaticPool(1, 1)

    def end() -> None:
        raise OSError("planted")

    made = Reading(pool, True, lambda: None, end)
    made.start()
    assert made.over.wait(WAIT_S)
    made.join(time.monotonic() + WAIT_S)
    assert not any(thread.is_alive() for thread in made._threads)
    assert pool.stop(WAIT_S)


def test_reading_ends_while_a_request_waits() -> None:
    """Nobody waits for its thread longer than is asked for, and it ends behind its request."""
    gate = Gate()
    pool = StaticPool(1, 100)
    made = Reader(pool)
    made.reading.start()
    made.stand(gate)
    made.batches.put([])
    assert made.reading.over.wait(WAIT_S)
    made.reading.join(0)
    assert not pool.stop(0.01)
    gate.open()
    made.reading.join(WAIT_S * 1e3)
    assert pool.stop(WAIT_S)
    assert made.ended == 1


def test_one_thread_reads_where_it_runs_nothing() -> None:
    """It is told so, or the executor is another one."""
    pool = ThreadPool(2, 10)
    ran: list[str] = []
    made_alone = Reading(pool, True, lambda: None, lambda: None)
    assert made_alone.execute_all([lambda: ran.append(current_thread().name)]) == 1
    assert pool.stop(WAIT_S)
    assert ran != [current_thread().name]
    with reader(runs=False) as made:
        made.teach()
        made.teach()
        assert not made.reading.ran
        assert {*made.seen} == {"server-reader"}
