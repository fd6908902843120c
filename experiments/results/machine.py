"""State of the machine: its cores, the ticks of each core, and the time of a fixed computation. A tick is 10 ms."""

import os
import timeit
from collections.abc import Collection
from pathlib import Path

_STAT = Path("/proc/stat")

IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL = range(4, 9)
"""Indices of the numbers in a core's line of ``/proc/stat``. Each number is in ticks of 10 ms (proc(5))."""

TICK_S = 0.01

_CALIBRATION = 100_000
"""Number of additions of the fixed computation, which takes some 2 ms."""


def cores() -> tuple[int, ...]:
    """Numbers of the cores that this process may use, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def stolen_ticks(of: Collection[int], stat: Path = _STAT) -> int:
    """Number of ticks that the hypervisor took from these cores since the start of the machine. 0 if unknown."""
    return sum(ticks[STEAL] for ticks in core_ticks(of, stat))


def core_ticks(of: Collection[int], stat: Path = _STAT) -> list[list[int]]:
    """Numbers in ``/proc/stat`` for each of these cores, in ticks of 10 ms: one list for each core.

    The number at index 0 is 0, since the file has the core's name there. A missing number is 0. Without ``/proc/stat``,
    there are no lists.
    """
    names = {f"cpu{core}" for core in of}
    try:
        lines = [line.split() for line in stat.read_text(encoding="ascii").splitlines()]
    except OSError:
        return []
    found = [[0, *map(int, words[1:])] for words in lines if words and words[0] in names]
    return [[*ticks, *[0] * (STEAL + 1 - len(ticks))] for ticks in found]


def calibrated_us() -> float:
    """Shortest time of five runs of a fixed computation on this thread's core, in µs. Blocks for some 10 ms."""
    return min(timeit.repeat(lambda: sum(range(_CALIBRATION)), number=1, repeat=5)) * 1e6
