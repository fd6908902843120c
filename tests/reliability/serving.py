"""Servers with their defaults, and a store on the disk; their state as seen from outside."""

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.end_to_end.process import Server

BASELINE_S = 2.0
"""Longest time after an attack until a server has as many threads and descriptors as before."""


LEADING = ("--executor", "leader-followers")
"""Executor for sockets beside the static pool, which is the default: checks that depend on the executor try both."""


@contextmanager
def usual_server(
    transport: str, program: Sequence[str] = ("stock_service", "serve"), options: Sequence[str] = ()
) -> Iterator[Server]:
    """A server with a store of its own, gone afterwards. ``program``: what follows ``python -m``."""
    with TemporaryDirectory() as folder:
        store = f"sqlite:{Path(folder) / 'store'}"
        with Server((*program, "--transport", transport, "--store", store, *options)) as server:
            yield server


def threads_and_descriptors(pid: int) -> tuple[int, int]:
    """Threads and descriptors of a process, without those that ``/proc`` needs or that close meanwhile."""
    links = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return len(os.listdir(f"/proc/{pid}/task")), sum(not link.startswith("/proc/") for link in links)


def at_rest(pid: int) -> tuple[int, int]:
    """Threads and descriptors once the server has seen that its clients have left."""
    threading.Event().wait(BASELINE_S / 2)
    return threads_and_descriptors(pid)


def within(limit_s: float, condition: Callable[[], bool]) -> bool:
    """Tell whether a condition comes true in time."""
    deadline_s, pause = time.monotonic() + limit_s, threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        pause.wait(0.02)
    return True


def memory_mib(pid: int, line: str = "VmRSS") -> float:
    """The memory that a process has; with ``VmHWM`` the most that it has had."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(words.split()[1]) / 1024 for words in status if words.startswith(line))


def files_at_most(count: int) -> None:
    """Lets this process open this number of files, or the largest number that it may."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
