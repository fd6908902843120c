"""The static pool: a fixed number of threads over a bounded queue, on a deque and plain locks.

What it guarantees:

1. All threads exist when the constructor returns, and none is started later.
2. Tasks are given to threads in the order in which they were accepted; a thread that must first wake starts later.
3. ``execute``: a sleeping thread is woken. It takes the oldest task that waits: this one, unless there is a batch. A
   task waits only where no thread sleeps. A thread that ends a task takes the next one before it sleeps.
4. ``execute_all``, for tasks that come in a batch: one thread is given the batch. More are woken if no thread took a
   task for ``PATIENCE_S``, or after ``BATCH_S``. Under the GIL a second thread cannot speed up tasks that only compute,
   and waking it costs more than such a task. A task that blocks for long delays those behind it by twice ``PATIENCE_S``
   at most. Tasks that each block for less delay them by ``BATCH_S`` in all. The caller waits meanwhile, so that it does
   not fight for the GIL with the thread at work. Where the task that ended last blocked, each task of the batch is
   handed to a thread of its own at once, as by ``execute``. It took long if it took longer than ``PATIENCE_S`` and
   ``TURN_S`` for each thread that was awake. It blocked unless such tasks compute for ``PATIENCE_S`` each. A thread
   that ends one looks whether they do, once in ``LOOK_S`` for all threads: asking for its processor time costs.
5. Where the task that ended last computed for so long, a batch is left to one thread for ``COMPUTING_S``. Threads that
   compute side by side take the GIL from each other and from the caller, which then waits for it at every turn. More
   are woken earlier if the caller twice finds nobody at the GIL, and no task taken: such tasks compute without it. On a
   Python without a GIL each task of a batch is handed to a thread of its own at once.
6. ``lend``: a caller may run a batch itself, on the place of a thread that sleeps meanwhile. So no more tasks run at a
   time than there are threads. A place is lent where all threads sleep and tasks are short. After a task that took
   longer than ``PATIENCE_S`` none is lent for ``REST`` times as long, nor before ``LEARNT`` tasks of batches have
   passed. Without a GIL none is lent. Whoever has the place calls ``wake`` where others are to run what waits.
7. At most ``queue_limit`` tasks wait while every thread is busy; any more are refused at once.
8. A sleeping thread costs no CPU: it waits, without a timeout, for a lock of its own.
9. The thread that slept last is woken first. So under light load one thread, warm in the cache, does all the work.
10. A task that raises is logged; its thread goes on.
11. After ``stop`` begins nothing is accepted; what was accepted is still run, and then the threads end.

Handing a task to a sleeping thread, and waking the latest sleeper, are ideas of trio's thread cache. A lock used as a
binary semaphore is the cheapest way to sleep that CPython has.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock, Thread

from stock_service.rpc.concurrency.gil import has_gil
from stock_service.rpc.errors import Overloaded, Unavailable

_log = logging.getLogger(__name__)

Task = Callable[[], object]

PATIENCE_S = 0.0002
"""More threads are woken once no task of a batch was taken for so long. It is the work of a dozen requests, and a fifth
of the shortest wait for I/O that is worth a thread."""

_PATIENCE_NS = int(PATIENCE_S * 1e9)

BATCH_S = 0.002
"""How long ``execute_all`` leaves a batch to the threads that are at work, though they take task after task."""

_BATCH_NS = int(BATCH_S * 1e9)

TURN_S = 0.00002
"""How long another thread may hold the GIL in the course of a task that does not block: the work of two requests."""

_TURN_NS = int(TURN_S * 1e9)

COMPUTING_S = 0.01
"""How long ``execute_all`` leaves a batch to the threads that are at work where tasks compute: two turns of the GIL."""

_COMPUTING_NS = int(COMPUTING_S * 1e9)

LOOK_S = 0.001
"""Who ends a long task looks whether such tasks compute, if nobody has for so long."""

_LOOK_NS = int(LOOK_S * 1e9)

_PROMPT_NS = _PATIENCE_NS + 100_000
"""Who sleeps for ``PATIENCE_S`` and is back within this found the GIL free: waking up takes half of what is more."""

_STUCK_LOOKS = 2
"""How often that is found before it is believed: a task that computes lets go of the GIL when it sends its reply."""

LEARNT = 32
"""So many tasks of batches show that tasks are short."""

REST = 50
"""After a task that took long no place is lent for so many times as long. So who meets one loses 2 % at most."""

_LONGEST_NS = 10_000_000
"""A task that took longer counts as this long: nobody waits longer for a place that was lent (``reading.py``)."""

_START_S = 1.0
"""How long threads get to end that were started before one could not be."""


class StaticPool:
    """``workers`` threads, started at once; see the module for the guarantees. Safe to use from any thread.

    Raises RuntimeError where the system does not give so many threads; then none is left.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers = workers
        self._queue_limit = queue_limit
        self._lock = Lock()  # guards everything below but _threads; a thread that is awake takes a task without it
        self._tasks: deque[Task] = deque()
        self._sleeping: list[_Sleeper] = []
        self._drained: list[Lock] = []  # of callers that wait until a thread runs out of tasks
        self._taken_ns = 0  # when a thread last took a task
        self._blocking = False  # whether the task that ended last did
        self._computing = False  # whether it took long and computed
        self._computes = False  # whether long tasks do, as the last look found …
        self._looked_ns = 0  # … and when that was
        self._batched = 0  # tasks of batches so far, but those that were run on a lent place
        self._lends_from = LEARNT  # how many they must be before a place is lent …
        self._lends_from_ns = 0  # … and when it may be
        self.worked_on = 0
        """Tasks that were begun on a place that was lent."""
        self._stopping = False
        self._has_gil = has_gil()
        self._threads = [Thread(target=self._work, name=f"static-pool-{number}") for number in range(workers)]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:  # the system has no more to give
            self._threads = [thread for thread in self._threads if thread.ident is not None]
            self.stop(_START_S)
            raise

    @property
    def waiting(self) -> int:
        """Tasks that wait for a thread."""
        return len(self._tasks)

    @property
    def room(self) -> int:
        """Tasks that would be accepted now; nearly, since threads take some meanwhile."""
        return max(0, self._room())

    def execute(self, task: Task) -> None:
        """Has a thread call ``task``. Never blocks. Raises Overloaded at the limit, Unavailable once stopping."""
        with self._lock:
            self._refuse_when_stopping()
            if self._room() < 1:
                raise Overloaded(f"{self._queue_limit} tasks are waiting for {len(self._threads)} threads")
            self._tasks.append(task)
            woken = self._hand_over(1)
        for sleeper in woken:
            sleeper.awake.release()

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Has threads call ``tasks``, in order; gives how many were accepted: the rest found the queue full.

        Returns at once where tasks block, as the last one did, and where there is no GIL. Else blocks until a thread
        has run out of tasks, or for ``PATIENCE_S`` none took one, or ``BATCH_S`` are over (``COMPUTING_S`` where tasks
        compute), to within ``PATIENCE_S`` and a turn of the GIL. Raises Unavailable once stopping.
        """
        with self._lock:
            self._refuse_when_stopping()
            accepted = max(0, min(len(tasks), self._room()))
            self._tasks.extend(tasks[:accepted])
            self._batched += accepted
            if self._blocking or not self._has_gil:
                woken, drained = self._hand_over(len(self._tasks)), None
            else:
                awake = len(self._sleeping) < len(self._threads)
                at_work = awake and (self._computing or time.monotonic_ns() - self._taken_ns < _PATIENCE_NS)
                woken = [] if at_work else self._hand_over(1)
                drained = self._wait_for_drain()
        for sleeper in woken:
            sleeper.awake.release()
        if drained is not None:
            self._wait_for(drained)
        return accepted

    def lend(self, tasks: Sequence[Task]) -> "_Sleeper | None":
        """Accepts ``tasks``, and lends the caller a thread's place to run them on: it must ``work_on`` it at once.

        None: it does not, and has accepted none. That is so where any thread is at work, where there is no room for
        all, and where tasks took long lately. So it is where the pool is stopping, or this Python has no GIL. Never
        blocks.
        """
        with self._lock:
            idle = len(self._sleeping) == self.workers and not self._stopping
            if not idle or not self._has_gil or self._batched < self._lends_from or self._room() < len(tasks):
                return None
            if self._lends_from_ns:
                if time.monotonic_ns() < self._lends_from_ns:
                    return None
                self._lends_from_ns = 0
            self._tasks.extend(tasks)
            return self._sleeping.pop()

    def work_on(self, place: "_Sleeper") -> None:
        """Runs what waits, on a place that was lent, and gives it back. For the thread that it was lent to.

        Ends where nothing waits, after a task that took longer than ``PATIENCE_S``, and after ``BATCH_S``. Of what
        still waits, the place's own thread then takes the next.
        """
        before_ns = time.monotonic_ns()
        until_ns = before_ns + _BATCH_NS
        while before_ns < until_ns and (task := self._next_task()) is not None:
            self.worked_on += 1
            try:
                task()
            except BaseException:  # as a thread of the pool does
                _log.exception("a task raised")
            began_ns, before_ns = before_ns, time.monotonic_ns()
            if before_ns - began_ns > _PATIENCE_NS:
                self._took_long(before_ns - began_ns)
                break
        task = None
        with self._lock:
            place.task = self._next_task()
            if place.task is None and not self._stopping:
                self._sleeping.append(place)
                return
            self._taken_ns = before_ns
        place.awake.release()

    def wake(self) -> None:
        """Gives what waits to threads that sleep: after ``work_on``, or in its stead. Never blocks."""
        with self._lock:
            woken = self._hand_over(len(self._tasks))
        for sleeper in woken:
            sleeper.awake.release()

    def stop(self, grace_s: float) -> bool:
        """Runs what was accepted, ends the threads, and says whether all ended within ``grace_s``. May be repeated.

        What has not begun when the grace is over never will.
        """
        with self._lock:
            self._stopping = True
            woken = self._hand_over(len(self._tasks))
            leaving, self._sleeping = self._sleeping, []
        for sleeper in woken + leaving:
            sleeper.awake.release()
        deadline_s = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        with self._lock:
            self._tasks.clear()
        return not any(thread.is_alive() for thread in self._threads)

    # ---- with the lock held

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise Unavailable("the server is stopping")

    def _room(self) -> int:
        """How many more tasks may wait; those that sleeping threads are there to take are not waiting."""
        return self._queue_limit + len(self._sleeping) - len(self._tasks)

    def _hand_over(self, count: int) -> "list[_Sleeper]":
        """Gives up to ``count`` queued tasks, oldest first, to sleeping threads, which the caller then wakes."""
        woken: list[_Sleeper] = []
        while self._sleeping and len(woken) < count and (task := self._next_task()) is not None:
            sleeper = self._sleeping.pop()
            sleeper.task = task
            woken.append(sleeper)
        return woken

    def _wait_for_drain(self) -> "Lock | None":
        """A lock that is let go when a thread runs out of tasks; None where no task is queued."""
        if not self._tasks:
            return None
        drained = Lock()
        drained.acquire()
        self._drained.append(drained)
        return drained

    # ---- without

    def _next_task(self) -> Task | None:
        """The oldest task that waits, taken from the queue; None: there is none. With the lock or without."""
        try:
            return self._tasks.popleft()
        except IndexError:
            return None

    def _wait_for(self, drained: "Lock | None") -> None:
        """Until a thread has run out of tasks, or more threads were woken."""
        began_ns = asked_ns = time.monotonic_ns()
        stuck_looks = 0  # one after the other
        while drained is not None and not drained.acquire(timeout=PATIENCE_S):
            now_ns = time.monotonic_ns()
            stuck = self._taken_ns < asked_ns and now_ns - asked_ns < _PROMPT_NS
            stuck_looks = stuck_looks + 1 if stuck else 0
            if self._computing:
                wakes = stuck_looks == _STUCK_LOOKS or now_ns - began_ns > _COMPUTING_NS
            else:
                wakes = now_ns - self._taken_ns >= _PATIENCE_NS or now_ns - began_ns > _BATCH_NS
            drained, asked_ns = self._look_again(drained, wakes), now_ns

    def _look_again(self, drained: Lock, wakes: bool) -> "Lock | None":
        """What to wait for next; None where nothing waits, or ``wakes``: then all that are needed are woken."""
        with self._lock:
            if drained in self._drained:
                self._drained.remove(drained)
            if not wakes:
                return self._wait_for_drain()
        self.wake()
        return None

    def _took_long(self, took_ns: int) -> None:
        """A task did: for a while no place is lent."""
        self._lends_from = self._batched + LEARNT
        self._lends_from_ns = time.monotonic_ns() + REST * min(took_ns, _LONGEST_NS)

    def _work(self) -> None:
        """A thread's life."""
        sleeper, now_ns, taken_ns, cpu_ns, tasks = _Sleeper(), 0, 0, 0, 0
        while True:
            task: Task | None
            with self._lock:
                awake = len(self._threads) - len(self._sleeping)
                long = now_ns - taken_ns > _PATIENCE_NS + awake * _TURN_NS
                self._blocking, self._computing = long and not self._computes, long and self._computes
                task = self._next_task()
                if task is not None:
                    self._taken_ns = taken_ns = now_ns or time.monotonic_ns()
                elif self._stopping:
                    return
                else:
                    self._sleeping.append(sleeper)
                    if self._drained:
                        for drained in self._drained:
                            drained.release()
                        self._drained.clear()
            if task is None:
                sleeper.awake.acquire()
                task = sleeper.task
                if task is None:  # woken by stop
                    return
                sleeper.task = None
                self._taken_ns = taken_ns = time.monotonic_ns()
            while True:
                try:
                    task()
                except BaseException:  # SystemExit too: no task may take a thread with it
                    _log.exception("a task raised")
                now_ns = time.monotonic_ns()
                if now_ns - taken_ns > _PATIENCE_NS or self._blocking or self._computing:
                    break
                task = self._next_task()  # a short one ended as the last did: there is nothing to say about it
                if task is None:
                    break
                self._taken_ns = taken_ns = now_ns
            if now_ns - taken_ns > _PATIENCE_NS:  # what short ones before it computed is counted with it
                tasks += 1
                self._took_long(now_ns - taken_ns)
                if now_ns - self._looked_ns > _LOOK_NS:
                    self._looked_ns, before_ns, cpu_ns = now_ns, cpu_ns, time.thread_time_ns()
                    self._computes, tasks = cpu_ns - before_ns > tasks * _PATIENCE_NS, 0
            del task  # so that nothing the task holds outlives it in a sleeping thread


class _Sleeper:
    """Where one thread sleeps: a lock that stays held until the thread is to wake, and the task it wakes for."""

    __slots__ = ("awake", "task")

    def __init__(self) -> None:
        self.awake = Lock()
        self.awake.acquire()
        self.task: Task | None = None
