"""A host's share of a load: a task on a Dask worker. The task runs a load plan in the same way as a run from a single
machine.

A share sends requests at most once. Each share has a token in a queue on the scheduler. A token can be taken only once.
Dask may start a share a second time. The second task finds no token, sends no requests, and tells the coordinator (the
process that started the load). The coordinator then refuses the run.

By the host's clock, the clients should connect ``LEAD_S`` seconds after the host got the start signal. The host also
measures the real time from the signal to the first connect. The worker must run without a nanny (Dask's process that
restarts a worker), since a nanny's worker may start no processes.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from distributed import Event, Queue, get_worker

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult
from clients.load.run import fleet
from clients.load.run.fleet import Progress
from stock_service.rpc.errors import StockServiceError

LEAD_S = 0.5
"""Time from a host's start signal to its first connect, in seconds. The host's answer to the signal must arrive within
this time."""

GO_S = fleet.READY_S + 10.0
"""Longest wait for the start signal, in seconds. The clients of a host take at most ``READY_S`` to get ready."""

SAID_EVERY_S = 1.0
"""Time between two signs of life of a host, in seconds."""

READY, HEARD, BEGUN, LIVES, AGAIN = "ready", "heard", "begun", "lives", "again"
"""Messages of a host to the coordinator. ``BEGUN`` has the nanoseconds since ``HEARD``; ``LIVES`` has the number of
requests so far."""

FOLDERS = ("clients", "stock_service", "experiments/services")
"""Folders with all code that a host runs. A study's load checks replies by functions of ``experiments/services``."""

_LOOK_S = 0.2
"""Time in seconds between two checks if the coordinator still wants the share."""

_one = threading.Lock()


class NotStarted(StockServiceError):
    """Error of a host that may not run its share, or cannot run the share."""


@dataclass(frozen=True, slots=True)
class Share:
    """One host's share of the load."""

    plan: LoadPlan
    number: int
    run: str
    """Unique name of the run."""
    sources: str
    """Digest of the coordinator's source files. A host whose own digest is different does not start."""


def token(run: str, number: int) -> str:
    """Name of the queue on the scheduler that holds the token of a share."""
    return f"{run}-token-{number}"


def _sources() -> str:
    """Digest of the source files in ``FOLDERS``. The files are read when this module is loaded."""
    root, digest = Path(__file__).resolve().parents[3], hashlib.sha256()
    for path in sorted(path for folder in FOLDERS for path in root.glob(f"{folder}/**/*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


SOURCES = _sources()


def run(share: Share) -> LoadResult:
    """Runs a share on a host. This function is the Dask task. Blocks until the start signal, and then as long as
    ``fleet.run``. Raises the faults of ``fleet.run``, and NotStarted."""
    queue, taken = Queue(share.run), Queue(token(share.run, share.number))

    def say(word: str, value: int = 0) -> None:
        queue.put([share.number, word, value])

    try:
        if not taken.get(batch=True):
            say(AGAIN)
            raise NotStarted("started a second time")
        if share.sources != SOURCES:
            raise NotStarted(f"its {', '.join(FOLDERS)} differ: use one version, and start its worker anew")
        if not _one.acquire(blocking=False):
            raise NotStarted("it runs another load")
        try:
            return fleet.run(share.plan, _Watch(share, say))
        except KeyboardInterrupt as called_off:  # KeyboardInterrupt would end the Dask worker
            raise NotStarted("called off") from called_off
        finally:
            _one.release()
    finally:
        taken.close()
        queue.close()


class _Watch:
    """Progress function of a share. The function waits for the common start, sends signs of life, and ends a run that
    the coordinator no longer wants."""

    def __init__(self, share: Share, say: Callable[..., None]) -> None:
        self._say, self._go = say, Event(share.run)
        self._worker = get_worker()
        self._key = self._worker.get_current_task()
        self._said_s = time.monotonic()
        self._heard_ns = 0
        self._begun = self._called_off = False

    def __call__(self, progress: Progress) -> None:
        """Takes a report on the progress. In the phase ``standing``, blocks until ``LEAD_S`` seconds after the start
        signal. Raises KeyboardInterrupt if the coordinator no longer wants the task, and NotStarted if no start signal
        comes."""
        self._look()
        if progress.phase == "standing":
            self._wait()
        elif progress.phase != "starting" and not self._begun:
            self._begun = True
            self._say(BEGUN, time.perf_counter_ns() - self._heard_ns)
        if time.monotonic() - self._said_s >= SAID_EVERY_S:
            self._said_s = time.monotonic()
            self._say(LIVES, progress.requests)

    def _look(self) -> None:
        """Raises KeyboardInterrupt, once, if the coordinator no longer wants the task, for example because the
        coordinator has ended."""
        task = self._worker.state.tasks.get(self._key)
        if not self._called_off and (task is None or task.state != "executing"):
            self._called_off = True
            raise KeyboardInterrupt

    def _wait(self) -> None:
        """Waits for the start signal, and then for ``LEAD_S``."""
        self._say(READY)
        until_s = time.monotonic() + GO_S
        while not self._go.wait(_LOOK_S):
            self._look()
            if time.monotonic() > until_s:
                raise NotStarted(f"no start signal came within {GO_S:g} s")
        self._heard_ns = time.perf_counter_ns()
        self._say(HEARD)
        time.sleep(max(0.0, LEAD_S - (time.perf_counter_ns() - self._heard_ns) / 1e9))
