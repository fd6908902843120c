"""Requests that are begun together, and then settled together: see ``rpc/waiting.py``."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault

Task = Callable[[], object]


class Together:
    """Tasks of one batch, and behind the last of them that ends a task that settles.

    A task that is alone settles on its own thread, which saves waking another. Else that is a task of its own, so that
    those that gave the executor the batch see it end before.
    """

    def __init__(self, tasks: Sequence[Task], settle: Task, executor: Executor) -> None:
        self._settle = settle
        self._executor = executor
        self._size = len(tasks)
        self._ended = count(1)  # next() of it is atomic in CPython
        self.tasks: Sequence[Task] = [partial(self._run, task) for task in tasks]

    def _run(self, task: Task) -> None:
        try:
            task()
        finally:
            if next(self._ended) == self._size:
                if self._size == 1:
                    self._settle()
                else:
                    self._execute()

    def leave_out(self, number: int) -> None:
        """Says that so many of the tasks are not run. Does not block."""
        if self._size in [next(self._ended) for _ in range(number)]:
            self._execute()

    def _execute(self) -> None:
        try:
            self._executor.execute(self._settle)
        except Fault:
            pass  # others wait for a thread, and the last of them settles; or the server stops, and its catalog does
