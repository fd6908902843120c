"""One client process: connects when told, sends through the warm-up and the measured window, and reports.

What it is told and what it reports are values over a pipe (``run_client``). SIGINT is the parent's alone; SIGTERM means
to send no more and to report what there is. Garbage collection is off while it runs: nothing here makes cycles, and a
collection would be taken for the server's latency.

A process with one connection drives it in its main thread. With more, sockets are served by one thread with epoll
(``multiplex.py``), anything else by a thread for each connection.
"""

import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, MutableSequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Protocol

from clients.load.driver import Driver, KeptAlive, PerRequest, Surroundings
from clients.load.multiplex import Lanes
from clients.load.plan import LoadPlan
from clients.load.recorder import Recorded, Recorder, Span
from clients.load.records import Deadline, Window
from clients.load.workload import Workload
from stock_service.errors import Fault
from stock_service.transports import load

READY = "ready"
"""What a client sends first: it stands at the barrier."""

_LAST_REPLIES_NS = 30_000_000
"""How long after the window clients wait before they fold: what the last of ten replies of a busy server takes."""

_INTERRUPTED_S = 1.0
"""How long an interrupted process waits for the calls that its threads are in."""


@dataclass(frozen=True, slots=True)
class ClientReport:
    """What one client process has to say at its end."""

    client: int
    recorded: Recorded | None = None
    cpu_s: float = 0.0
    """Processor time in the window."""
    fault: Fault | None = None
    """Why it could not connect, instead of the rest."""
    interrupted: bool = False


class Interrupted(BaseException):
    """SIGTERM came: raised wherever the main thread is. Not an Exception, so that nothing takes it for a fault."""


class Load(Protocol):
    """The connections of one process, all prepared but for connecting."""

    def open(self, recorder: Recorder) -> None:
        """Connects. Raises a Fault."""

    def run_until(self, at_ns: int) -> None:
        """Sends, and returns at about that time."""

    def finish(self, interrupted: bool) -> None:
        """Waits for replies under way, folds all records and closes; if interrupted, only folds."""


def run_client(plan: LoadPlan, client: int, pipe: Pipe, progress: MutableSequence[int]) -> None:
    """The process: says READY, gets a Window, sends a ClientReport. Ends quietly if the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _settle(plan)
    prepared = Client(plan, client, progress)
    try:
        pipe.send(READY)
        window = pipe.recv()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # from here on there is something to lose
        report = prepared.measure(window)
        pipe.send(report)
        if report.interrupted:
            os._exit(0)  # no tidying up behind a signal: it may have cut through grpcio while that held a lock
    except (EOFError, BrokenPipeError):
        return
    finally:
        pipe.close()


class Client:
    """One client, its requests drawn and encoded. To be used once, in the main thread."""

    def __init__(self, plan: LoadPlan, client: int, progress: MutableSequence[int]) -> None:
        self._plan = plan
        self._client = client
        self._deadline = Deadline(2**62)
        self._load = _load(plan, client, self._deadline, progress)

    def measure(self, window: Window) -> ClientReport:
        """Runs through the window. Blocks until its end, and until the replies under way have come."""
        recorder = Recorder(tuple(self._plan.mix), window, self._plan.connection == "per-request")
        self._deadline.ns = window.end_ns
        opened = interrupted = False
        began_ns = ended_ns = time.process_time_ns()
        before = signal.getsignal(signal.SIGTERM)
        try:
            signal.signal(signal.SIGTERM, self._stop)
            _sleep_until(window.connect_ns)
            opened = True
            self._load.open(recorder)
            self._load.run_until(window.start_ns)
            began_ns = time.process_time_ns()
            self._load.run_until(window.end_ns)
            ended_ns = time.process_time_ns()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        except Interrupted:
            interrupted = True
            ended_ns = time.process_time_ns()
        except Fault as fault:
            signal.signal(signal.SIGTERM, before)
            return ClientReport(self._client, fault=fault)
        if opened:
            self._load.finish(interrupted)
        signal.signal(signal.SIGTERM, before)
        cpu_s = (ended_ns - began_ns) / 1e9
        return ClientReport(self._client, recorder.recorded(), cpu_s, interrupted=interrupted)

    def _stop(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._deadline.ns = 0
        raise Interrupted


def _settle(plan: LoadPlan) -> None:
    """Sets the process up: its cores, its descriptors, no garbage collection."""
    if plan.cpus is not None and sys.platform == "linux":
        os.sched_setaffinity(0, plan.cpus)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and plan.connections_per_client > 256:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.collect()
    gc.freeze()
    gc.disable()


def _load(plan: LoadPlan, client: int, deadline: Deadline, progress: MutableSequence[int]) -> Load:
    """The connections that the plan gives a client."""
    transport = load(plan.transport)
    workload = Workload(plan)
    first_place = client * plan.connections_per_client
    places = range(first_place, first_place + plan.connections_per_client)
    surroundings = [
        Surroundings(
            partial(transport.connect, plan.address), deadline, plan.timeout_s, plan.records_max, progress, place
        )
        for place in places
    ]
    numbers = range(plan.connections_per_client)
    if plan.connection == "kept-alive" and plan.transport == "sockets" and plan.connections_per_client > 1:
        drawn = [workload.drawn(client, number) for number in numbers]
        return _Multiplexed(Lanes(plan.address, workload, drawn, surroundings[0]))
    kind = KeptAlive if plan.connection == "kept-alive" else PerRequest
    drivers: list[Driver] = [kind(workload.requests(client, number), surroundings[number]) for number in numbers]
    return _Alone(drivers[0], deadline) if len(drivers) == 1 else _Threads(drivers)


class _Alone:
    """One connection, in the main thread."""

    def __init__(self, driver: Driver, deadline: Deadline) -> None:
        self._driver = driver
        self._deadline = deadline
        self._called = False
        self._recorder: Recorder
        self._span: Span

    def open(self, recorder: Recorder) -> None:
        """See ``Load.open``."""
        self._recorder = recorder
        self._span = recorder.new_span()
        self._driver.connect()

    def run_until(self, at_ns: int) -> None:
        """See ``Load.run_until``. A client that is kept waiting for its first call waits on, past ``at_ns``."""
        if not self._called:
            self._called = self._driver.first_call(self._recorder.window.end_ns)
        self._deadline.ns = at_ns
        while self._called and self._driver.drive():
            with _undisturbed():
                self._recorder.fold(self._driver.records, self._span)
        self._deadline.ns = self._recorder.window.end_ns

    def finish(self, interrupted: bool) -> None:
        """See ``Load.finish``. No reply is under way: whoever drives waits for it."""
        if not interrupted:
            _let_others_end(self._recorder.window)
        self._recorder.fold(self._driver.records, self._span)
        if not interrupted:
            self._driver.close()


class _Threads:
    """A thread for each connection."""

    def __init__(self, drivers: list[Driver]) -> None:
        self._drivers = drivers
        self._pool = ThreadPoolExecutor(len(drivers), "load-connection")
        self._recorder: Recorder
        self._spans: list[Span] = []
        self._futures: list[Future[None]] = []

    def open(self, recorder: Recorder) -> None:
        """See ``Load.open``."""
        self._recorder = recorder
        self._spans = [recorder.new_span() for _ in self._drivers]
        for driver in self._drivers:
            driver.connect()
        self._futures = [
            self._pool.submit(_drive, driver, recorder, span)
            for driver, span in zip(self._drivers, self._spans, strict=True)
        ]

    def run_until(self, at_ns: int) -> None:
        """See ``Load.run_until``. The threads need no telling."""
        _sleep_until(at_ns)

    def finish(self, interrupted: bool) -> None:
        """See ``Load.finish``. Raises what a thread raised."""
        self._pool.shutdown(wait=not interrupted)
        for future in wait(self._futures, _INTERRUPTED_S).done:
            future.result()
        if not interrupted:
            _let_others_end(self._recorder.window)
        for driver, span in zip(self._drivers, self._spans, strict=True):
            self._recorder.fold(driver.records, span)
            if not interrupted:
                driver.close()


def _drive(driver: Driver, recorder: Recorder, span: Span) -> None:
    """One thread of ``_Threads``."""
    if driver.first_call(recorder.window.end_ns):
        while driver.drive():
            recorder.fold(driver.records, span)


class _Multiplexed:
    """Many socket connections, in the main thread."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._recorder: Recorder
        self._spans: list[Span] = []

    def open(self, recorder: Recorder) -> None:
        """See ``Load.open``."""
        self._recorder = recorder
        self._spans = [recorder.new_span() for _ in self._lanes.lanes]
        self._lanes.open()

    def run_until(self, at_ns: int) -> None:
        """See ``Load.run_until``. Where records must be folded, sends nothing meanwhile: no reply is stamped late."""
        while self._lanes.drive(at_ns):
            self._lanes.drain()
            with _undisturbed():
                self._fold()
            self._lanes.resume()

    def finish(self, interrupted: bool) -> None:
        """See ``Load.finish``."""
        if not interrupted:
            self._lanes.drain()
            _let_others_end(self._recorder.window)
        self._fold()
        if not interrupted:
            self._lanes.close()

    def _fold(self) -> None:
        for lane, span in zip(self._lanes.lanes, self._spans, strict=True):
            self._recorder.fold(lane.records, span)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Holds SIGTERM back, so that nothing is folded by half."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _let_others_end(window: Window) -> None:
    """Waits until the last replies of the other clients have come: folding on their core would make those late."""
    _sleep_until(window.end_ns + _LAST_REPLIES_NS)


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - time.perf_counter_ns()) > 0:
        time.sleep(left_ns / 1e9)
