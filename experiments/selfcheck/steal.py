"""Moments when the hypervisor gave this machine's cores to others, in which no program here could run.

The kernel counts steal in ticks of 10 ms (``/proc/stat``, proc(5)). So a look every 20 ms tells the interval of the
steal, up to a tick that was nearly full before. A moment reaches from the look before the count rose to the look after
it, and one look further back because of such a tick.

Left out: other systems than Linux, where no moment is found; stalls that are not steal, which a check should see.
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
    """Watches for steal while ``with`` lasts, in a thread of its own."""

    def __init__(self, ticks: Callable[[], int] = lambda: stolen_ticks(cores())) -> None:
        self._ticks = ticks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="steal-watch")
        self.moments: list[tuple[int, int]] = []
        """Begin and end of each moment, on ``time.perf_counter_ns``, in order. Moments may overlap."""
        self.stolen_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def overlaps(self, from_ns: NDArray[np.int64], to_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Marks the spans of time that contain steal."""
        hit = np.zeros(len(from_ns), dtype=np.bool_)
        for began_ns, ended_ns in self.moments:
            hit |= (from_ns < ended_ns) & (to_ns > began_ns)
        return hit

    def _look_on(self) -> None:
        earlier_ns = last_ns = time.perf_counter_ns()
        before = self._ticks()
        while not self._stop.wait(LOOK_S):
            now, now_ns = self._ticks(), time.perf_counter_ns()
            if now > before:
                self.moments.append((earlier_ns, now_ns))
                self.stolen_s += (now - before) * TICK_S
            earlier_ns, last_ns, before = last_ns, now_ns, now
