"""Leaks of a test: threads that still run, file descriptors that are still open, and other cores to run on.

A stopped client or server may take a moment to end, so the check waits, with a bound. gRPC's own threads and
descriptors end with the last server and channel. The poller of gRPC on asyncio would end and start again. So
``start_what_stays`` starts the poller before the count, and keeps it.
"""

import asyncio
import gc
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache

import grpc.aio

WAIT_S = 5.0
"""Longest time for a stopped program to be gone: ten times the time of the slowest program here."""

POLL_S = 0.02
"""Time between two looks."""


@cache
def start_what_stays() -> None:
    """Starts, once, the threads that a library keeps for the life of the process."""
    asyncio.run(_start_poller())


async def _start_poller() -> None:
    """Keeps gRPC's poller, which else ends when its last object is collected. On a loop, since outside it needs the
    thread's default loop, which an earlier ``asyncio.run`` has taken away."""
    grpc.aio.init_grpc_aio()


@dataclass(frozen=True, slots=True)
class Footprint:
    """The threads, open descriptors and cores of this process at one moment."""

    threads: frozenset[threading.Thread]
    descriptors: Counter[str]
    cores: frozenset[int]

    def left_since(self) -> list[str]:
        """The leaks since that moment, in words. Does not wait."""
        now = footprint()
        threads = [f"thread {thread.name}" for thread in now.threads - self.threads]
        descriptors = [f"descriptor on {name}" for name in (now.descriptors - self.descriptors).elements()]
        cores = [] if now.cores == self.cores else [f"cores {sorted(now.cores)} in place of {sorted(self.cores)}"]
        return sorted(threads + descriptors + cores)

    def leaks(self, wait_s: float = WAIT_S) -> list[str]:
        """The leaks that do not go away within ``wait_s``. Blocks for ``wait_s`` at most."""
        if not (left := self.left_since()):
            return []
        deadline = time.monotonic() + wait_s
        while True:
            gc.collect()  # what only a cycle of references keeps open is no leak, whenever the cycle is let go
            left = self.left_since()
            if not left or time.monotonic() >= deadline:
                return left
            threading.Event().wait(POLL_S)


def footprint() -> Footprint:
    """The threads, descriptors and cores of this moment."""
    descriptors: Counter[str] = Counter()
    for descriptor in os.listdir("/dev/fd"):
        try:
            descriptors[os.readlink(f"/dev/fd/{descriptor}")] += 1
        except OSError:  # the listing's own descriptor, closed by now
            continue
    return Footprint(frozenset(threading.enumerate()), descriptors, frozenset(os.sched_getaffinity(0)))
