"""The static pool: a fixed number of threads take tasks from one bounded queue.

Guarantees of the pool:

1. All threads exist when the constructor returns. The pool starts no thread later.
2. A task is one request or, with connection dispatch, one connection. Threads take tasks in the order in which the pool
   accepted the tasks.
3. A new task wakes one sleeping thread, if a thread sleeps. A thread that ends a task takes the next waiting task, and
   sleeps only if no task waits.
4. At most ``queue_limit`` tasks wait while every thread is busy. The pool refuses further tasks at once.
5. ``execute`` and ``execute_all`` never block, and never run a task on the calling thread.
6. A sleeping thread takes no processor time: it waits, without a timeout, for a lock of its own.
7. The pool logs an exception of a task. Neither the exception nor a failure of the log ends the thread.
8. After ``stop`` the pool accepts no task. An accepted task still runs if it begins within ``grace_s`` seconds. Then
   the threads end.

A new task wakes the thread that fell asleep last, since this thread's stack is still in the processor's cache. The idea
is from trio's thread cache. A sleeping thread waits for a lock, which serves as a binary semaphore: CPython has no
cheaper way to sleep. Left out: a changing number of threads, and requests on the reading thread
(``leader_followers.py`` runs them there).
"""

from collections import deque
from collections.abc import Sequence
from threading import Lock, Thread

from stock_service.rpc.concurrency.executor import Task, ended, log_raised, reading_thread, started, tell_name
from stock_service.rpc.errors import Overloaded, Unavailable


class StaticPool:
    """Executor with ``workers`` threads, which take tasks from one queue. At most ``queue_limit`` tasks wait in the
    queue while all threads are busy. Thread-safe.

    If the system refuses a thread, the constructor ends the started threads, and raises RuntimeError.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers, self.limit = workers, workers + queue_limit
        self._lock = Lock()  # guards _tasks, _idle, _sleeping and _stopping
        self._tasks: deque[Task] = deque()
        self._idle = workers  # number of threads that run no task: asleep, or woken and about to take a task
        self._sleeping: list[Lock] = []  # one held lock for each sleeping thread; releasing the lock wakes the thread
        self._stopping = False
        self._threads = [Thread(target=self._work, name=f"static-pool-{number}") for number in range(workers)]
        started(self._threads, self.stop)

    @property
    def under_way(self) -> int:
        """Number of accepted tasks that run, or wait for a thread."""
        return len(self._tasks) + self.workers - self._idle

    @property
    def busy(self) -> int:
        """Number of threads that run a task."""
        return self.workers - self._idle

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a thread. Never blocks. Raises Overloaded if the queue is full, and Unavailable after
        ``stop``.
        """
        if not self.execute_all((task,)):
            raise Overloaded(f"{self.limit - self.workers} tasks are waiting for {self.workers} threads")

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to threads, in order, until the queue is full. Returns the number of accepted tasks.

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
    """Makes an additional thread, which only reads a server's connections, and runs no task (``Executor.reader``)."""

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks, and ends the threads. Blocks. Returns True if all threads ended within ``grace_s``
        seconds. May be called again.

        A task that has not begun within ``grace_s`` never runs.
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
            try:  # a copy of the code of ``run``, which saves one call for each request
                task()
            except BaseException:  # also SystemExit, since no task may end its thread
                log_raised()
            del task  # frees the objects of the task before this thread sleeps
            with self._lock:
                self._idle += 1

    def _next(self, awake: Lock) -> Task | None:
        """Waits for a task, and takes the oldest task. Returns None if the pool has stopped and no task waits."""
        while True:
            with self._lock:
                if self._tasks:
                    self._idle -= 1
                    return self._tasks.popleft()
                if self._stopping:
                    return None
                self._sleeping.append(awake)
            awake.acquire()
