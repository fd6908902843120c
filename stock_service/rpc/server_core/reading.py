"""Which thread reads: with the static pool, the one that reads also runs what is short.

Waking a thread of the pool costs as much as a short request, and under the GIL two threads gain nothing from it. So the
reading thread runs what it has read itself, wherever the pool lends it a place. What the pool promises still holds: no
more requests are in a handler at a time than it has threads. Where requests take long, its own threads run them.

A handler may all the same take long, or wait. So there are two threads, and the second looks on, once in ``LOOK_S``
while the first runs requests; it sleeps after a look that finds nothing new. Where it finds the same request twice, it
goes on reading in the other's stead, and has the pool run what waits. The other one stays with its request, and then is
the one that looks on. So everything else waits for a handler ``2 * LOOK_S`` at most, and for the GIL where the handler
computes.
"""

import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.concurrency.static_pool import StaticPool, Task

LOOK_S = 0.004
"""Between two looks. A look costs some 50 µs: whoever looks takes the GIL from the thread that it looks at."""

NEAR_NS = 2_000_000
"""Batches that follow each other within so long are run by who reads. Else it would pay a look to save a wake-up."""


class Relieved(BaseException):
    """Another thread reads now. No Exception, so that nobody takes it for an error."""


class Reading:
    """A server's reading, by one thread at a time."""

    def __init__(self, executor: Executor, runs: bool, read: Callable[[], object], end: Callable[[], object]) -> None:
        """``read`` reads until all is said, and lets ``Relieved`` through. Once it has returned, ``end`` is called.

        ``runs``: whether the thread that reads runs requests, if the executor is a static pool.
        """
        self._read, self._end = read, end
        self._relief = Relief(executor) if runs and isinstance(executor, StaticPool) else None
        self.ran = False
        """Whether the last batch was run by the thread that read it."""
        self._executor = executor
        self.over = Event()
        """Set once nothing is read any more."""
        self._threads = [Thread(target=self._live, args=(True,), name="server-reader")]
        if self._relief is not None:
            self._threads.append(Thread(target=self._live, args=(False,), name="server-relief"))

    def start(self) -> None:
        """Reading begins."""
        for thread in self._threads:
            thread.start()

    def join(self, until_s: float) -> None:
        """Waits until the threads have ended, or for ``time.monotonic`` to be so late: one may stay with a request."""
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """``Executor.execute_all`` for the thread that reads. Raises Relieved where that reads no more."""
        self.ran = self._relief is not None and self._relief.runs(tasks)
        return len(tasks) if self.ran else self._executor.execute_all(tasks)

    def _live(self, reads: bool) -> None:
        """A thread's life: it reads, or looks on."""
        relief = self._relief
        while reads or (relief is not None and relief.look_on()):
            reads = False
            if not self._relieved():
                return

    def _relieved(self) -> bool:
        """Reads; says whether that goes on without this thread, which has just ended a request."""
        relieved = False
        try:
            self._read()
        except Relieved:
            relieved = True
        finally:
            if not relieved:
                self._all_read()
        return relieved

    def _all_read(self) -> None:
        try:
            self._end()
        finally:  # or who stops the server would wait for ever
            if self._relief is not None:
                self._relief.end()
            self.over.set()


class Relief:
    """Two threads, of which one reads and runs requests, and the other looks on."""

    def __init__(self, pool: StaticPool) -> None:
        self._pool = pool
        self._lock = Lock()  # guards what follows, but _last_ns
        self._present = False  # whether a thread looks on
        self._running = False  # whether the other one runs requests
        self._asleep = False  # whether the one that looks on waits without a timeout …
        self._waker = Lock()  # … for this
        self._waker.acquire()
        self._ended = False
        self._last_ns = 0  # when tasks last came
        self._turns = 0  # how often the other one began to

    def runs(self, tasks: Sequence[Task]) -> bool:
        """Runs tasks, or has the pool run the last of them; False: nobody does. Raises Relieved."""
        pool, now_ns = self._pool, time.monotonic_ns()
        is_near, self._last_ns = now_ns - self._last_ns < NEAR_NS, now_ns
        place = pool.lend(tasks) if is_near and self._present else None
        if place is None:
            return False
        with self._lock:
            self._turns += 1
            self._running = True
            asleep, self._asleep = self._asleep, False
        if asleep:
            self._waker.release()
        pool.work_on(place)
        with self._lock:
            reads_on, self._running = self._running, False
        if not reads_on:
            raise Relieved
        if pool.waiting:
            pool.wake()
        return True

    def look_on(self) -> bool:
        """Blocks until the caller is to read; False: reading has ended."""
        seen = (-1, -1)
        with self._lock:
            self._present = True
        while True:
            with self._lock:
                if self._ended:
                    return False
                now = (self._turns, self._pool.worked_on)
                same = now == seen
                if same and self._running:
                    self._running = self._present = False
                    break
                seen, self._asleep = now, same
            self._waker.acquire(timeout=-1 if same else LOOK_S)
        self._pool.wake()
        return True

    def end(self) -> None:
        """Reading has ended: who looks on ends too."""
        with self._lock:
            self._ended = True
            asleep, self._asleep = self._asleep, False
        if asleep:
            self._waker.release()
