"""Admission control: limits on the wait of a request, and on the number of tasks that the executor gets. No I/O.

The wait of a request begins when the oldest unread bytes of its connection arrive. While the executor keeps up, no
request is refused for its wait. Once the executor is behind, requests wait in the server's queue. The server then
begins some requests of one connection, in the connection's *turn* (``queue.py``). Then the next connection has its
turn.

- **The delay target** limits waits, as in CoDel (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012) and
  in CoDel's variant for servers (Maurer, "Fail at Scale", ACM Queue 2015). A queue that was empty within the last
  ``INTERVAL_MS`` holds a burst of requests: such a queue empties by itself. Any other queue is a standing queue, which
  does not empty by itself. In a standing queue the server refuses a request whose wait is over both the target and a
  quarter of the client's time limit. In a burst the server refuses a request whose wait is over both the target and a
  third of the time limit. A request without a time limit counts as a request with the limit ``UNSAID_MS``.
- **Tasks of the executor.** While requests wait, the executor gets as many tasks as the executor ends in ``AHEAD_MS``,
  by its measured rate. All later requests stay in the server's queue. There the server can still refuse a request, and
  each connection has its turn. While no requests wait, the executor gets as many tasks as the executor ends in
  ``BURST_MS``.
- **Useful threads.** If tasks wait for a disk or another server, more threads end more tasks per second. So each thread
  gets a task. If tasks compute, the GIL lets one thread run at a time. Then more threads end no more tasks, and only
  keep the reading thread from the GIL. So the server measures the executor's processor time. If the executor computes
  for nearly all the time that the reading thread leaves, the number of threads with a task falls by a quarter.
  Otherwise the number grows by a quarter. After a fall, the executor must end the surplus tasks before the number falls
  again.
"""

INTERVAL_MS = 100
"""Time in milliseconds. A queue that was empty within this time holds a burst. The time is CoDel's interval: the
round-trip time to a distant client.
"""

UNSAID_MS = 4000
"""Assumed time limit of a request without a time limit, in milliseconds."""

AHEAD_MS = 1.5
"""Time in milliseconds. While requests wait, the executor gets the tasks that the executor ends in this time. Giving
tasks to the executor takes much less time. Meanwhile the reading thread sleeps for a millisecond or more. When the
reading thread wakes, the GIL is mostly free.
"""

AHEAD_LEAST = 2
"""Number of tasks that the executor may always have: one task that runs, and the next task."""

BURST_MS = 15
"""Time in milliseconds, less than any sensible delay target. While no requests wait, a batch has at most the tasks that
the executor ends in this time.
"""

MEASURED_MS = 20
"""Shortest time, in milliseconds, of a measurement of the executor: long enough for two waits of 10 ms. In a shorter
time, all tasks may be waiting, or all tasks may be computing, since waiting tasks may wake together.
"""

RAN_MS = 1
"""Time in milliseconds. If a batch ran for a shorter time, ``Ahead.ran`` does not compute the executor's rate of tasks.
"""

MEASURED_TASKS = 8
"""Smallest number of tasks in a batch whose running time is measured. For a smaller batch, reading the clock would take
a large part of the running time.
"""

FIRST_RATE = 10
"""Assumed number of tasks that the executor ends in a millisecond, before the first measurement."""

COMPUTES = 0.9
"""Ratio of the executor's processor time to the time during which the reading thread does not compute. If the measured
ratio is at least ``COMPUTES``, the server assumes that tasks only compute.
"""

COMPUTES_MOST = 1.2
"""Ratio like ``COMPUTES``. If the measured ratio is larger, tasks compute on several cores without the GIL. Then more
threads end more tasks.
"""

PAUSE_MS_MAX = 20
"""Longest sleep of the reading thread while requests wait, in milliseconds."""

_MS = 1_000_000

READING_NS = _MS
"""Time in nanoseconds. While requests wait, the reading thread reads connections for this time before the executor gets
more tasks: tasks that compute would take the GIL.
"""


class DelayTarget:
    """Limit on the wait of a request. Not thread-safe. All times are in nanoseconds, on the same clock."""

    def __init__(self, target_ms: float) -> None:
        """``target_ms`` is the delay target in milliseconds; 0 for no limit on the wait."""
        self._target_ns = int(target_ms * _MS)
        self._calm_ns = 0  # last time when the queue was empty
        self._refused_ns = 0  # time of the last refusal

    def emptied(self, now_ns: int) -> None:
        """Notes that the queue was empty until now. Does nothing within ``INTERVAL_MS`` after a refusal."""
        if self.recovered(now_ns):
            self._calm_ns = now_ns

    def refused(self, now_ns: int) -> None:
        """Notes that a request was refused because the request had waited too long."""
        self._refused_ns = now_ns

    def recovered(self, now_ns: int) -> bool:
        """Returns True if no request was refused within the last ``INTERVAL_MS``."""
        return now_ns - self._refused_ns > INTERVAL_MS * _MS

    def limit_ns(self, timeout_ms: int, now_ns: int) -> int:
        """Returns the longest allowed wait of a request, or 0 for an unlimited wait. ``timeout_ms`` is the request's
        time limit, or 0 for a request without a time limit.
        """
        if not self._target_ns:
            return 0
        waits_ns = (timeout_ms or UNSAID_MS) * _MS
        standing = now_ns - self._calm_ns > INTERVAL_MS * _MS
        return min(waits_ns, max(self._target_ns, waits_ns // (4 if standing else 3)))


class Ahead:
    """Limit on the number of tasks that an executor has, from measurements of the executor. Only the reading thread
    uses the object. All times are in nanoseconds, on the same clock.
    """

    def __init__(self, workers: int, most: int) -> None:
        """``workers`` and ``most`` are the executor's ``workers`` and ``limit``."""
        self.tasks = min(most, int(FIRST_RATE * AHEAD_MS))
        """Number of tasks that the executor ends in ``AHEAD_MS`` milliseconds, by the last measurements."""
        self.threads = workers
        """Number of useful threads: with more threads the executor would end no more tasks. The executor may have one
        task for each useful thread, and ``tasks`` further tasks.
        """
        self.burst = min(most, FIRST_RATE * BURST_MS)
        """Number of tasks that the executor may get at once while no requests wait."""
        self._workers, self._most = workers, most
        self._mark = (0, 0, 0, 0)  # at the last measurement: time, tasks ended, CPU time of the process and the reader
        self._idle = False  # True: since the last measurement the executor had no tasks for some time
        self._rate = 0.0  # tasks ended in a nanosecond

    def room(self, ended: int, under_way: int, now_ns: int, cpu_ns: int, reading_ns: int) -> int:
        """Returns the number of tasks that the executor may get now; negative if the executor has too many tasks.

        ``ended`` is the number of tasks that the executor has ended since its start. ``under_way`` is the number of
        accepted tasks that have not ended. ``cpu_ns`` is the processor time of the process, and ``reading_ns`` the
        processor time of the reading thread.
        """
        self._idle = self._idle or not under_way
        mark_ns, mark_ended, mark_cpu_ns, mark_reading_ns = self._mark
        took_ns = now_ns - mark_ns
        if took_ns >= MEASURED_MS * _MS:
            if took_ns <= INTERVAL_MS * _MS:  # a longer time includes times without waiting requests
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
        """Notes a measurement. The executor had no tasks, and then got ``tasks`` tasks. After ``took_ns`` nanoseconds
        the executor had begun all these tasks.
        """
        if took_ns >= RAN_MS * _MS:
            self._measured(tasks / took_ns)

    def _measured(self, rate: float) -> None:
        rate = self._rate = max(rate, self._rate / 2)  # one slow measurement halves the rate at most
        self.tasks = min(self._most, max(AHEAD_LEAST, int(rate * AHEAD_MS * _MS)))
        self.burst = min(self._most, max(self._workers, int(rate * BURST_MS * _MS)))

    @property
    def lasting(self) -> float:
        """Number of tasks that the executor ends in a millisecond; 0 before the first measurement. A millisecond is the
        reading thread's shortest sleep.
        """
        return self._rate * _MS

    def pause_s(self, under_way: int) -> float:
        """Returns the time in seconds that the reading thread may sleep while requests wait. In twice this time the
        executor ends as many tasks as now wait for a thread.
        """
        waiting = under_way - self.threads
        if waiting <= 0:
            return 0.0
        lasts_ns = waiting / (2 * self._rate) if self._rate else AHEAD_MS * _MS
        return min(max(lasts_ns, _MS), PAUSE_MS_MAX * _MS) / 1e9
