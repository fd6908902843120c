"""Foreign processor time during a sweep: time of the hypervisor, and of processes that are not the sweep's.

Foreign processor time is all of the cores' time that was neither idle, nor stolen by the hypervisor, nor the sweep's
own. The kernel tells idle time to a tick of 10 ms. The sweep's own time is that of this process, of the processes that
it started, and of theirs. Each process tells its processor time in nanoseconds, and the time of its children that have
ended. So a child that lived for a moment is counted too.

The kernel's work for network packets (softirq) is done while the process runs that sends them. Most kernels count it as
that process's time. Some count interrupts apart from every process (``CONFIG_IRQ_TIME_ACCOUNTING``), which shows in
their number of interrupt ticks. There interrupt time is left out on both sides, since nothing tells whose it is. Left
out too: a daemon that leaves its family, which counts as foreign; other systems than Linux, where nothing is told.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from clients.load.run.counters import processes_cpu_ns
from experiments.results.machine import IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TICK_S, core_ticks, cores
from experiments.results.observed import RoundSeen
from stock_service.rpc.errors import Unavailable

_PARENT, _CHILDREN_USER, _CHILDREN_KERNEL = 1, 13, 14
"""Places of words in ``/proc/PID/stat`` behind the name: the parent, and ticks of ended children (proc(5))."""


class MachineWatch:
    """Watch of who takes the cores' time, round after round. One thread's. Reading takes some 3 ms."""

    def __init__(
        self,
        is_alone: bool = True,
        proc: Path = Path("/proc"),
        clock_s: Callable[[], float] = time.monotonic,
        cpu_ns: Callable[[tuple[int, ...]], int] = processes_cpu_ns,
    ) -> None:
        """Begins the first round. ``is_alone``: every server of the sweep was started here. Otherwise a server that
        runs already would be taken for foreign, so foreign time is not told."""
        self._proc, self._clock_s, self._cpu_ns = proc, clock_s, cpu_ns
        self._cores = cores()
        self._tells_foreign = is_alone and bool(self._core_ticks())
        self._before = self._edge()

    def seen(self) -> RoundSeen:
        """The round that ends now. The next round begins."""
        before, self._before = self._before, self._edge()
        lasted_s, stolen, foreign = (now - then for now, then in zip(self._before, before, strict=True))
        return RoundSeen(lasted_s, round(stolen), max(0, round(foreign)) if self._tells_foreign else None)

    def _edge(self) -> tuple[float, int, float]:
        """The moment; the ticks stolen so far; the ticks of foreign processes so far, plus a constant."""
        own = self._own_ticks() if self._tells_foreign else 0.0
        at_s, every = self._clock_s(), self._core_ticks()
        apart = (IDLE, IOWAIT, STEAL, *((IRQ, SOFTIRQ) if any(ticks[IRQ] for ticks in every) else ()))
        known = sum(ticks[which] for ticks in every for which in apart)
        return at_s, sum(ticks[STEAL] for ticks in every), at_s / TICK_S * len(every) - known - own

    def _core_ticks(self) -> list[list[int]]:
        return core_ticks(self._cores, self._proc / "stat")

    def _own_ticks(self) -> float:
        """Ticks of this process and of all its descendants, ended ones included."""
        parents: dict[int, int] = {}
        ended: dict[int, int] = {}
        for name in filter(str.isdecimal, os.listdir(self._proc)):
            with suppress(OSError):  # it has just ended: its parent tells its time
                words = (self._proc / name / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(name)] = int(words[_PARENT])
                ended[int(name)] = int(words[_CHILDREN_USER]) + int(words[_CHILDREN_KERNEL])
        own = 0.0
        for pid in _family(os.getpid(), parents):
            with suppress(Unavailable):  # it has just ended
                own += ended.get(pid, 0) + self._cpu_ns((pid,)) / 1e9 / TICK_S
        return own


def _family(root: int, parents: dict[int, int]) -> Iterator[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    waiting = [root]
    while waiting:
        yield (pid := waiting.pop())
        waiting += children.get(pid, ())
