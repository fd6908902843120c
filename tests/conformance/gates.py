"""Tasks that stand at a gate, and how an executor comes to be full of them; for the checks of executors.

Nothing here waits without a bound.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Semaphore

from stock_service.rpc.concurrency import Executor, Task
from stock_service.rpc.errors import Overloaded

MakeExecutor = Callable[[int, int], Executor]

WAIT_S = 10.0
"""A bound for what must not take long; only reached when something hangs."""

TOO_SHORT_S = 0.02
"""A grace in which a stuck task does not end, because the gate it waits for is opened later."""


class Gate:
    """A gate at which tasks wait until it is opened. It counts the tasks that came and those that left."""

    def __init__(self) -> None:
        self._open = Event()
        self._came = Semaphore(0)
        self._lock = Lock()  # guards left
        self.left = 0

    def stand(self) -> None:
        """A task: comes, waits until the gate is opened, and leaves."""
        self._came.release()
        assert self._open.wait(WAIT_S)
        with self._lock:
            self.left += 1

    def wait_for(self, count: int) -> None:
        """Blocks until this number of further tasks have come."""
        for _ in range(count):
            assert self._came.acquire(timeout=WAIT_S), "a task did not start"

    def open(self) -> None:
        """Lets all go on."""
        self._open.set()


@contextmanager
def running(make: MakeExecutor, workers: int, queue_limit: int) -> Iterator[tuple[Executor, Gate]]:
    """An executor and a gate. At the end the gate is opened and the executor stopped."""
    executor, gate = make(workers, queue_limit), Gate()
    try:
        yield executor, gate
    finally:
        gate.open()
        assert executor.stop(WAIT_S), "the executor did not stop"


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that no event tells of."""
    pause = Event()
    for _ in range(int(WAIT_S / 0.001)):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not come true")


def execute(executor: Executor, task: Task) -> None:
    """Executes where a thread may have ended its task and not be back yet."""

    def accepted() -> bool:
        try:
            executor.execute(task)
        except Overloaded:
            return False
        return True

    until(accepted)


def occupy(executor: Executor, gate: Gate, workers: int) -> None:
    """Has every thread stand at the gate."""
    for _ in range(workers):
        execute(executor, gate.stand)
    gate.wait_for(workers)
