"""Checks of every executor, over a maker. ``test_executors.py`` runs them all.

``make(workers, queue_limit)`` gives a new executor. Nothing here asserts a speed.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from threading import Barrier, Event, Semaphore, Thread

import pytest

from stock_service.rpc.errors import Overloaded
from tests.conformance.executor_lifecycle import STOP_CHECKS
from tests.conformance.gates import WAIT_S, Gate, MakeExecutor, execute, occupy, running, until


def runs_as_many_as_workers_at_once(make: MakeExecutor) -> None:
    """``workers`` tasks run at the same time, on threads that are not the caller's: all of them meet."""
    met: list[int] = []
    barrier = Barrier(4)
    with running(make, 4, 4) as (executor, _):
        for _ in range(4):
            execute(executor, lambda: met.append(barrier.wait(WAIT_S)))
    assert sorted(met) == [0, 1, 2, 3]


def refuses_what_is_over_the_bound(make: MakeExecutor) -> None:
    """With every thread busy ``queue_limit`` tasks are accepted, and the next is Overloaded. Later there is room
    again."""
    with running(make, 2, 3) as (executor, gate):
        occupy(executor, gate, 2)
        for _ in range(3):
            executor.execute(gate.stand)
        for _ in range(2):
            with pytest.raises(Overloaded):
                executor.execute(gate.stand)
        gate.open()
        until(lambda: gate.left == 5)
        execute(executor, gate.stand)
    assert gate.left == 6


def takes_one_task_a_thread_without_a_queue(make: MakeExecutor) -> None:
    """With ``queue_limit`` 0 one task for each idle thread is accepted, and no more."""
    with running(make, 3, 0) as (executor, gate):
        occupy(executor, gate, 3)
        with pytest.raises(Overloaded):
            executor.execute(gate.stand)
        assert executor.execute_all([gate.stand] * 2) == 0
    assert gate.left == 3


def says_how_many_threads_are_busy(make: MakeExecutor) -> None:
    """``busy`` counts the threads that run a task: not the tasks that wait for one, and none once all have ended."""
    with running(make, 2, 3) as (executor, gate):
        assert executor.busy == 0
        occupy(executor, gate, 2)
        assert executor.busy == 2
        for _ in range(3):
            executor.execute(gate.stand)
        gate.wait_for(executor.workers - 2)
        assert (executor.busy, executor.under_way) == (executor.workers, 5)
        gate.open()
        until(lambda: executor.busy == 0)


class _Failing(logging.Handler):
    """A handler that keeps log records, and raises, as a handler of the user's may."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        raise SystemExit(record.getMessage())


def _raising(error: BaseException) -> None:
    """A task that raises."""
    raise error


def outlives_tasks_that_raise(make: MakeExecutor) -> None:
    """A task that raises is logged with its traceback, and costs no thread, even if its error cannot be logged.
    SystemExit ends the task alone."""
    log, failing = logging.getLogger("stock_service.rpc.concurrency"), _Failing()
    log.addHandler(failing)
    try:
        with running(make, 2, 8) as (executor, gate):
            for error in (ValueError("planted"), SystemExit(3)) * 2:
                execute(executor, partial(_raising, error))
            occupy(executor, gate, 2)
    finally:
        log.removeHandler(failing)
    kinds = [record.exc_info[0] for record in failing.records if record.exc_info]
    assert (kinds.count(ValueError), kinds.count(SystemExit)) == (2, 2)


def takes_tasks_from_its_tasks(make: MakeExecutor) -> None:
    """A task may execute further tasks, one by one and as a batch."""
    done = Semaphore(0)
    with running(make, 1, 8) as (executor, _):

        def outer() -> None:
            executor.execute(done.release)
            executor.execute_all([done.release] * 2)

        execute(executor, outer)
        for _ in range(3):
            assert done.acquire(timeout=WAIT_S)


def a_batch_is_accepted_up_to_the_bound(make: MakeExecutor) -> None:
    """The first tasks of a batch are accepted, up to the bound. The rest does not run."""
    ran: list[int] = []
    with running(make, 2, 3) as (executor, gate):

        def stand(number: int) -> None:
            gate.stand()
            ran.append(number)

        occupy(executor, gate, 2)
        assert executor.execute_all([partial(stand, number) for number in range(5)]) == 3
        assert executor.execute_all([partial(stand, 9)]) == 0
    assert sorted(ran) == [0, 1, 2]


def a_batch_runs_once_each(make: MakeExecutor) -> None:
    """Batches from several threads at once: every task that was accepted is run, once."""
    ran: list[int] = []
    accepted: list[int] = []
    with running(make, 3, 50) as (executor, _):

        def send(first: int) -> None:
            for start in range(first, first + 100, 20):
                tasks = [partial(ran.append, number) for number in range(start, start + 20)]
                accepted.extend(range(start, start + executor.execute_all(tasks)))

        senders = [Thread(target=send, args=(1000 * number,)) for number in range(3)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(WAIT_S)
    assert sorted(ran) == sorted(accepted)
    assert ran


def a_batch_with_a_blocking_task_goes_on(make: MakeExecutor) -> None:
    """The first task of a batch waits for the rest, which run on different threads."""
    met: list[int] = []
    barrier = Barrier(4)
    with running(make, 4, 4) as (executor, _):
        occupied = Gate()
        occupy(executor, occupied, 4)  # every thread has been at work, so that all are idle now
        occupied.open()
        until(lambda: occupied.left == 4)
        assert executor.execute_all([lambda: met.append(barrier.wait(WAIT_S))] * 4) == 4
        until(lambda: len(met) == 4)
    assert sorted(met) == [0, 1, 2, 3]


def a_task_is_not_held_up_by_a_batch(make: MakeExecutor) -> None:
    """A task that comes while a batch is stuck runs, as long as there is a thread."""
    ran = Event()
    with running(make, 3, 8) as (executor, gate):
        execute(executor, gate.stand)
        gate.wait_for(1)
        assert executor.execute_all([gate.stand]) == 1
        gate.wait_for(1)
        executor.execute(ran.set)
        assert ran.wait(WAIT_S)


CHECKS: Sequence[Callable[[MakeExecutor], None]] = (
    runs_as_many_as_workers_at_once,
    refuses_what_is_over_the_bound,
    takes_one_task_a_thread_without_a_queue,
    says_how_many_threads_are_busy,
    outlives_tasks_that_raise,
    takes_tasks_from_its_tasks,
    a_batch_is_accepted_up_to_the_bound,
    a_batch_runs_once_each,
    a_batch_with_a_blocking_task_goes_on,
    a_task_is_not_held_up_by_a_batch,
    *STOP_CHECKS,
)
"""Every check; a new executor passes them all."""
