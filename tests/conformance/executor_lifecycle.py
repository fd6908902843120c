"""Checks of the stop of every executor, over a maker; part of ``executors.CHECKS``."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread

import pytest

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Overloaded, Unavailable
from tests.conformance.gates import TOO_SHORT_S, WAIT_S, Gate, MakeExecutor, execute, occupy, until


def stop_runs_what_was_accepted(make: MakeExecutor) -> None:
    """``stop`` ends every task that was accepted before it, and says so."""
    executor, gate = make(2, 3), Gate()
    occupy(executor, gate, 2)
    assert executor.execute_all([gate.stand] * 3) == 3
    said: list[bool] = []
    stopper = Thread(target=lambda: said.append(executor.stop(WAIT_S)))
    stopper.start()
    until(lambda: _is_stopping(executor))
    assert said == []
    gate.open()
    stopper.join(WAIT_S)
    assert said == [True]
    assert gate.left == 5


def _is_stopping(executor: Executor) -> bool:
    """Tell whether the executor refuses all tasks."""
    try:
        executor.execute(lambda: None)
    except Unavailable:
        return True
    except Overloaded:
        pass
    return False


def takes_nothing_after_stop(make: MakeExecutor) -> None:
    """Once stopped, ``execute`` and ``execute_all`` raise Unavailable, and none of their tasks runs."""
    executor = make(2, 2)
    assert executor.stop(WAIT_S)
    ran: list[int] = []
    with pytest.raises(Unavailable):
        executor.execute(lambda: ran.append(1))
    with pytest.raises(Unavailable):
        executor.execute_all([lambda: ran.append(2)])
    assert ran == []


def stops_twice(make: MakeExecutor) -> None:
    """``stop`` may be repeated, with any grace, from two threads at once, and on an executor that ran nothing."""
    executor, gate = make(2, 2), Gate()
    occupy(executor, gate, 2)
    said: list[bool] = []
    stoppers = [Thread(target=lambda: said.append(executor.stop(WAIT_S))) for _ in range(2)]
    for stopper in stoppers:
        stopper.start()
    gate.open()
    for stopper in stoppers:
        stopper.join(WAIT_S)
    assert [*said, executor.stop(WAIT_S), executor.stop(0)] == [True] * 4
    assert make(2, 2).stop(WAIT_S)


def stop_gives_up_a_stuck_task(make: MakeExecutor) -> None:
    """With a task that does not end, ``stop`` returns False, and waiting tasks never begin. Later ``stop`` returns
    True."""
    executor, gate = make(1, 4), Gate()
    begun: list[int] = []

    def stand(number: int) -> None:
        begun.append(number)
        gate.stand()

    occupy(executor, gate, 1)
    executor.execute_all([partial(stand, number) for number in range(3)])
    assert executor.stop(TOO_SHORT_S) is False
    at_the_end = list(begun)
    gate.open()
    assert executor.stop(WAIT_S) is True
    assert begun == at_the_end


class _EndsSlowly:
    """A thread's own value that keeps the thread from ending, once it is done, until a gate is opened."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __del__(self) -> None:
        self._gate.stand()


def stop_waits_for_the_threads_themselves(make: MakeExecutor) -> None:
    """``stop`` says True only once threads have ended, not when their last task has."""
    executor, gate = make(1, 1), Gate()
    own = threading.local()

    def task() -> None:
        own.value = _EndsSlowly(gate)

    execute(executor, task)
    in_time = executor.stop(TOO_SHORT_S)
    gate.open()
    assert executor.stop(WAIT_S)
    gate.wait_for(1)
    assert in_time is False


STOP_CHECKS: Sequence[Callable[[MakeExecutor], None]] = (
    stop_runs_what_was_accepted,
    takes_nothing_after_stop,
    stops_twice,
    stop_gives_up_a_stuck_task,
    stop_waits_for_the_threads_themselves,
)
"""Every check of this file."""
