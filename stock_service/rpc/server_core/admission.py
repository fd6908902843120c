"""Admission: limits on the wait of a request, and on the number of tasks that the executor is given. No I/O.

A request's wait begins when its connection becomes readable again, after the server had read all earlier bytes of the
connection. While the executor keeps up, there are no limits. Once the executor is behind, requests wait at the reading
thread, and the server begins requests of one connection after the other (a connection's turn).

- **The delay target**, as in CoDel (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012) and its form for
  servers (Maurer, "Fail at Scale", ACM Queue 2015). A queue that was empty within the last ``INTERVAL_MS`` is a burst,
  which drains by itself. Any other queue is a standing queue: longer waits do not shorten it. So a request that waits
  in a standing queue for longer than the target is refused. A request may have its client's time limit: then the
  request may wait for a quarter of this limit, if a quarter is more than the target. In a burst the request may wait
  for a third of the limit. A request without a time limit counts as a request with the limit ``UNSAID_MS``.
- **Tasks of the executor.** The executor gets enough tasks for ``AHEAD_MS``, by the rate at which it ended tasks. The
  other requests stay in the server's queue, where they can still be refused, and where each connection has its turn.
  While no requests wait, the executor gets enough tasks for ``BURST_MS``.
- **Extra threads.** If tasks wait for a disk or another server, each extra thread gets a task. If tasks compute, extra
  threads end no more tasks under the GIL, and only keep the GIL from the reading thread. So the number of extra threads
  falls by a quarter while the executor computes all the time that reading leaves. Otherwise the number grows by a
  quarter. The number does not fall again before the last fall has changed the number of tasks under way.
"""

INTERVAL_MS = 100
"""A queue that was empty within this time is a burst. CoDel's interval, the round trip of a far network."""

UNSAID_MS = 4000
"""Time limit that counts for a request without one."""

AHEAD_MS = 1.5
"""Time for which the executor's tasks last while requests wait: many times the cost of handing tasks over. Meanwhile
the reading thread sleeps for a millisecond or more, and mostly finds the GIL free when it wakes.
"""

AHEAD_LEAST = 2
"""Number of tasks that the executor may always have: one task that runs, and the next task."""

BURST_MS = 15
"""Time for which the tasks of one hand-over last while no requests wait: less than any sensible delay target."""

MEASURED_MS = 20
"""Shortest time over which the executor is measured: two waits of 10 ms. Tasks that wait may wake together, and then
compute together.
"""

RAN_MS = 1
"""Shortest time of a measurement where the executor ran all its tasks at once."""

MEASURED_TASKS = 8
"""Smallest number of tasks given at once whose time is measured: reading the clock costs little compared with so many
tasks.
"""

FIRST_RATE = 10
"""Assumed number of tasks that the executor ends in a millisecond, before the first measurement."""

COMPUTES = 0.9
"""Share of the time that reading leaves. From this share on, the executor's tasks count as tasks that only compute."""

COMPUTES_MOST = 1.2
"""Share above which tasks compute on several cores without the GIL, so that more threads end more tasks."""

PAUSE_MS_MAX = 20
"""Longest sleep of the reading thread while requests wait."""

_MS = 1_000_000

READING_NS = _MS
"""Time for which connections are read, while requests wait, before the executor gets more tasks: tasks that compute
would take the GIL from the reading thread.
"""


class DelayTarget:
    """Limit on how long a request may wait; for one thread. Times are in nanoseconds, on any one clock."""

    def __init__(self, target_ms: float) -> None:
        """With a ``target_ms`` of 0, no request is refused for its wait."""
        self._target_ns = int(target_ms * _MS)
        self._calm_ns = 0  # last time when no request waited
        self._refused_ns = 0  # time of the last refusal

    def emptied(self, now_ns: int) -> None:
        """Notes that no request waited until now. Does nothing if a waiting request was refused at this time."""
        if self.recovered(now_ns):
            self._calm_ns = now_ns

    def refused(self, now_ns: int) -> None:
        """Notes that a request was refused for its wait."""
        self._refused_ns = now_ns

    def recovered(self, now_ns: int) -> bool:
        """True if no request was refused within the interval."""
        return now_ns - self._refused_ns > INTERVAL_MS * _MS

    def limit_ns(self, timeout_ms: int, now_ns: int) -> int:
        """Longest wait of a request, or 0 for an unlimited wait. ``timeout_ms`` is the request's time limit, or 0 for a
        request without a time limit.
        """
        if not self._target_ns:
            return 0
        waits_ns = (timeout_ms or UNSAID_MS) * _MS
        standing = now_ns - self._calm_ns > INTERVAL_MS * _MS
        return min(waits_ns, max(self._target_ns, waits_ns // (4 if standing else 3)))


class Ahead:
    """Number of tasks that an executor is given; the reading thread's. Times are in nanoseconds, on any one clock."""

    def __init__(self, workers: int, most: int) -> None:
        """``workers`` is the largest number of tasks that run at a time. ``most`` is the largest number of tasks that
        the executor takes.
        """
        self.tasks = min(most, int(FIRST_RATE * AHEAD_MS))
        """Number of tasks that the executor ends in ``AHEAD_MS``."""
        self.threads = workers
        """Number of threads that are given one more task each."""
        self.burst = min(most, FIRST_RATE * BURST_MS)
        """Tasks that the executor may be given at once where no requests wait."""
        self._workers, self._most = workers, most
        self._mark = (0, 0, 0, 0)  # at the last measurement: time, tasks ended, the process' CPU time, the reader's
        self._idle = False  # True: the executor was seen without tasks since then
        self._rate = 0.0  # tasks ended in a nanosecond

    def room(self, ended: int, under_way: int, now_ns: int, cpu_ns: int, reading_ns: int) -> int:
        """Number of tasks that the executor may get now; negative if the executor has too many tasks.

        ``ended`` is the number of tasks that the executor has ended, and ``under_way`` the number of its tasks under
        way. ``cpu_ns`` is the processor time of the process, and ``reading_ns`` the processor time of the reading
        thread.
        """
        self._idle = self._idle or not under_way
        mark_ns, mark_ended, mark_cpu_ns, mark_reading_ns = self._mark
        took_ns = now_ns - mark_ns
        if took_ns >= MEASURED_MS * _MS:
            if took_ns <= INTERVAL_MS * _MS:  # else no requests waited meanwhile
                read_ns = reading_ns - mark_reading_ns
                left_ns, computed_ns = took_ns - read_ns, cpu_ns - mark_cpu_ns - read_ns
                computes = COMPUTES * left_ns <= computed_ns <= COMPUTES_MOST * left_ns and left_ns > took_ns / 2
                step = max(1, self.threads // 4)
                if not computes:
                    self.threads = min(self._workers, self.threads + step)
                elif under_way <= self.threads + max(self.tasks, self.threads):
                    self.threads = max(0, self.threads - step)
                if computes or not self._idle:
                    self._measured((ended - mark_ended) / took_ns)
                else:  # the executor could have ended more tasks
                    self.tasks = min(self._most, self.tasks + max(1, self.tasks // 4))
            self._mark, self._idle = (now_ns, ended, cpu_ns, reading_ns), False
        return self.threads + max(self.tasks, self.threads) - under_way

    def ran(self, tasks: int, took_ns: int) -> None:
        """Notes that the executor, which had no tasks, got ``tasks``, and had begun all of them ``took_ns`` later."""
        if took_ns >= RAN_MS * _MS:
            self._measured(tasks / took_ns)

    def _measured(self, rate: float) -> None:
        rate = self._rate = max(rate, self._rate / 2)  # one slow moment counts by half at most
        self.tasks = min(self._most, max(AHEAD_LEAST, int(rate * AHEAD_MS * _MS)))
        self.burst = min(self._most, max(self._workers, int(rate * BURST_MS * _MS)))

    @property
    def lasting(self) -> float:
        """Number of tasks that the executor ends in a millisecond, the shortest sleep of the reading thread. 0 before
        the first measurement.
        """
        return self._rate * _MS

    def pause_s(self, under_way: int) -> float:
        """Time that the reading thread may sleep while requests wait: half as long as the executor's tasks last."""
        waiting = under_way - self.threads
        if waiting <= 0:
            return 0.0
        lasts_ns = waiting / (2 * self._rate) if self._rate else AHEAD_MS * _MS
        return min(max(lasts_ns, _MS), PAUSE_MS_MAX * _MS) / 1e9
