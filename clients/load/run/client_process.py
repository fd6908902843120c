"""Client process of a load run: connects at a given moment, sends requests during the warm-up and the measured window,
and reports.

The process gets its window and sends its report over a pipe (``run_client``). The process ignores SIGINT, which the
parent handles. After SIGTERM the process sends no more requests, and reports the records so far. Garbage collection is
off in the process: the code makes no cycles, and a collection would lengthen the measured latency.

The lean client sends over all its kept connections in the main thread (``send/lanes.py``). The library client has a
thread for each connection (``send/driver.py``). The thread blocks in calls. With a connection per request, both kinds
of client have a thread for each connection.
"""

import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, MutableSequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from typing import Protocol

from clients.load.plan.checked_workload import CheckedWorkload
from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.schedule import Schedule
from clients.load.plan.workload import Workload
from clients.load.record.recorder import ClientReport, Recorder, Span
from clients.load.record.records import Deadline, Window
from clients.load.run import priority
from clients.load.send.driver import Driver, Surroundings
from clients.load.send.lanes import Lanes
from clients.load.send.lean import connecting, lean_codec, lean_context
from stock_service.rpc.errors import Fault

READY = "ready"
"""First message of a client process to the parent: the process is ready to connect."""

_LAST_REPLIES_NS = 30_000_000
"""Time in nanoseconds from the window's end until a client folds its records (``Recorder.fold``). In this time the
other clients get their last replies. Ten clients of a busy server need about this time.
"""

_INTERRUPTED_S = 1.0
"""Longest wait of an interrupted process for the calls under way in its threads, in seconds."""


class Interrupted(BaseException):
    """Exception that the handler of SIGTERM raises in the main thread, at any place. The class does not derive from
    Exception, so handlers of faults do not catch this exception.
    """


class Stopping:
    """Handler of SIGTERM: stops all sending. Raises Interrupted in the main thread, at once or at the end of a
    ``held_back`` block.
    """

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self._held = self._came = False

    def __call__(self, *_: object) -> None:
        """Handles SIGTERM. In a ``held_back`` block, a flag delays Interrupted. A signal mask could not delay
        Interrupted: with a mask in the main thread, the kernel would give the signal to one of grpcio's threads.
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.deadline.ns = 0
        self._came = True
        if not self._held:
            raise Interrupted

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Delays Interrupted until the end of the ``with`` block, so that the block is always completed. If SIGTERM
        came meanwhile, raises Interrupted at the end of the block.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._came:
            raise Interrupted


class Load(Protocol):
    """Connections of one client process, with their requests. The methods are called in the order of this class."""

    def record_in(self, recorder: Recorder) -> None:
        """Sets the recorder that gets the records of the connections."""

    def open(self) -> None:
        """Connects. Raises a Fault if connecting fails."""

    def run_until(self, at_ns: int) -> None:
        """Blocks until about the moment ``at_ns``, while the connections send requests. May be called repeatedly."""

    def settle(self) -> None:
        """Ends the sending after the window. Waits for the replies under way, and then for the last replies of the
        other clients.
        """

    def end(self, interrupted: bool) -> int:
        """Folds all records, and closes the connections unless the run was interrupted. Returns the number of requests
        that an interrupt left unanswered. These requests were under way, or were due and not sent."""


def run_client(pipe: Pipe, plan: LoadPlan, client: int, progress: MutableSequence[int]) -> None:
    """Runs the process: sends READY, gets a Window, sends a ClientReport. Ends without an error if the parent has
    ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and then sends SIGTERM
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # measure restores this handler when all is measured
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until measure sets another handler
    settle(plan)
    prepared = Client(plan, client, progress)
    try:
        pipe.send(READY)
        window = pipe.recv()
        report = prepared.measure(window)
        pipe.send(report)
        if report.interrupted:
            os._exit(0)  # no cleanup after a signal: grpcio may have held a lock at that moment
    except (EOFError, BrokenPipeError):
        return
    finally:
        pipe.close()


class Client:
    """Client of a load run. The constructor draws and encodes the requests. Use an object once, in the main thread."""

    def __init__(self, plan: LoadPlan, client: int, progress: MutableSequence[int]) -> None:
        self._plan = plan
        self._client = client
        self._stopping = Stopping(Deadline(2**62))
        self._checked = None if plan.check is None else CheckedWorkload(plan)
        self._load = _load(plan, client, self._stopping, progress, self._checked)

    def measure(self, window: Window) -> ClientReport:
        """Runs through the warm-up and the window, and returns the report. Blocks until the window has ended and the
        replies under way have come. If a connection cannot be made, the report has only the fault."""
        interrupted = False
        began_ns = ended_ns = 0  # processor time of this process when the window began and ended; 0: not yet
        before = signal.getsignal(signal.SIGTERM)
        try:
            with self._stopping.held_back():
                self._stopping.deadline.ns = window.end_ns
                signal.signal(signal.SIGTERM, self._stopping)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
                recorder = Recorder(self._plan, self._client, window)
                self._load.record_in(recorder)
            _sleep_until(window.connect_ns)
            self._load.open()
            self._load.run_until(window.start_ns)
            began_ns = time.process_time_ns()
            self._load.run_until(window.end_ns)
            ended_ns = time.process_time_ns()
            self._load.settle()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        except Interrupted:
            interrupted = True
            ended_ns = ended_ns or time.process_time_ns()
        except Fault as fault:
            signal.signal(signal.SIGTERM, before)
            return ClientReport(self._client, fault=fault)
        unanswered = self._load.end(interrupted)
        signal.signal(signal.SIGTERM, before)
        cpu_s = (ended_ns - began_ns) / 1e9 if began_ns else 0.0
        history = () if self._checked is None else tuple(self._checked.operations())
        return ClientReport(self._client, recorder.recorded(), cpu_s, None, interrupted, unanswered, history)


def settle(plan: LoadPlan) -> None:
    """Prepares the process for a plan. Sets the allowed cores, the real-time priority and the limit of descriptors.
    Turns garbage collection off.
    """
    if plan.cpus is not None and sys.platform == "linux":
        os.sched_setaffinity(0, plan.cpus)
    if plan.real_time:
        priority.take_real_time()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and soft < 4 * plan.connections_per_client + 64:  # grpcio: several descriptors a connection
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.collect()
    gc.freeze()
    gc.disable()


_SPIN_NS = 150_000
"""Duration in nanoseconds of busy waiting before a due request, in a client with one sending thread. A sleep may end
0.1 ms late.
"""


def _load(
    plan: LoadPlan,
    client: int,
    stopping: Stopping,
    progress: MutableSequence[int],
    checked: CheckedWorkload | None = None,
) -> Load:
    """Prepares the connections of the client with the number ``client``. In a checked run, the connections send the
    requests of ``checked``."""
    deadline = stopping.deadline
    workload, numbers = Workload(plan), range(plan.connections_per_client)
    if plan.client == "lean" and plan.connection == "kept-alive":
        around = replace(_around(plan, client, 0, deadline, progress), context=lean_context(plan))
        drawn = [workload.drawn(client, number) for number in numbers]
        due_ns = _due_ns(plan, client, plan.clients)
        lanes = Lanes(plan.address, lean_codec(plan), workload, drawn, around, due_ns)
        if checked is not None:
            for number, lane in enumerate(lanes.lanes):
                lane.requests = lanes.ready(checked.requests(client, number))
        return _Multiplexed(lanes, stopping)
    connect, per_request = connecting(plan), plan.connection == "per-request"
    drivers = []
    for number in numbers:
        around = _around(plan, client, number, deadline, progress)
        requests = (checked or workload).requests(client, number)
        drivers.append(Driver(requests, connect, around, per_request))
    return _Threads(drivers)


def _around(
    plan: LoadPlan, client: int, number: int, deadline: Deadline, progress: MutableSequence[int]
) -> Surroundings:
    """Makes the ``Surroundings`` of a connection's driver. ``number`` is the connection's number in the client. All
    kept connections of a lean client use the surroundings of connection 0.
    """
    place = client * plan.connections_per_client + number
    part = number * plan.clients + client  # with constant arrivals, the parts of one client together are constant, too
    return Surroundings(
        deadline,
        plan.timeout_s,
        plan.records_max,
        progress,
        place,
        due_ns=_due_ns(plan, part, plan.connections),
        spin_ns=_SPIN_NS if plan.connections_per_client == 1 else 0,
    )


def _due_ns(plan: LoadPlan, part: int, parts: int) -> Callable[[int], Iterator[int]] | None:
    """Returns a function that yields the due moments of one part of the schedule. The function takes the start moment.
    Returns None in a closed loop.
    """
    return None if plan.rate_hz is None else Schedule(plan.rate_hz, plan.arrivals, part, parts, plan.seed).due_ns


class _Threads:
    """Implementation of ``Load`` with a driver and a thread for each connection."""

    def __init__(self, drivers: list[Driver]) -> None:
        self._drivers = drivers
        self._pool = ThreadPoolExecutor(len(drivers), "load-connection")
        self._recorder: Recorder
        self._spans: list[Span] = []
        self._futures: list[Future[None]] = []

    def record_in(self, recorder: Recorder) -> None:
        """Sets the recorder, and adds a ``Span`` for each connection."""
        self._recorder = recorder
        self._spans = [recorder.new_span(number) for number in range(len(self._drivers))]

    def open(self) -> None:
        """Connects every driver, and starts the threads. Raises a Fault if connecting fails."""
        for driver in self._drivers:
            driver.connect()
        self._futures = [
            self._pool.submit(_drive, driver, self._recorder, span)
            for driver, span in zip(self._drivers, self._spans, strict=True)
        ]

    def run_until(self, at_ns: int) -> None:
        """Sleeps until the moment ``at_ns``. Meanwhile the threads send."""
        _sleep_until(at_ns)

    def settle(self) -> None:
        """Waits until all threads have ended, and then for the other clients' last replies. Records the due requests
        that were never sent. Raises the error of a thread that has failed."""
        self._pool.shutdown()
        for future in self._futures:
            future.result()
        for driver in self._drivers:
            driver.write_off()
        _let_others_end(self._recorder.window)

    def end(self, interrupted: bool) -> int:
        """Folds all records, and closes the connections, as ``Load.end`` describes. After an interrupt, first waits for
        the threads, for ``_INTERRUPTED_S`` at most. Does not end a thread that is still in a call after this wait."""
        unanswered, until_ns = 0, _due_until(self._recorder.window)
        if interrupted:
            self._pool.shutdown(wait=False)
            wait(self._futures, _INTERRUPTED_S)
        for driver, span in zip(self._drivers, self._spans, strict=True):
            self._recorder.fold(driver.records, span)
            if interrupted:
                unanswered += span.cut(1) + driver.unsent(until_ns)
            else:
                driver.close()
        return unanswered


def _drive(driver: Driver, recorder: Recorder, span: Span) -> None:
    """Body of a thread of ``_Threads``: makes the first call, and then sends until the deadline. Each time that
    ``drive`` returns True, folds the records.
    """
    if driver.first_call(recorder.window.end_ns):
        while driver.drive():
            recorder.fold(driver.records, span)


class _Multiplexed:
    """Implementation of ``Load`` with many lean connections, in the main thread."""

    def __init__(self, lanes: Lanes, stopping: Stopping) -> None:
        self._lanes = lanes
        self._stopping = stopping
        self._recorder: Recorder
        self._spans: list[Span] = []

    def record_in(self, recorder: Recorder) -> None:
        """Sets the recorder, and adds a ``Span`` for each connection."""
        self._recorder = recorder
        self._spans = [recorder.new_span(number) for number in range(len(self._lanes.lanes))]

    def open(self) -> None:
        """Connects every lane, and sends the first calls. Raises a Fault if connecting fails."""
        self._lanes.open()

    def run_until(self, at_ns: int) -> None:
        """Sends on all lanes until about the moment ``at_ns``. Each time that ``Lanes.drive`` returns True, folds the
        records.
        """
        while self._lanes.drive(at_ns):
            self._lanes.settle()
            with self._stopping.held_back():
                self._fold()
            self._lanes.resume()

    def settle(self) -> None:
        """Waits for the replies under way, and then for the other clients' last replies."""
        self._lanes.finish()
        _let_others_end(self._recorder.window)

    def end(self, interrupted: bool) -> int:
        """Folds all records, and closes the connections, as ``Load.end`` describes."""
        self._fold()
        if not interrupted:
            self._lanes.close()
            return 0
        return self._lanes.unsent + sum(
            span.cut(len(lane.waiting) + 1)  # 1 more: the interrupt may have come between a count and the lane's record
            for lane, span in zip(self._lanes.lanes, self._spans, strict=True)
        )

    def _fold(self) -> None:
        """Gives the records of every lane to the recorder."""
        for lane, span in zip(self._lanes.lanes, self._spans, strict=True):
            self._recorder.fold(lane.records, span)


def _let_others_end(window: Window) -> None:
    """Sleeps until the other clients have their last replies. An earlier folding of this client's records would delay
    these replies if the clients share a core.
    """
    _sleep_until(window.end_ns + _LAST_REPLIES_NS)


def _due_until(window: Window) -> int:
    """End of the time in which due requests count, in a run that is interrupted now. This end is the present moment, or
    the window's end if the window has ended.
    """
    return min(time.perf_counter_ns(), window.end_ns)


def _sleep_until(at_ns: int) -> None:
    """Blocks until the moment ``at_ns``. Returns at once if the moment is past."""
    while (left_ns := at_ns - time.perf_counter_ns()) > 0:
        time.sleep(left_ns / 1e9)
