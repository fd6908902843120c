"""A new thread for every task, up to a bound: what a pool saves is the difference."""

from collections import deque
from collections.abc import Sequence
from threading import Lock, Thread, current_thread

from stock_service.rpc.concurrency.executor import Task, ended, execute_each, reading_thread, run
from stock_service.rpc.errors import Overloaded, Unavailable


class ThreadPerTask:
    """Runs each task on a thread of its own, at once. Safe to use from any thread.

    At most ``workers + queue_limit`` threads run at a time: as many tasks as a pool of that size and queue takes.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers = self.limit = workers + queue_limit
        self._lock = Lock()  # guards everything below
        self._running: set[Thread] = set()
        self._leaving: deque[Thread] = deque()  # their task has ended, they themselves perhaps not yet
        self._stopping = False

    @property
    def under_way(self) -> int:
        """Tasks that run: each has a thread."""
        return len(self._running)

    busy = under_way
    """The same: no task waits."""

    def execute(self, task: Task) -> None:
        """Has a new thread call ``task``. Raises Overloaded at the bound, Unavailable once stopping."""
        thread = Thread(target=self._run, args=(task,), name="thread-per-task")
        with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if len(self._running) >= self.limit:
                raise Overloaded(f"{self.limit} threads are running")
            while self._leaving and not self._leaving[0].is_alive():
                self._leaving.popleft()
            try:
                thread.start()  # with the lock held, so that stop sees no thread that has yet to start
            except RuntimeError as error:  # the system has no thread to give
                raise Overloaded(f"no further thread: {error}") from error
            self._running.add(thread)

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Has threads call ``tasks``; gives how many were accepted before one found no room. Never blocks."""
        return execute_each(self.execute, tasks)

    reader = staticmethod(reading_thread)
    """A thread that reads and runs no request; see ``Executor.reader``."""

    def stop(self, grace_s: float) -> bool:
        """Waits for the tasks that run, and says whether all ended within ``grace_s``. May be repeated."""
        with self._lock:
            self._stopping = True
            threads = [*self._running, *self._leaving]
        return ended(threads, grace_s)

    def _run(self, task: Task) -> None:
        run(task)
        thread = current_thread()
        with self._lock:
            self._running.discard(thread)
            self._leaving.append(thread)
