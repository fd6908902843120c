"""Every executor of the table keeps what an executor promises, and the checks refuse executors that do not."""

from collections import deque
from collections.abc import Callable, Sequence
from threading import Thread

import pytest

from stock_service.rpc.concurrency import EXECUTORS, Task
from stock_service.rpc.errors import Overloaded
from tests.conformance.executor_lifecycle import takes_nothing_after_stop
from tests.conformance.executors import CHECKS, refuses_what_is_over_the_bound
from tests.conformance.gates import MakeExecutor


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", EXECUTORS)
def test_executor(name: str, check: Callable[[MakeExecutor], None]) -> None:
    """The executor passes the check, whose docstring states the fact."""
    check(EXECUTORS[name])


class Careless:
    """A thread for each task, whose count is wrong by one: a stop neither waits for the task nor is hindered by it."""

    def __init__(self, workers: int, queue_limit: int) -> None:
        self._room = workers + queue_limit + 1
        self._threads: deque[Thread] = deque(maxlen=100)

    def execute(self, task: Task) -> None:
        if len([thread for thread in self._threads if thread.is_alive()]) >= self._room:
            raise Overloaded("full")
        thread = Thread(target=task)
        thread.start()
        self._threads.append(thread)

    def execute_all(self, tasks: Sequence[Task]) -> int:
        for task in tasks:
            self.execute(task)
        return len(tasks)

    def stop(self, grace_s: float) -> bool:
        return True


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (Careless, refuses_what_is_over_the_bound),
        (Careless, takes_nothing_after_stop),
    ],
    ids=["one too many", "after stop"],
)
def test_a_wrong_executor_is_refused(make: MakeExecutor, check: Callable[[MakeExecutor], None]) -> None:
    """The checks can fail."""
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(make)
