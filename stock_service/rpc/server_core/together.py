"""Requests that are begun together, and then settled together: see ``rpc/waiting.py``."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault

Task = Callable[[], object]


class Together:
    """Tasks of one batch; the thread that ends the last of them settles, and blocks for as long as that does."""

    def __init__(self, tasks: Sequence[Task], settle: Task) -> None:
        self._settle = settle
        self._size = len(tasks)
        self._ended = count(1)  # next() of it is atomic in CPython
        self.tasks: Sequence[Task] = [partial(self._run, task) for task in tasks]

    def _run(self, task: Task) -> None:
        try:
            task()
        finally:
            if next(self._ended) == self._size:
                self._settle()

    def leave_out(self, number: int, executor: Executor) -> None:
        """Says that so many of the tasks are not run. Does not block."""
        if self._size in [next(self._ended) for _ in range(number)]:
            try:
                executor.execute(self._settle)
            except Fault:
                pass  # others wait for a thread, and the last of them settles
