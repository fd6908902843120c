"""An executor that starts a new thread for every task, up to a limit. A comparison with a pool shows the time that a
pool saves.
"""

from collections import deque
from collections.abc import Sequence
from threading import Lock, Thread, current_thread

from stock_service.rpc.concurrency.executor import Task, ended, execute_each, reading_thread, run
from stock_service.rpc.errors import Overloaded, Unavailable


class ThreadPerTask:
    """Executor that runs each task at once, on a thread of its own. Thread-safe.

    At most ``workers + queue_limit`` tasks run at a time. So this executor accepts as many tasks as a pool with the
    same two arguments.
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
    """Number of tasks that run. The number is equal to ``under_way``, since no task waits."""

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a new thread. Raises Overloaded if ``limit`` tasks run, and Unavailable after ``stop``."""
        thread = Thread(target=self._run, args=(task,), name="thread-per-task")
        with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if len(self._running) >= self.limit:
                raise Overloaded(f"{self.limit} threads are running")
            while self._leaving and not self._leaving[0].is_alive():
                self._leaving.popleft()
            try:
                thread.start()  # with the lock held, so that ``stop`` waits only for threads that were started
            except RuntimeError as error:  # the system refuses another thread
                raise Overloaded(f"no further thread: {error}") from error
            self._running.add(thread)

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to new threads, up to ``limit``. Returns the number of accepted tasks. Never blocks."""
        return execute_each(self.execute, tasks)

    reader = staticmethod(reading_thread)
    """Makes a thread that only reads a server's connections, and runs no request (``Executor.reader``)."""

    def stop(self, grace_s: float) -> bool:
        """Refuses further tasks, and waits for the end of all running tasks, for ``grace_s`` seconds at most. Returns
        True if all tasks ended in this time. May be called again.
        """
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
