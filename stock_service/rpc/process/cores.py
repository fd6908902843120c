"""Choice of the cores on which the threads of a server run: ``--cpus``.

The GIL lets one thread of a process compute at a time. On two cores, the GIL often passes to a thread on the other
core, and this thread must wake first. So a server is 1.5 to 3 times slower on two cores than on one core. Only work
that releases the GIL, such as hashing, gains from more cores. So ``auto`` keeps a server on one core, and gives the
server all cores while the server is faster on all cores:

- If the server's threads have used the whole core, or have waited for the core, the server tries all cores until the
  next look.
- All threads together can hold the GIL for at most one second in each second. So if the sum of the threads' processor
  times outside the kernel is larger, threads have computed without the GIL. While this sum is at least ``GAINS``
  seconds in each second, the server stays on all cores.
- If the sum is less than ``GAINS``, the server returns to one core. The next try comes after ``AGAIN_S``. After each
  try that fails, the time until the next try doubles, up to ``AGAIN_MOST_S``.
- If other processes use the server's core, and another core is idle, the server moves to the idle core.

``Keeping`` decides, without I/O. ``Keeper`` reads /proc, and moves the threads. ``Keeper`` has one thread, which wakes
every ``LOOK_S``. The threads that answer requests do no work for ``Keeper``.
"""

import os
import resource
import threading
import time
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stock_service.rpc.concurrency.executor import has_gil
from stock_service.rpc.errors import UsageError

LOOK_S = 0.2
"""Shortest time, in seconds, between two looks: at each look the server reads the processor times and decides on cores.
"""

FULL = 0.9
"""Share of the time between two looks. If the threads compute, or wait for the core, for at least this share, the
server tries all cores.
"""

GAINS = 1.2
"""Processor time outside the kernel that the threads use in one second, in seconds. If the threads use at least this
time, the server counts as faster on all cores.
"""

AGAIN_S = 1.0
AGAIN_MOST_S = 16.0
"""Shortest (``AGAIN_S``) and longest time, in seconds, until the next try of all cores. If a server is faster on one
core, tries take 1.3 % of its time with the longest time.
"""

MOVES_S = 0.1
"""Time, in seconds. The server moves to another core if two conditions are true for the time between two looks. Other
processes used the server's core for ``MOVES_S`` or more. The other core was idle for a longer time than the server's
core, by ``MOVES_S`` or more.
"""

LOOKING = 0.005
"""Largest share of the time that all looks of a server may take: 0.5 %."""

CORES_MAX = 8192
"""Largest number of cores that Linux supports. A larger range in ``--cpus`` would fill memory."""

AUTO, NONE = "auto", "none"

Cores = str | tuple[int, ...]
"""Value of ``--cpus``: ``AUTO``, ``NONE``, or the numbers of cores."""

_TASKS = Path("/proc/self/task")
_STAT = Path("/proc/stat")
_TICKS_HZ = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Used:
    """Processor time that a process has used since its start, in seconds."""

    at_s: float
    """Time when the processor times were read, on ``time.monotonic``."""
    user_s: float
    """Processor time outside the kernel."""
    kernel_s: float
    """Processor time in the kernel."""
    waited_s: float
    """Time for which the process's threads waited for a core."""


class Keeping:
    """Decision between one core and all cores. Each look decides again. No I/O. Not thread-safe."""

    def __init__(self, first: Used) -> None:
        self.free = False
        """True if the server must have all cores, False for one core."""
        self.tries = 0
        """Number of tries: how many times the server has changed from one core to all cores."""
        self.free_s = 0.0
        """Seconds for which the server had all cores."""
        self._last = first
        self._next_s = 0.0  # earliest time of the next try
        self._again_s = AGAIN_S

    def look(self, now: Used) -> bool:
        """Decides again, by the processor time used until ``now``. Returns True if ``free`` has changed: the caller
        must then move the threads.
        """
        last, self._last = self._last, now
        took_s = now.at_s - last.at_s
        if took_s <= 0:
            return False
        was_free = self.free
        user = (now.user_s - last.user_s) / took_s
        if not was_free:
            wanted = user + (now.kernel_s - last.kernel_s + max(0.0, now.waited_s - last.waited_s)) / took_s
            self.free = wanted >= FULL and now.at_s >= self._next_s
            self.tries += self.free
            return self.free
        self.free_s += took_s
        self.free = user >= GAINS
        if self.free:
            self._again_s = AGAIN_S
        else:
            self._next_s = now.at_s + self._again_s
            self._again_s = min(2 * self._again_s, AGAIN_MOST_S)
        return not self.free


class Keeper:
    """Placement of this process's threads on the cores of ``--cpus``, until ``stop``. Make a ``Keeper`` before the
    process starts other threads, since a new thread has the cores of the thread that starts it.
    """

    def __init__(self, wanted: Cores) -> None:
        """Raises UsageError if this process may not run on the cores ``wanted``."""
        self._allowed = cores_allowed()
        self._moves = 0
        self._keeping: Keeping | None = None
        if isinstance(wanted, tuple):
            absent = sorted(set(wanted) - set(self._allowed))
            if absent:
                raise UsageError("--cpus", said(wanted), f"of {said(self._allowed)}")
            self._allowed = wanted
            _move(wanted)
        elif wanted == AUTO and len(self._allowed) > 1 and has_gil():
            self._core = self._allowed[os.getpid() % len(self._allowed)]  # successive processes get different cores
            _move((self._core,))
            self._keeping = Keeping(_used())
            self._stopping = threading.Event()
            self._thread = threading.Thread(target=self._watch, args=(self._keeping,), name="cores")
            self._thread.start()

    def stop(self) -> str:
        """Ends the thread that moves threads, if any. Returns a text on the cores of this process, for ``--stats``."""
        keeping = self._keeping
        if keeping is None:
            return f"on {said(self._allowed)}"
        self._stopping.set()
        self._thread.join()
        tried = f"tried all of them {keeping.tries}×, for {keeping.free_s:.1f} s together; moved {self._moves}×"
        return f"kept to one of {said(self._allowed)}; {tried}"

    def _watch(self, keeping: Keeping) -> None:
        """Main function of the thread. A look takes some 10 µs for each thread of this process. All looks together take
        at most the share ``LOOKING`` of the time.
        """
        last, idle_last_s, looked_s = _used(), _idle_s(), 0.0
        while not self._stopping.wait(max(LOOK_S, looked_s / LOOKING)):
            try:
                now, idle_s = _used(), _idle_s()
            except OSError:  # the process has no free descriptor now; the next look may succeed
                continue
            changed = keeping.look(now)
            if not keeping.free:
                idle_for_s = {core: idle_s[core] - idle_last_s[core] for core in self._allowed if core in idle_s}
                own_s = now.user_s + now.kernel_s - last.user_s - last.kernel_s
                others_s = now.at_s - last.at_s - idle_for_s.get(self._core, 0.0) - (0.0 if changed else own_s)
                core = better_core(self._core, others_s, idle_for_s)
                if changed or core != self._core:
                    self._moves += core != self._core
                    self._core = core
                    _move((core,))
            elif changed:
                _move(self._allowed)
            last, idle_last_s, looked_s = now, idle_s, time.monotonic() - now.at_s


def better_core(current: int, others_s: float, idle_s: Mapping[int, float]) -> int:
    """Returns the core for the server. If the conditions of ``MOVES_S`` are true, this is the core that was idle
    longest, otherwise the current core. ``others_s`` is the time for which other processes used the current core, and
    ``idle_s`` the idle time of each core.
    """
    best = max(idle_s, key=idle_s.__getitem__, default=current)
    gained_s = idle_s.get(best, 0.0) - idle_s.get(current, 0.0)
    return best if others_s >= MOVES_S and gained_s >= MOVES_S else current


def cpus(text: str) -> Cores:
    """Option type of ``--cpus``: ``auto``, ``none``, or cores such as ``0,2-3``."""
    if text in (AUTO, NONE):
        return text
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            numbers = range(int(first), int(last if dash else first) + 1)
            if not numbers or numbers.stop > CORES_MAX:
                raise ValueError
            found.update(numbers)
    except ValueError as error:
        raise ArgumentTypeError(f"got {text!r}, allowed: auto, none, or cores such as 0,2-3") from error
    return tuple(sorted(found))


def cores_allowed() -> tuple[int, ...]:
    """Returns the cores on which this process may run."""
    return tuple(sorted(os.sched_getaffinity(0)))


def said(cores: Sequence[int]) -> str:
    """Returns a text with the numbers of cores, such as ``core 0`` or ``cores 0, 2``."""
    return f"core {cores[0]}" if len(cores) == 1 else f"cores {', '.join(map(str, cores))}"


def _used() -> Used:
    """Reads the processor times of this process. ``waited_s`` leaves out threads that have ended."""
    at_s = time.monotonic()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    waited_ns = 0
    for task in os.listdir(_TASKS):
        try:
            with open(f"{_TASKS}/{task}/schedstat", "rb") as file:
                waited_ns += int(file.read().split()[1])
        except (OSError, IndexError):  # the thread has just ended, or this kernel does not count waits
            continue
    return Used(at_s, usage.ru_utime, usage.ru_stime, waited_ns / 1e9)


def _idle_s() -> dict[int, float]:
    """Reads the idle time of each core since the machine started, in seconds. Empty if the system does not tell these
    times.
    """
    try:
        lines = _STAT.read_text().splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines if line.startswith("cpu") and line[3:4].isdigit()]
    return {int(row[0][3:]): (int(row[4]) + int(row[5])) / _TICKS_HZ for row in rows}


def _move(cores: Sequence[int]) -> None:
    """Moves every thread of this process to the given cores."""
    moved: set[str] = set()
    while new := set(os.listdir(_TASKS)) - moved:  # a thread that an unmoved thread starts has the old cores
        for task in new:
            try:
                os.sched_setaffinity(int(task), cores)
            except OSError:  # the thread has just ended, or the system does not allow the core any more
                continue
        moved |= new
