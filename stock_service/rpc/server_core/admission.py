"""How long a request may wait, how many go to the executor at a time, and what refusing may cost. No I/O.

A request's wait counts from when its connection was first seen readable after it had last been emptied. While the
executor keeps up, nothing of this is asked. Once it is behind, requests wait at the reading thread, and connections get
their turns one after the other.

- **The delay target**, as in CoDel (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012) and its form for
  servers (Maurer, "Fail at Scale", ACM Queue 2015). A queue that was empty within the last ``INTERVAL_MS`` is a burst,
  which drains by itself. One that was not is standing, and a longer wait gains nobody anything. So what waits in a
  standing queue for longer than the target is refused. A request may say how long its client waits. It may then wait
  for a quarter of that, if this is more than the target. In a burst it may wait for half. One that does not say is
  taken to have said ``UNSAID_MS``.
- **The executor is given** what it begins within ``AHEAD_MS``, by the rate at which it began tasks. The rest stays
  where it can still be refused, and where each connection has its turn. Where nobody waits yet it is given what it
  begins within ``BURST_MS``.
- **Refusing** may take a fifth of the processor while there is anything else to do. Past that, connections that were
  refused something lately are not read for a while: they are those that send most. Where all that waits is late,
  refusing is the way to what is not, and takes the rest. Turns are equal, so what waits too long is mostly theirs who
  send more.
"""

INTERVAL_MS = 100
"""A queue that was short within so long is a burst: CoDel's interval, a round trip of a far network."""

UNSAID_MS = 4000
"""How long a client is taken to wait that does not say it."""

AHEAD_MS = 1.5
"""What the executor is given while requests wait lasts it for so long. It is many times what giving it costs, and less
than the static pool leaves a batch to one thread (``BATCH_S``): so the reading thread finds the GIL free after it."""

BURST_MS = 15
"""What lasts it for so long is begun at once where nobody waits: less than the least delay target that makes sense."""

MEASURED_MS = 2
"""The executor's rate is measured over at least so long, while it has tasks waiting."""

RAN_MS = 1
"""The same, where it ran all that it was given."""

MEASURED_TASKS = 8
"""Of so many tasks given at once, or more, it is measured how long they take: asking for the time is then nothing."""

FIRST_RATE = 10
"""Tasks a millisecond that the executor is taken to begin until that was measured."""

AHEAD_LEAST = 8
"""Tasks that may always wait in the executor: so a thread that is done finds one, however slow they are."""

PAUSE_MS_MAX = 20
"""The reading thread looks again after so long, at most, while requests wait."""

BUDGET_WINDOW_MS = 20
"""Over so long what refusing takes is added up. So a connection is left unread for less than requests may wait, and
others wait for a fifth of this at a time."""

BUDGET_SHARE = 0.2
"""Of the processor, for refusals."""

REFUSED_NS = 2_500
"""What it takes to read a small request, cut it and find it late, of many that came at once."""

_MS = 1_000_000

READING_NS = _MS
"""While requests wait, connections are read for so long before the executor is given more: what it runs may compute,
and would take the GIL from whoever reads on."""


class Admission:
    """One server's, for its reading thread. Times are in nanoseconds, on any one clock."""

    __slots__ = (
        "_calm_ns",
        "_mark_begun",
        "_mark_ns",
        "_most",
        "_rate",
        "_refused_ns",
        "_spent_ns",
        "_target_ns",
        "_window_ns",
        "ahead",
        "burst",
    )

    def __init__(self, target_ms: float, most: int) -> None:
        """``target_ms`` 0: no request is refused for its wait. ``most``: tasks that the executor takes at all."""
        self.ahead = min(most, int(FIRST_RATE * AHEAD_MS))
        """Tasks that may wait in the executor while requests wait for their turn."""
        self.burst = min(most, FIRST_RATE * BURST_MS)
        """Tasks that it may be given at once where none do."""
        self._most = most
        self._target_ns = int(target_ms * _MS)
        self._calm_ns = 0  # when last no request waited
        self._refused_ns = 0  # when one was last refused
        self._mark_ns = 0  # since when the executor was never without tasks; 0: it was
        self._mark_begun = 0  # the tasks begun by then
        self._rate = 0.0  # tasks begun in a nanosecond
        self._window_ns = 0  # when the budget's window began
        self._spent_ns = 0

    def room(self, begun: int, waiting: int, now_ns: int) -> int:
        """How many tasks the executor may be given now, of which it has begun and has waiting so many."""
        if not waiting:
            self._mark_ns = 0
            self.ahead = min(self._most, self.ahead + self.ahead // 4)  # it might have begun more
        elif not self._mark_ns:
            self._mark_ns, self._mark_begun = now_ns, begun
        elif now_ns - self._mark_ns >= MEASURED_MS * _MS:
            measured = (begun - self._mark_begun) / (now_ns - self._mark_ns)
            self._measured(measured)
            self._mark_ns, self._mark_begun = now_ns, begun
        return max(0, self.ahead - waiting)

    def ran(self, tasks: int, took_ns: int) -> None:
        """The executor, which had none, was given so many tasks, and had begun all of them so long after."""
        if took_ns >= RAN_MS * _MS:
            self._measured(tasks / took_ns)

    def _measured(self, rate: float) -> None:
        rate = self._rate = max(rate, self._rate / 2)  # one slow moment is not taken for the truth
        self.ahead = min(self._most, max(AHEAD_LEAST, int(rate * AHEAD_MS * _MS)))
        self.burst = min(self._most, max(AHEAD_LEAST, int(rate * BURST_MS * _MS)))

    @property
    def lasting(self) -> float:
        """Tasks that last as long as the reading thread's shortest sleep, of a millisecond; 0: not measured yet."""
        return self._rate * _MS

    def pause_s(self, waiting: int) -> float:
        """How long the reading thread may sleep while requests wait: half of what the executor has lasts so long."""
        if not waiting:
            return 0.0
        lasts_ns = waiting / (2 * self._rate) if self._rate else AHEAD_MS * _MS
        return min(max(lasts_ns, _MS), PAUSE_MS_MAX * _MS) / 1e9

    def emptied(self, now_ns: int) -> None:
        """Until now no request waited. That says nothing where waiting ones have just been refused."""
        if self.recovered(now_ns):
            self._calm_ns = now_ns

    def recovered(self, now_ns: int) -> bool:
        """Whether nothing was refused within the interval."""
        return now_ns - self._refused_ns > INTERVAL_MS * _MS

    def limit_ns(self, timeout_ms: int, now_ns: int) -> int:
        """How long a request may wait whose client waits for ``timeout_ms`` (0: it does not say); 0: for ever."""
        if not self._target_ns:
            return 0
        waits_ns = (timeout_ms or UNSAID_MS) * _MS
        standing = now_ns - self._calm_ns > INTERVAL_MS * _MS
        return min(waits_ns, max(self._target_ns, waits_ns // (4 if standing else 2)))

    def spend(self, refused: int, spent_ns: int, now_ns: int) -> int:
        """To refuse so many took so long, and to read them as long again, or longer where they were many.

        Where that is too much: until when those who cause it are not to be read; else 0.
        """
        self._refused_ns = now_ns
        if now_ns - self._window_ns > BUDGET_WINDOW_MS * _MS:
            self._window_ns, self._spent_ns = now_ns, 0
        self._spent_ns += spent_ns + max(spent_ns, refused * REFUSED_NS)
        over = self._spent_ns > BUDGET_SHARE * BUDGET_WINDOW_MS * _MS
        return self._window_ns + BUDGET_WINDOW_MS * _MS if over else 0
