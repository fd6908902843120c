"""Moments of steal are found where the count rose, and nowhere else."""

import threading
import time
from pathlib import Path

import numpy as np

from experiments.results.machine import stolen_ticks
from experiments.selfcheck.steal import StealWatch


def test_a_rise_is_a_moment() -> None:
    """Two more ticks at one look are one moment with 20 ms stolen. Only spans that overlap it are marked."""
    counts = iter([5, 5, 7])
    looks_ns: list[int] = []
    looked = threading.Event()

    def ticks() -> int:
        looks_ns.append(time.perf_counter_ns())
        count = next(counts, None)
        if count is None:
            looked.set()
        return count or 7

    with StealWatch(ticks) as watch:
        assert looked.wait(10)
    assert watch.stolen_s == 0.02
    [(began_ns, ended_ns)] = watch.moments
    assert began_ns <= looks_ns[1]
    assert looks_ns[2] <= ended_ns <= looks_ns[3]
    from_ns = np.array([began_ns - 10, began_ns - 10, ended_ns - 1, ended_ns])
    to_ns = np.array([began_ns, began_ns + 1, ended_ns + 5, ended_ns + 5])
    assert watch.overlaps(from_ns, to_ns).tolist() == [False, True, True, False]


def test_steal_is_the_eighth_number_of_each_core_s_line(tmp_path: Path) -> None:
    """Steal is the eighth number of each core's line in proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
    Only the asked cores count. Steal is 0 without the file, and with a shorter line."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 50 9 10\ncpu0 1 2 3 4 5 6 7 42 9 10\ncpu1 0 0 0 0 0 0 0 8 0 0\n")
    assert stolen_ticks([0], stat) == 42
    assert stolen_ticks([0, 1], stat) == 50
    assert stolen_ticks([0], tmp_path / "absent") == 0
    stat.write_text("cpu0 1 2\n")
    assert stolen_ticks([0], stat) == 0
