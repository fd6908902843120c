"""Processor time that a measurement lost: stolen time, which the hypervisor took, and foreign time, which other
programs took.

**Foreign time** is the time of all cores minus idle time, stolen time, and the measurement's own time. The kernel
reports idle and stolen time in ticks of 10 ms. The measurement's own time is the time of this process and of all its
descendants. The kernel reports the time of a running process in nanoseconds, and the time of a process's ended children
in ticks. So the time of a short-lived child is counted, too.

The kernel handles network packets (softirq) while the sending process runs. Most kernels count this work as time of the
process. Some kernels count interrupt time separately (``CONFIG_IRQ_TIME_ACCOUNTING``), and report interrupt ticks over
0. Then interrupt time is neither own time nor foreign time, since the process that caused the interrupt is unknown. A
daemon whose parent has ended is no descendant any more. Its time counts as foreign. Left out: operating systems other
than Linux, where foreign time is unknown.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from clients.load.run.counters import processes_cpu_ns
from experiments.kinds.block import Run
from experiments.results.machine import IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TICK_S, core_ticks, cores
from experiments.results.observed import RoundSeen
from stock_service.rpc.errors import Unavailable

S = TypeVar("S")

_PARENT, _CHILDREN_USER, _CHILDREN_KERNEL = 1, 13, 14
"""Indices of words in ``/proc/PID/stat`` after the program's name (proc(5)). ``_PARENT``: id of the parent process.
``_CHILDREN_USER``, ``_CHILDREN_KERNEL``: ticks of ended children in user mode and in kernel mode."""


class MachineWatch:
    """Meter that reads the stolen and foreign time of each round. For one thread. A reading takes some 3 ms."""

    def __init__(
        self,
        is_alone: bool = True,
        proc: Path = Path("/proc"),
        clock_s: Callable[[], float] = time.monotonic,
        cpu_ns: Callable[[tuple[int, ...]], int] = processes_cpu_ns,
    ) -> None:
        """Begins the first round. ``is_alone`` is true if this process started every server. Otherwise foreign time is
        unknown, since the time of a server that ran already would count as foreign."""
        self._proc, self._clock_s, self._cpu_ns = proc, clock_s, cpu_ns
        self._cores = cores()
        self._tells_foreign = is_alone and bool(self._core_ticks())
        self._before = self._edge()

    def seen(self) -> RoundSeen:
        """Ends the present round, returns its length and its stolen and foreign time, and begins the next round."""
        before, self._before = self._before, self._edge()
        lasted_s, stolen, foreign = (now - then for now, then in zip(self._before, before, strict=True))
        return RoundSeen(lasted_s, round(stolen), max(0, round(foreign)) if self._tells_foreign else None)

    def _edge(self) -> tuple[float, int, float]:
        """Present time in seconds, stolen ticks so far, and foreign ticks so far plus an unknown constant. In the
        difference of two readings, this constant disappears."""
        own = self._own_ticks() if self._tells_foreign else 0.0
        at_s, every = self._clock_s(), self._core_ticks()
        apart = (IDLE, IOWAIT, STEAL, *((IRQ, SOFTIRQ) if any(ticks[IRQ] for ticks in every) else ()))
        known = sum(ticks[which] for ticks in every for which in apart)
        return at_s, sum(ticks[STEAL] for ticks in every), at_s / TICK_S * len(every) - known - own

    def _core_ticks(self) -> list[list[int]]:
        return core_ticks(self._cores, self._proc / "stat")

    def _own_ticks(self) -> float:
        """Processor time of this process and of all its descendants, including ended descendants, in ticks of
        10 ms."""
        parents: dict[int, int] = {}
        ended: dict[int, int] = {}
        for name in filter(str.isdecimal, os.listdir(self._proc)):
            with suppress(OSError):  # the process has just ended: its parent has its time
                words = (self._proc / name / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(name)] = int(words[_PARENT])
                ended[int(name)] = int(words[_CHILDREN_USER]) + int(words[_CHILDREN_KERNEL])
        own = 0.0
        for pid in _family(os.getpid(), parents):
            with suppress(Unavailable):  # the process has just ended
                own += ended.get(pid, 0) + self._cpu_ns((pid,)) / 1e9 / TICK_S
        return own


def watched(places: Iterable[int], observe: Callable[[int], S]) -> Iterator[Run[S]]:
    """Observes cells one after another. ``places`` has the indices of the cells. Each step of the iterator waits for
    one observation.

    With each observation come the stolen time and the foreign time from the observation's start to its end.
    """
    for place in places:
        machine = MachineWatch()
        yield Run(place, observe(place), machine.seen())


def _family(root: int, parents: dict[int, int]) -> Iterator[int]:
    """Ids of a process and of all its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    waiting = [root]
    while waiting:
        yield (pid := waiting.pop())
        waiting += children.get(pid, ())
