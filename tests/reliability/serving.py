"""Servers with default options and a store on the disk, and their state as seen from outside."""

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
"""Second executor for sockets, after the default static pool. Checks that depend on the executor try both."""


@contextmanager
def usual_server(
    transport: str, program: Sequence[str] = ("stock_service", "serve"), options: Sequence[str] = ()
) -> Iterator[Server]:
    """A server with a new store, removed afterwards. ``program`` has the words after ``python -m``."""
    with TemporaryDirectory() as folder:
        store = f"sqlite:{Path(folder) / 'store'}"
        with Server((*program, "--transport", transport, "--store", store, *options)) as server:
            yield server


def threads_and_descriptors(pid: int) -> tuple[int, int]:
    """Number of threads and of descriptors of a process. Descriptors of ``/proc`` and closing descriptors do not
    count."""
    links = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return len(os.listdir(f"/proc/{pid}/task")), sum(not link.startswith("/proc/") for link in links)


def at_rest(pid: int) -> tuple[int, int]:
    """Number of threads and of descriptors after the server has noticed that its clients have left."""
    threading.Event().wait(BASELINE_S / 2)
    return threads_and_descriptors(pid)


def within(limit_s: float, condition: Callable[[], bool]) -> bool:
    """Waits for a condition. True if the condition came true in time."""
    deadline_s, pause = time.monotonic() + limit_s, threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        pause.wait(0.02)
    return True


def memory_mib(pid: int, line: str = "VmRSS") -> float:
    """Memory of a process, in MiB; with ``VmHWM`` the highest value so far."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(words.split()[1]) / 1024 for words in status if words.startswith(line))


def files_at_most(count: int) -> None:
    """Lets this process open this number of files, or the largest number that it may."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
