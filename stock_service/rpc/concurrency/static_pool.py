"""The static pool: a fixed number of threads take tasks from one bounded queue.

Guarantees of the pool:

1. All threads exist when the constructor returns. None is started later.
2. A task is one request; with connection dispatch, one connection. Threads take tasks in the order in which they were
   accepted.
3. A task wakes one sleeping thread, if there is one. A thread that ends a task takes the next task before it sleeps.
4. At most ``queue_limit`` tasks wait while every thread is busy. Further tasks are refused at once.
5. ``execute`` and ``execute_all`` never block and never run a task themselves.
6. A sleeping thread costs no processor time: it waits, without a timeout, for a lock of its own.
7. An exception of a task is logged, and does not end the thread, even if the log fails.
8. After ``stop`` no task is accepted. An accepted task runs if it begins within the grace; then the threads end.

The thread that fell asleep last is woken first: the stack of this thread is still in the processor's cache. The idea is
from trio's thread cache. A lock used as a binary semaphore is the cheapest way to sleep that CPython has. Left out: an
adaptive pool; see ``leader_followers.py``.
"""

from collections import deque
from collections.abc import Sequence
from threading import Lock, Thread

from stock_service.rpc.concurrency.executor import Task, ended, log_raised, reading_thread, started, tell_name
from stock_service.rpc.errors import Overloaded, Unavailable


class StaticPool:
    """Pool of ``workers`` threads, started at once, with a queue of ``queue_limit`` tasks. Safe to use from any thread.

    Raises RuntimeError if the system refuses a thread; the threads already started have then ended.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers, self.limit = workers, workers + queue_limit
        self._lock = Lock()  # guards the four below
        self._tasks: deque[Task] = deque()
        self._idle = workers  # threads that run no task: asleep, or woken for one
        self._sleeping: list[Lock] = []  # a held lock for each thread that waits for a task; released, it wakes
        self._stopping = False
        self._threads = [Thread(target=self._work, name=f"static-pool-{number}") for number in range(workers)]
        started(self._threads, self.stop)

    @property
    def under_way(self) -> int:
        """Number of tasks that run or wait for a thread."""
        return len(self._tasks) + self.workers - self._idle

    @property
    def busy(self) -> int:
        """Number of threads that run a task."""
        return self.workers - self._idle

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a thread. Never blocks. Raises Overloaded at the limit, and Unavailable after ``stop``."""
        if not self.execute_all((task,)):
            raise Overloaded(f"{self.limit - self.workers} tasks are waiting for {self.workers} threads")

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to threads, in order; returns the number of tasks accepted: the queue had no room for the
        rest.

        Never blocks. Raises Unavailable after ``stop``.
        """
        with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            accepted = max(0, min(len(tasks), self.limit - self.under_way))
            self._tasks.extend(tasks[:accepted])
            woken = [self._sleeping.pop() for _ in range(min(accepted, len(self._sleeping)))]
        for sleeper in woken:
            sleeper.release()
        return accepted

    reader = staticmethod(reading_thread)
    """A thread besides the pool's threads, which runs no request; see ``Executor.reader``."""

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks and ends the threads. Returns True if all of them ended within ``grace_s``. May be
        repeated.

        A task that has not begun at the end of the grace never runs.
        """
        with self._lock:
            self._stopping = True
            woken, self._sleeping = self._sleeping, []
        for sleeper in woken:
            sleeper.release()
        in_time = ended(self._threads, grace_s)
        with self._lock:
            self._tasks.clear()
        return in_time

    def _work(self) -> None:
        """Main function of a thread: takes and runs one task after the other."""
        tell_name()
        awake = Lock()
        awake.acquire()
        while (task := self._next(awake)) is not None:
            try:  # like ``run``, without one more stack frame for each request
                task()
            except BaseException:  # SystemExit too: no task may end its thread
                log_raised()
            del task  # so that nothing the task holds outlives it in a sleeping thread
            with self._lock:
                self._idle += 1

    def _next(self, awake: Lock) -> Task | None:
        """Waits for a task, and takes the oldest task. Returns None if the pool has stopped and every task has
        begun.
        """
        while True:
            with self._lock:
                if self._tasks:
                    self._idle -= 1
                    return self._tasks.popleft()
                if self._stopping:
                    return None
                self._sleeping.append(awake)
            awake.acquire()
