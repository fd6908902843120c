"""A new thread for every task, up to a bound: what a pool saves is the difference."""

import logging
import time
from collections.abc import Sequence
from threading import Condition, Thread

from stock_service.concurrency.batch import execute_each
from stock_service.concurrency.static_pool import Task
from stock_service.errors import Overloaded, Unavailable

_log = logging.getLogger(__name__)


class ThreadPerTask:
    """Runs each task on a thread of its own. Nothing waits: at most ``workers + queue_limit`` threads run at a time,
    so that it takes as much as a pool of that size and queue would. Safe to use from any thread.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self._limit = workers + queue_limit
        self._changed = Condition()  # guards _running, _stopping; notified when a thread ends
        self._running = 0
        self._stopping = False

    def execute(self, task: Task) -> None:
        """Has a new thread call ``task``. Raises Overloaded at the bound, Unavailable once stopping."""
        with self._changed:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if self._running >= self._limit:
                raise Overloaded(f"{self._limit} threads are running")
            self._running += 1
        try:
            Thread(target=self._run, args=(task,), name="thread-per-task").start()
        except RuntimeError as error:  # the system has no thread to give
            self._ended()
            raise Overloaded(f"no further thread: {error}") from error

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Has threads call ``tasks``; gives how many were accepted before one found no room. Never blocks."""
        return execute_each(self.execute, tasks)

    def stop(self, grace_s: float) -> bool:
        """Waits for the tasks that run, and says whether all ended within ``grace_s``. May be repeated."""
        deadline_s = time.monotonic() + grace_s
        with self._changed:
            self._stopping = True
            while self._running:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    return self._running == 0
        return True

    def _run(self, task: Task) -> None:
        try:
            task()
        except Exception:
            _log.exception("a task raised")
        finally:
            self._ended()

    def _ended(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()
