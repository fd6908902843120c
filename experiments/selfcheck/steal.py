"""Moments of steal. In such a moment the hypervisor gave cores of this machine to other machines, and no program could
run on these cores.

The kernel counts steal in ticks of 10 ms (``/proc/stat``, proc(5)). A thread reads the count every 20 ms. If the count
has risen at a reading, a moment ends at this reading, and begins two readings earlier. One reading earlier would be too
late: the counted tick may have begun before the previous reading.

Left out: systems other than Linux, on which the thread finds no moment; stalls with other causes, since a check must
count these stalls.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from experiments.results.machine import TICK_S, cores, stolen_ticks

LOOK_S = 0.02


class StealWatch:
    """Context in which a thread records the moments of steal."""

    def __init__(self, ticks: Callable[[], int] = lambda: stolen_ticks(cores())) -> None:
        self._ticks = ticks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="steal-watch")
        self.moments: list[tuple[int, int]] = []
        """Begin and end of each moment, as readings of ``time.perf_counter_ns``, in order. Moments may overlap."""
        self.stolen_s = 0.0
        """Stolen processor time so far, in seconds, over all cores."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def overlaps(self, from_ns: NDArray[np.int64], to_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each time span: True if the span overlaps a moment of steal. The times are readings of
        ``time.perf_counter_ns``."""
        hit = np.zeros(len(from_ns), dtype=np.bool_)
        for began_ns, ended_ns in self.moments:
            hit |= (from_ns < ended_ns) & (to_ns > began_ns)
        return hit

    def _look_on(self) -> None:
        """Reads the count of stolen ticks again and again until the context ends. Runs in the thread of this watch."""
        earlier_ns = last_ns = time.perf_counter_ns()
        before = self._ticks()
        while not self._stop.wait(LOOK_S):
            now, now_ns = self._ticks(), time.perf_counter_ns()
            if now > before:
                self.moments.append((earlier_ns, now_ns))
                self.stolen_s += (now - before) * TICK_S
            earlier_ns, last_ns, before = last_ns, now_ns, now
