"""The machine at a moment: its cores, the ticks of each core, and the speed of a fixed piece of work."""

import os
import timeit
from collections.abc import Collection
from pathlib import Path

_STAT = Path("/proc/stat")

IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL = range(4, 9)
"""Places of the numbers of a core's line in ``/proc/stat`` count these, in ticks of 10 ms (proc(5))."""

TICK_S = 0.01

_CALIBRATION = 100_000
"""Count of numbers that are added up: some 2 ms."""


def cores() -> tuple[int, ...]:
    """The numbers of the cores that this process may use, in order."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def stolen_ticks(of: Collection[int], stat: Path = _STAT) -> int:
    """Ticks that the hypervisor took from these cores since the machine started; 0 where the system does not say it."""
    return sum(ticks[STEAL] for ticks in core_ticks(of, stat))


def core_ticks(of: Collection[int], stat: Path = _STAT) -> list[list[int]]:
    """Line of each of these cores in ``/proc/stat``; empty where there are none. A missing number is 0."""
    names = {f"cpu{core}" for core in of}
    try:
        lines = [line.split() for line in stat.read_text(encoding="ascii").splitlines()]
    except OSError:
        return []
    found = [[0, *map(int, words[1:])] for words in lines if words and words[0] in names]
    return [[*ticks, *[0] * (STEAL + 1 - len(ticks))] for ticks in found]


def calibrated_us() -> float:
    """Time in µs of a fixed piece of work on the core that this thread is on, the best of five. Takes some 10 ms."""
    return min(timeit.repeat(lambda: sum(range(_CALIBRATION)), number=1, repeat=5)) * 1e6
