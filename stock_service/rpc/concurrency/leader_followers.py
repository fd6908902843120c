"""Leader/followers: the pool's threads take turns to read, and the reading thread runs short requests itself.

The pattern is Schmidt, O'Ryan, Kircher and Pyarali, *Leader/Followers* (2000). One thread, the **leader**, reads for
the server. The others, the **followers**, sleep. Waking a thread costs as much as a short request. Under the GIL two
threads compute no faster than one thread. So the leader itself runs the batch of requests that it has read, and wakes
no thread.

A request may also take long. The guarantee: **such a request holds up reading for 8 ms at most** (``2 * LOOK_S``, and
the wait for the GIL where the request computes). While the leader runs requests, one follower is the **lookout**. If
the lookout finds the leader in the same batch twice, the lookout becomes the leader and continues to read. The
followers take the tasks that wait. The old leader ends its request and becomes a follower.

Threads that run a batch:

| the batch came | threads that run it |
|---|---|
| within ``NEAR_S`` of the last, while no request is under way | the leader |
| later, or while a follower is at work | followers, a task each, as in the static pool |
| after a request that took longer than ``PATIENCE_S`` | followers, for ``REST`` times as long as that request took |
| on a Python without a GIL, or from a thread that does not lead | followers |

At most ``workers`` tasks run at a time. There is one thread more than ``workers``, since one always reads. So the
server reads on during a slow request, even with one worker; the requests that were read wait for this worker. At most
``queue_limit`` tasks wait. Stopping is as in the static pool. ``execute`` never runs a task on the leader.

Left out: reading by threads that this executor does not start (grpcio's, connection dispatch).
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread, get_ident

from stock_service.rpc.concurrency.executor import Reader, Task, ended, has_gil, reading_thread, run, started, tell_name
from stock_service.rpc.errors import Overloaded, Unavailable

LOOK_S = 0.004
"""Seconds between two looks at the leader. A look costs some 50 µs, since the lookout takes the GIL from the leader. A
look every 4 ms costs a hundredth of a core. Two looks make the guarantee of 8 ms.
"""

NEAR_S = 0.002
"""Longest time between two batches, in seconds, for which the leader runs the second batch. For rarer batches a lookout
would have to wake for each batch. This wake-up costs as much as the wake-up that the leader saves.
"""

PATIENCE_S = 0.0002
"""Time in seconds; a request that takes longer is slow. The time of ten Lookups on a slow core, and a fifth of the
shortest wait for a disk.
"""

REST = 50
"""Factor: after a slow request, followers run all requests for this factor times the request's time. So slow requests
cost the other requests 2 % of the time.
"""

_LOOK_NS, _NEAR_NS, _PATIENCE_NS = (int(seconds * 1e9) for seconds in (LOOK_S, NEAR_S, PATIENCE_S))


class Deposed(BaseException):
    """Raised in the leader when another thread leads. A BaseException, so that no handler catches it as an error."""


class LeaderFollowers:
    """Pool of ``workers`` threads, started at once, and one more thread while the pool reads for a server. Any thread
    may use the pool.

    Raises RuntimeError if the system refuses a thread; the threads already started have then ended.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers, self.limit = workers, workers + queue_limit
        # guards everything below. Without it, a leader or former leader uses _last_ns and _spread_until_ns, and takes
        # tasks of a batch. It may see old values of _leader and _busy: then one task more runs, counted in _running.
        self._lock = Lock()
        self._tasks: deque[Task] = deque()  # for followers
        self._running = 0  # threads that run tasks; a leader that runs a batch counts as one
        self._sleeping: list[Lock] = []  # a held lock for each follower that sleeps; released, it wakes
        self._lookout: Lock | None = None  # the lock of one more follower, which sleeps or looks at the leader …
        self._watched = False  # … every LOOK_S, until it finds no new batch
        self._reading: _Reading | None = None
        self._leader = 0  # the leader's ident; 0: no thread leads
        self._batch: deque[Task] = deque()  # the leader's own
        self._batches = 0  # number of batches that leaders have begun
        self._busy = False  # True: the leader runs a batch
        self._spread_until_ns = 0  # followers run all until then
        self._last_ns = 0  # when the leader last had a batch; only the leader uses it
        self._stopping = False
        self._has_gil = has_gil()
        self._threads = [Thread(target=self._live, name=f"follower-{number}") for number in range(workers)]
        started(self._threads, self.stop)

    @property
    def under_way(self) -> int:
        """Number of tasks that run or wait for a thread; while the leader runs a batch, up to one more."""
        return len(self._tasks) + len(self._batch) + self._running

    @property
    def busy(self) -> int:
        """Number of threads that run a task; a leader in a batch is one."""
        return self._running

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a follower. Never blocks. Raises Overloaded at ``limit``, and Unavailable after
        ``stop``.
        """
        if not self._queue((task,)):
            raise Overloaded(f"{self.limit - self.workers} tasks are waiting for {self.workers} threads")

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Runs ``tasks`` if the caller leads and requests are short; otherwise queues the tasks for followers. See the
        module.

        Returns the number of tasks accepted: the queue had no room for the rest. Blocks while the leader runs tasks.
        Raises Deposed if another thread has replaced the caller as leader, and Unavailable after ``stop``.
        """
        if not self._has_gil or get_ident() != self._leader:
            return self._queue(tasks)
        now_ns = time.monotonic_ns()
        near, self._last_ns = now_ns - self._last_ns < _NEAR_NS, now_ns
        if not near or now_ns < self._spread_until_ns:
            return self._queue(tasks)
        with self._lock:
            self._refuse_when_stopping()
            runs = not self._running and not self._tasks and len(tasks) <= self.limit - self.under_way
            if runs:  # all of them: Deposed could not carry the number accepted
                self._batch.extend(tasks)
                self._batches += 1
                self._running = 1
                self._busy = True
                asleep = self._wake_lookout()
        if not runs:
            return self._queue(tasks)
        if asleep is not None:
            asleep.release()
        self._run_batch(now_ns)
        self._end_batch()
        return len(tasks)

    def reader(self, read: Callable[[], object], end: Callable[[], object]) -> Reader:
        """The thread that leads first; see ``Executor.reader``.

        A second server on the same executor gets a thread that only reads, and runs no request.
        """
        with self._lock:
            if self._reading is not None:
                return reading_thread(read, end)
            self._reading = reading = _Reading(self._lead_first, read, end)
            self._threads.append(reading.thread)
        return reading

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks and ends the threads. Returns True if all of them ended within ``grace_s``. May be
        repeated.

        Call this only after the reading has ended. A task that has not begun at the end of the grace never runs.
        """
        with self._lock:
            self._stopping = True
            woken, self._sleeping = self._sleeping, []
            if self._lookout is not None:
                woken.append(self._lookout)
                self._lookout = None
        _release(woken)
        in_time = ended(self._threads, grace_s)
        with self._lock:
            self._tasks.clear()
            self._batch.clear()
        return in_time

    # ---- with the lock held

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise Unavailable("the server is stopping")

    def _wake(self, count: int) -> list[Lock]:
        """Locks of up to ``count`` sleeping followers, the lookout's lock last. The caller releases the locks.

        Gives no more locks than followers that may run tasks: a needless wake-up would delay the lookout's next look.
        """
        count = min(count, self.workers - self._running)
        woken = [self._sleeping.pop() for _ in range(min(count, len(self._sleeping)))]
        if len(woken) < count and self._lookout is not None:
            woken.append(self._lookout)
            self._lookout = None
        return woken

    def _wake_lookout(self) -> "Lock | None":
        """Lock of a lookout that sleeps until the leader runs requests again. The caller releases the lock."""
        if self._watched:
            return None
        self._watched = True
        asleep, self._lookout = self._lookout, None
        return asleep

    def _hand_over(self) -> list[Lock]:
        """Leaves the rest of the leader's batch to followers; returns the locks of the followers to wake."""
        while self._batch:
            try:
                self._tasks.appendleft(self._batch.pop())
            except IndexError:  # the leader has just taken it
                break
        return self._wake(len(self._tasks))

    def _look(self, seen: int) -> bool:
        """Makes the lookout the leader and returns True if the leader is still in the batch ``seen``."""
        if self._batches != seen:
            return False
        if not self._busy:
            self._watched = False  # there was no new batch: sleeps until there is one
            return False
        self._busy, self._leader = False, get_ident()
        return True

    # ---- the leader

    def _run_batch(self, before_ns: int) -> None:
        """Runs tasks of the leader's batch until a task was slow or another thread leads."""
        batch = self._batch
        while self._busy:
            try:
                task = batch.popleft()
            except IndexError:
                return
            run(task)
            began_ns, before_ns = before_ns, time.monotonic_ns()
            if before_ns - began_ns > _PATIENCE_NS:
                slow_ns = min(before_ns - began_ns, 2 * _LOOK_NS)  # no request waited longer
                self._spread_until_ns = before_ns + REST * slow_ns
                return

    def _end_batch(self) -> None:
        """Leaves the rest of the batch to followers. Raises Deposed if another thread leads now."""
        with self._lock:
            self._running -= 1
            deposed = get_ident() != self._leader
            if not deposed:
                self._busy = False
                woken = self._hand_over()
        if deposed:
            raise Deposed
        _release(woken)

    def _lead_first(self) -> None:
        """Main function of the thread that leads first."""
        tell_name()
        self._leader = get_ident()
        if not self._lead():
            self._follow()

    def _lead(self) -> bool:
        """Reads for the server; returns True when reading is over, False when another thread leads."""
        reading = self._reading
        assert reading is not None
        over = True
        try:
            reading.read()
        except Deposed:
            over = False
        finally:  # else the thread that stops the server would wait for ever
            if over:
                self._leader = 0
                reading.finish()
        return over

    # ---- the followers

    def _queue(self, tasks: Sequence[Task]) -> int:
        """Accepts tasks for followers, and wakes a follower for each task. Returns the number of tasks accepted."""
        with self._lock:
            self._refuse_when_stopping()
            accepted = max(0, min(len(tasks), self.limit - self.under_way))
            self._tasks.extend(tasks[:accepted])
            woken = self._wake(accepted)
        _release(woken)
        return accepted

    def _live(self) -> None:
        """Main function of a thread that begins as a follower."""
        tell_name()
        self._follow()

    def _follow(self) -> None:
        """Runs tasks, and leads if a slow request delays the leader. Returns when the pool has stopped or reading is
        over.
        """
        awake = Lock()
        awake.acquire()
        while True:
            task = self._next(awake)
            if task is not None:
                run(task)
                del task  # so that nothing the task holds outlives it in a sleeping thread
                with self._lock:
                    self._running -= 1
            elif get_ident() != self._leader or self._lead():
                return

    def _next(self, awake: Lock) -> Task | None:
        """Waits for the oldest task that may run. Returns None if this thread leads now, or the pool has stopped."""
        seen, looks = 0, False
        while True:
            with self._lock:
                if looks and self._look(seen):
                    woken = self._hand_over()
                    break
                if self._tasks and self._running < self.workers:
                    self._running += 1
                    return self._tasks.popleft()
                if self._stopping:
                    return None
                timeout_s = -1.0
                if self._lookout is None:
                    self._lookout, seen = awake, self._batches
                    timeout_s = LOOK_S if self._watched else -1.0
                else:
                    self._sleeping.append(awake)
            looks = self._sleep(awake, timeout_s)
        _release(woken)
        return None

    def _sleep(self, awake: Lock, timeout_s: float) -> bool:
        """Blocks until this thread is woken, or for ``timeout_s`` (-1: for ever). Returns True if the time was over."""
        if awake.acquire(timeout=timeout_s):
            return False
        with self._lock:
            if self._lookout is awake:
                self._lookout = None
                return True
        awake.acquire()  # another thread has just taken it to wake this one
        return False


class _Reading:
    """A ``Reader``: the reading of a server, which passes from one thread to the next."""

    def __init__(self, live: Callable[[], object], read: Callable[[], object], end: Callable[[], object]) -> None:
        self.thread = Thread(target=live, name="leader-first")
        self.start = self.thread.start
        self.read, self._end = read, end
        self._over = Event()

    def finish(self) -> None:
        """Ends the reading, and wakes ``join``."""
        try:
            self._end()
        finally:
            self._over.set()

    def join(self, timeout: float) -> None:
        """Blocks until reading is over. The last reading thread ends by itself, or with the executor."""
        self._over.wait(timeout)


def _release(sleepers: list[Lock]) -> None:
    for sleeper in sleepers:
        sleeper.release()
