"""The static pool: a fixed number of threads over a bounded queue, on a deque and plain locks.

What it guarantees:

1. All threads exist when the constructor returns, and none is started later.
2. Tasks start in the order in which ``execute`` accepted them.
3. No task waits while a thread is asleep: ``execute`` hands a task to a sleeping thread, and queues only if there is
   none; a thread that ends a task takes the next queued one before it sleeps.
4. At most ``queue_limit`` tasks wait; one more raises Overloaded at once. ``execute`` never blocks.
5. A sleeping thread costs no CPU: it waits, without a timeout, for a lock of its own.
6. The thread that slept last is woken first, so that under light load the same thread, warm in the cache, does it all.
7. A task that raises is logged; its thread goes on.
8. After ``stop`` begins, ``execute`` raises Unavailable; what was accepted is still run, and then the threads end.

The hand-over to a sleeping thread, and waking the latest sleeper, follow the ideas of trio's thread cache; a lock used
as a binary semaphore is the cheapest way to sleep that CPython has.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread

from stock_service.errors import Overloaded, Unavailable

_log = logging.getLogger(__name__)

Task = Callable[[], object]


class StaticPool:
    """``workers`` threads, started at once; see the module for the guarantees. Safe to use from any thread."""

    def __init__(self, workers: int, queue_limit: int) -> None:
        self._queue_limit = queue_limit
        self._lock = Lock()  # guards _tasks, _sleeping, _stopping
        self._tasks: deque[Task] = deque()
        self._sleeping: list[_Sleeper] = []
        self._stopping = False
        self._threads = [Thread(target=self._work, name=f"static-pool-{number}") for number in range(workers)]
        for thread in self._threads:
            thread.start()

    def execute(self, task: Task) -> None:
        """Has a thread call ``task``. Raises Overloaded when the queue is full, Unavailable once stopping."""
        with self._lock:
            if self._stopping:
                raise Unavailable("the server is stopping")
            if self._sleeping:
                sleeper = self._sleeping.pop()
                sleeper.task = task
            elif len(self._tasks) < self._queue_limit:
                self._tasks.append(task)
                return
            else:
                raise Overloaded(f"{self._queue_limit} tasks are waiting for {len(self._threads)} threads")
        sleeper.awake.release()

    def stop(self, grace_s: float) -> bool:
        """Runs what was accepted, ends the threads, and says whether all ended within ``grace_s``. May be repeated.

        What has not begun when the grace is over never will.
        """
        with self._lock:
            self._stopping = True
            sleepers, self._sleeping = self._sleeping, []
        for sleeper in sleepers:
            sleeper.awake.release()
        deadline_s = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        with self._lock:
            self._tasks.clear()
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        sleeper = _Sleeper()
        while True:
            task: Task | None
            with self._lock:
                if self._tasks:
                    task = self._tasks.popleft()
                elif self._stopping:
                    return
                else:
                    task = None
                    self._sleeping.append(sleeper)
            if task is None:
                sleeper.awake.acquire()
                task = sleeper.task
                if task is None:  # woken by stop
                    return
                sleeper.task = None
            try:
                task()
            except Exception:
                _log.exception("a task raised")
            del task  # so that nothing the task holds outlives it in a sleeping thread


class _Sleeper:
    """Where one thread sleeps: a lock that stays held until the thread is to wake, and the task it wakes for."""

    __slots__ = ("awake", "task")

    def __init__(self) -> None:
        self.awake = Lock()
        self.awake.acquire()
        self.task: Task | None = None
