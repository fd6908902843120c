"""An executor with a new thread for every task, up to a bound. A comparison with a pool shows the time that a pool
saves.
"""

from collections import deque
from collections.abc import Sequence
from threading import Lock, Thread, current_thread

from stock_service.rpc.concurrency.executor import Task, ended, execute_each, reading_thread, run
from stock_service.rpc.errors import Overloaded, Unavailable


class ThreadPerTask:
    """Runs each task on a thread of its own, at once. Safe to use from any thread.

    At most ``workers + queue_limit`` threads run at a time: a pool with these numbers takes equally many tasks.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers = self.limit = workers + queue_limit
        self._lock = Lock()  # guards everything below
        self._running: set[Thread] = set()
        self._leaving: deque[Thread] = deque()  # threads whose task has ended, and which may still run
        self._stopping = False

    @property
    def under_way(self) -> int:
        """Number of tasks that run, each on its own thread."""
        return len(self._running)

    busy = under_way
    """The same number: no task waits."""

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a new thread. Raises Overloaded at the bound, and Unavailable after ``stop``."""
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
            except RuntimeError as error:  # the system refuses another thread
                raise Overloaded(f"no further thread: {error}") from error
            self._running.add(thread)

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to threads, up to the bound; returns the number of tasks accepted. Never blocks."""
        return execute_each(self.execute, tasks)

    reader = staticmethod(reading_thread)
    """A thread that reads and runs no request; see ``Executor.reader``."""

    def stop(self, grace_s: float) -> bool:
        """Waits for the tasks that run; returns True if all of them ended within ``grace_s``. May be repeated."""
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
