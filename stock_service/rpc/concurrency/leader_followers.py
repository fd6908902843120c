"""Leader/followers: the pool's threads take turns to read, and the reading thread runs short requests itself.

The pattern is from Schmidt, O'Ryan, Kircher and Pyarali, *Leader/Followers* (2000). One thread, the **leader**, reads
for the server. The other threads, the **followers**, sleep. To wake a thread takes as much time as a short request, and
under the GIL two threads compute no faster than one thread. So the leader itself runs the batch of requests from its
last read, and wakes no thread.

The guarantee for a slow request: **a slow request delays reading by 8 ms at most** (``2 * LOOK_S``, plus the wait for
the GIL if the request computes). While the leader runs a batch, one follower is the **lookout**, and looks at the
leader every ``LOOK_S``. If the lookout finds the leader in the same batch twice, the lookout becomes the leader and
continues to read. Followers then run the waiting tasks. The old leader ends its request, and becomes a follower.

The choice of the threads that run a batch:

| the batch came | the batch runs on |
|---|---|
| within ``NEAR_S`` of the last batch, while no request is under way | the leader |
| later, or while a follower runs a request | followers: each takes one task, as in the static pool |
| after a request that took longer than ``PATIENCE_S`` | followers, for ``REST`` times the duration of that request |
| on a Python without a GIL, or from a thread that is not the leader | followers |

At most ``workers`` tasks run at a time. The pool has one thread more than ``workers``, since one thread always reads.
So the server continues to read during a slow request, even with one worker. The requests that the server then reads
wait for the worker. At most ``queue_limit`` tasks wait. ``execute`` never runs a task on the leader. ``stop`` works as
in the static pool.

Left out: reading by threads that this executor does not start (grpcio's threads, connection dispatch).
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread, get_ident

from stock_service.rpc.concurrency.executor import Reader, Task, ended, has_gil, reading_thread, run, started, tell_name
from stock_service.rpc.errors import Overloaded, Unavailable

LOOK_S = 0.004
"""Seconds between two looks of the lookout at the leader. A slow request delays reading by two looks at most: 8 ms. A
look costs some 50 µs, since the lookout takes the GIL from the leader. So all looks cost about 1 % of a core.
"""

NEAR_S = 0.002
"""Largest time, in seconds, between two batches that the leader runs itself. After a longer time, followers run the
second batch. If the leader ran this batch, the leader would have to wake the lookout, which costs as much as waking a
follower.
"""

PATIENCE_S = 0.0002
"""A request that takes longer than this time, in seconds, is slow. Ten Lookups on a slow core take this time; the
shortest wait for a disk is five times as long.
"""

REST = 50
"""After a slow request, followers run all batches for ``REST`` times the duration of this request, but for at most
``REST`` times 8 ms. So slow requests on the leader delay other requests during at most 2 % of the time.
"""

_LOOK_NS, _NEAR_NS, _PATIENCE_NS = (int(seconds * 1e9) for seconds in (LOOK_S, NEAR_S, PATIENCE_S))


class Deposed(BaseException):
    """Exception that the old leader raises when another thread has become the leader. Deposed is a BaseException, so
    that code which catches ``Exception`` does not catch Deposed.
    """


class LeaderFollowers:
    """Executor with ``workers`` threads, started by the constructor, and one more thread that reads for a server.
    Thread-safe.

    If the system refuses a thread, the constructor ends the started threads, and raises RuntimeError.
    """

    def __init__(self, workers: int, queue_limit: int) -> None:
        self.workers, self.limit = workers, workers + queue_limit
        # Guards all fields below. But leaders, also old leaders, use _last_ns and _spread_until_ns, take tasks of
        # _batch, and read _leader and _busy without the lock. A leader that reads an old value runs one more task,
        # which _running counts.
        self._lock = Lock()
        self._tasks: deque[Task] = deque()  # tasks for followers
        self._running = 0  # number of threads that run tasks; a leader that runs a batch is one of them
        self._sleeping: list[Lock] = []  # one held lock for each sleeping follower; a release wakes the follower
        self._lookout: Lock | None = None  # the lock of the lookout, which sleeps, or looks at the leader
        self._watched = False  # True: the lookout looks every LOOK_S, until it finds no new batch
        self._reading: _Reading | None = None
        self._leader = 0  # ident of the leader; 0 without a leader
        self._batch: deque[Task] = deque()  # tasks of the leader's current batch
        self._batches = 0  # number of batches that leaders have begun
        self._busy = False  # True: the leader runs a batch
        self._spread_until_ns = 0  # time until which followers run all batches
        self._last_ns = 0  # time of the leader's last batch; only the leader uses it
        self._stopping = False
        self._has_gil = has_gil()
        self._threads = [Thread(target=self._live, name=f"follower-{number}") for number in range(workers)]
        started(self._threads, self.stop)

    @property
    def under_way(self) -> int:
        """Number of tasks that run or wait for a thread. The number may be too large by one while the leader runs a
        batch.
        """
        return len(self._tasks) + len(self._batch) + self._running

    @property
    def busy(self) -> int:
        """Number of threads that run a task; a leader that runs a batch counts as one of these threads."""
        return self._running

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a follower. Never blocks. Raises Overloaded if ``limit`` is reached, and Unavailable after
        ``stop``.
        """
        if not self._queue((task,)):
            raise Overloaded(f"{self.limit - self.workers} tasks are waiting for {self.workers} threads")

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Runs ``tasks`` on the calling thread if this thread is the leader and requests are short. Otherwise queues
        the tasks for followers. The table in the module's docstring shows the choice.

        If the queue has too little room, accepts only the first tasks. Returns the number of accepted tasks. Blocks
        while the calling thread runs tasks. Raises Unavailable after ``stop``, and Deposed if another thread has become
        the leader meanwhile.
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
            if runs:  # only if all tasks fit: Deposed cannot tell the number of accepted tasks
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
        """Makes the reader of a server: the first leader calls ``read``, a later leader calls ``read`` again, and the
        last leader calls ``end``.

        For a second server on this executor, makes a thread that only reads, and runs no request.
        """
        with self._lock:
            if self._reading is not None:
                return reading_thread(read, end)
            self._reading = reading = _Reading(self._lead_first, read, end)
            self._threads.append(reading.thread)
        return reading

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks, and ends the threads. Blocks. Returns True if all threads ended within ``grace_s``
        seconds. May be called again.

        Call ``stop`` only after the reading has ended. A task that has not begun within ``grace_s`` never runs.
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
        """Takes the locks of up to ``count`` sleeping followers, the lookout's lock last. The caller must release the
        locks, to wake the followers.

        At most ``workers`` tasks may run. A task over this number must wait, and wakes no follower. To wake the lookout
        without need would delay its next look.
        """
        count = min(count, self.workers - self._running)
        woken = [self._sleeping.pop() for _ in range(min(count, len(self._sleeping)))]
        if len(woken) < count and self._lookout is not None:
            woken.append(self._lookout)
            self._lookout = None
        return woken

    def _wake_lookout(self) -> "Lock | None":
        """Makes the lookout look at the leader. If the lookout sleeps, returns the lookout's lock, which the caller
        must release. Otherwise returns None.
        """
        if self._watched:
            return None
        self._watched = True
        asleep, self._lookout = self._lookout, None
        return asleep

    def _hand_over(self) -> list[Lock]:
        """Moves the rest of the leader's batch to the followers' queue. Returns the locks of the followers to wake."""
        while self._batch:
            try:
                self._tasks.appendleft(self._batch.pop())
            except IndexError:  # the leader has just taken the last task
                break
        return self._wake(len(self._tasks))

    def _look(self, seen: int) -> bool:
        """Makes the calling lookout the leader if the present leader is still in the batch with the number ``seen``.
        Returns True if the lookout is now the leader.
        """
        if self._batches != seen:
            return False
        if not self._busy:
            self._watched = False  # no new batch: the lookout sleeps until the leader runs a batch
            return False
        self._busy, self._leader = False, get_ident()
        return True

    # ---- the leader

    def _run_batch(self, before_ns: int) -> None:
        """Runs the tasks of the leader's batch. Returns early if a task was slow, or if another thread is now the
        leader.
        """
        batch = self._batch
        while self._busy:
            try:
                task = batch.popleft()
            except IndexError:
                return
            run(task)
            began_ns, before_ns = before_ns, time.monotonic_ns()
            if before_ns - began_ns > _PATIENCE_NS:
                slow_ns = min(before_ns - began_ns, 2 * _LOOK_NS)  # other requests waited no longer than two looks
                self._spread_until_ns = before_ns + REST * slow_ns
                return

    def _end_batch(self) -> None:
        """Leaves the rest of the batch to followers. Raises Deposed if another thread is the leader now."""
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
        """Main function of the thread that is the first leader: reads for the server, and later runs tasks as a
        follower if another thread has become the leader.
        """
        tell_name()
        self._leader = get_ident()
        if not self._lead():
            self._follow()

    def _lead(self) -> bool:
        """Reads for the server. Returns True when the reading is over, and False when another thread is the leader."""
        reading = self._reading
        assert reading is not None
        over = True
        try:
            reading.read()
        except Deposed:
            over = False
        finally:  # also after an exception: the thread that stops the server waits for ``finish``
            if over:
                self._leader = 0
                reading.finish()
        return over

    # ---- the followers

    def _queue(self, tasks: Sequence[Task]) -> int:
        """Accepts tasks for followers, and wakes a follower for each task. Returns the number of accepted tasks."""
        with self._lock:
            self._refuse_when_stopping()
            accepted = max(0, min(len(tasks), self.limit - self.under_way))
            self._tasks.extend(tasks[:accepted])
            woken = self._wake(accepted)
        _release(woken)
        return accepted

    def _live(self) -> None:
        """Main function of a thread that starts as a follower."""
        tell_name()
        self._follow()

    def _follow(self) -> None:
        """Runs tasks as a follower, and becomes the leader if a slow request delays the leader. Returns when the pool
        has stopped, or when the reading has ended while this thread was the leader.
        """
        awake = Lock()
        awake.acquire()
        while True:
            task = self._next(awake)
            if task is not None:
                run(task)
                del task  # frees the objects of the task before this thread sleeps
                with self._lock:
                    self._running -= 1
            elif get_ident() != self._leader or self._lead():
                return

    def _next(self, awake: Lock) -> Task | None:
        """Waits for a task, and takes the oldest task. Returns None if this thread is the leader now, or if the pool
        has stopped.
        """
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
        """Blocks until another thread releases the held lock ``awake``, for ``timeout_s`` at most (-1: no timeout).
        Returns True if the time is over: then this thread is the lookout, and must look at the leader.
        """
        if awake.acquire(timeout=timeout_s):
            return False
        with self._lock:
            if self._lookout is awake:
                self._lookout = None
                return True
        awake.acquire()  # another thread has just taken this lock, and is going to release it
        return False


class _Reading:
    """Job of reading a server's connections (``Reader``). One leader hands over the job to the next leader."""

    def __init__(self, live: Callable[[], object], read: Callable[[], object], end: Callable[[], object]) -> None:
        self.thread = Thread(target=live, name="leader-first")
        self.start = self.thread.start
        self.read, self._end = read, end
        self._over = Event()

    def finish(self) -> None:
        """Calls the server's ``end`` after the reading, and wakes the thread that waits in ``join``."""
        try:
            self._end()
        finally:
            self._over.set()

    def join(self, timeout: float) -> None:
        """Blocks until the reading is over, for ``timeout`` seconds at most. Does not wait for the end of the reading
        thread.
        """
        self._over.wait(timeout)


def _release(sleepers: list[Lock]) -> None:
    for sleeper in sleepers:
        sleeper.release()
