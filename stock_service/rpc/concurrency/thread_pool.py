"""An executor on the standard library's ``ThreadPoolExecutor``, which most grpcio servers use. The executor limits the
number of tasks.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from stock_service.rpc.concurrency.executor import Task, ended, execute_each, reading_thread, run, tell_name
from stock_service.rpc.errors import Overloaded, Unavailable


class ThreadPool:
    """Executor with up to ``workers`` threads. The executor starts a thread when a task finds no free thread. At most
    ``queue_limit`` tasks wait. Thread-safe.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="thread-pool", initializer=tell_name)
        self.workers, self.limit = workers, workers + queue_limit
        self._lock = Lock()  # guards _accepted, _stopping
        self._accepted = 0
        self._stopping = False

    @property
    def under_way(self) -> int:
        """Number of accepted tasks that run, or wait for a thread."""
        return self._accepted

    @property
    def busy(self) -> int:
        """Number of threads that run a task."""
        return min(self._accepted, self.workers)

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a thread. Raises Overloaded when the queue is full, and Unavailable after ``stop``."""
        self.submit(task)

    def submit(self, task: Task) -> "Future[None]":
        """Gives ``task`` to a thread, like ``execute``. Returns a Future, which grpcio's server needs. When the Future
        is done, the task has ended, and the pool has room for another task. But if the system refuses a new thread, the
        Future may be done before the task has begun.
        """
        with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if self._accepted >= self.limit:
                raise Overloaded(f"{self.limit} tasks are running or waiting")
            self._accepted += 1
            try:
                return self._pool.submit(self._run, task)
            except RuntimeError as error:  # the system refuses another thread; the task is in the queue already
                if self._pool._threads:  # an existing thread will take the task; the Future does not show its end
                    unknown: Future[None] = Future()
                    unknown.set_result(None)
                    return unknown
                self._accepted -= 1
                self._pool._work_queue.get_nowait()
                raise Overloaded(f"no further thread: {error}") from error

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to threads, in order, up to ``limit``. Returns the number of accepted tasks. Never blocks."""
        return execute_each(self.execute, tasks)

    reader = staticmethod(reading_thread)
    """Makes a thread that only reads a server's connections, and runs no request (``Executor.reader``)."""

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks, and ends the threads. Blocks. Returns True if all threads ended within ``grace_s``
        seconds. May be called again.
        """
        with self._lock:
            self._stopping = True
        self._pool.shutdown(wait=False)
        in_time = ended(list(self._pool._threads), grace_s)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return in_time

    def _run(self, task: Task) -> None:
        run(task)
        with self._lock:
            self._accepted -= 1
