"""Client processes of a load run: their common start, progress, reports and end.

Each client process prepares its load, reports to the parent, and waits: the process stands at the *barrier*. When all
processes stand at the barrier, the parent sets the window. The window's moments are on a clock that all processes share
(CLOCK_MONOTONIC). Then all processes connect at the same moment. The barrier comes before connecting, so that one
client with a slow connect does not delay the run.

Ctrl-C ends the run early, and the result has the measurements so far (``LoadResult.interrupted``). A second Ctrl-C
changes nothing. A terminal also sends Ctrl-C to the client processes, which ignore this signal. Programs that call
``run`` need the usual ``if __name__ == "__main__"`` guard.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.sharedctypes import RawArray
from typing import Literal

from clients.load.plan.load_plan import CONNECTIONS_MAX, LoadPlan
from clients.load.record.recorder import ClientReport
from clients.load.record.records import Window
from clients.load.record.result import LoadResult, combine
from clients.load.run import processes
from clients.load.run.client_process import READY, run_client
from clients.load.run.processes import REAP_S, Processes, heard, make_room
from clients.load.send import lean

LEAD_NS = 5_000_000
"""Time in nanoseconds between the parent's order to connect and the moment of connecting. In this time the order
reaches every client process.
"""

READY_S = 60.0
"""Longest time until all clients are ready to connect, in seconds. Ten clients take 0.1 s, 512 clients some seconds."""

FOLD_S = 30.0
"""Longest time from a client's last reply to the client's report, in seconds. It takes 0.1 s to fold a million records
(``Recorder.fold``). The last reply comes within two timeouts after the window: a request may be sent one timeout late,
and its reply may take another timeout.
"""

INTERRUPTED_S = 5.0
"""Longest time in seconds from an interrupt until all clients have reported."""

PROGRESS_S = 0.2
"""Longest time between two calls of a run's ``Watch``, in seconds."""

Phase = Literal["starting", "standing", "warm-up", "measuring", "finishing"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run at one moment."""

    phase: Phase
    """Phase of the run. In ``starting``, client processes start. ``standing`` is reported once, when all living clients
    are ready to connect. The clients connect after the watch has returned from this report. In ``finishing``, the
    window has ended, and the reports come.
    """
    requests: int
    """Number of finished requests so far, warm-up included. For each connection the number may be too small by some
    dozen requests."""
    elapsed_s: float
    """Time since the moment of connecting, in seconds."""
    remaining_s: float
    """Time until the window ends, in seconds."""


Watch = Callable[[Progress], None]
"""Function that ``run`` calls with the progress, in the thread of ``run``. The calls come about five times a second,
and within about a millisecond of each change of phase.
"""


def warm() -> None:
    """Starts the fork server and makes the array of counts, which all runs share. May be called repeatedly."""
    processes.warm()
    _counts()


@cache
def _counts() -> MutableSequence[int]:
    """Array with the number of finished requests of each connection. All runs use this array, one after another."""
    counts: MutableSequence[int] = RawArray("q", CONNECTIONS_MAX)
    return counts


def run(plan: LoadPlan, progress: Watch | None = None) -> LoadResult:
    """Runs a plan, and returns the result. Blocks for the warm-up, the window, and the last replies. Two threads must
    not call ``run`` at the same time.

    Raises a Fault if no client could connect. Raises UsageError if the system allows too few descriptors, or if the
    transport does not have the plan's kind of client. A client process that dies is counted among the errors
    (``client_lost``). All client processes are ended, even after an error. Ctrl-C ends the run early, without
    KeyboardInterrupt. A KeyboardInterrupt that ``progress`` or a signal handler raises also ends the run early.
    """
    lean.check(plan)
    make_room(plan.clients)
    warm()
    fleet = _Fleet(plan, progress or _unwatched)
    with fleet.interrupts_noted():
        try:
            return fleet.run()
        finally:
            fleet.reap()


def _unwatched(progress: Progress) -> None:
    """Does nothing. ``run`` calls this function if the caller gives no watch."""


class _Fleet:
    """Client processes of one run, and the parent's state of the run. For one call of ``run``."""

    def __init__(self, plan: LoadPlan, watch: Watch) -> None:
        self._plan = plan
        self._watch = watch
        self._counts = _counts()
        self._counts[: plan.connections] = [0] * plan.connections
        self._window = Window(0, 0, 0)
        self._processes = Processes()
        self._waiting: list[Pipe] = []  # pipes of the processes that have not reported yet
        self._reports: list[ClientReport] = []
        self._interrupted = False  # True also for an interrupt that no step has handled yet
        self._ending = False  # True from the beginning of _end_early

    @contextmanager
    def interrupts_noted(self) -> Iterator[None]:
        """Notes Ctrl-C during the ``with`` block, and also SIGTERM if the program handles SIGTERM. The run handles the
        noted interrupt later, at a point where no record can be lost. Has no effect outside the main thread."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        listened_to = {number: was for number, was in before.items() if callable(was)}
        if threading.current_thread() is not threading.main_thread():
            listened_to = {}
        try:
            for number in listened_to:
                signal.signal(number, self._note_interrupt)
            yield
        finally:
            for number, was in listened_to.items():
                signal.signal(number, was)

    def _note_interrupt(self, *_: object) -> None:
        self._interrupted = True

    def run(self) -> LoadResult:
        """Runs the plan, as the module's ``run`` describes."""
        plan = self._plan
        try:
            self._start()
            self._say("standing")
            connect_ns = time.perf_counter_ns() + LEAD_NS
            start_ns = connect_ns + int(plan.warm_up_s * 1e9)
            end_ns = start_ns + int(plan.duration_s * 1e9)
            self._window = Window(connect_ns, start_ns, end_ns)
            for pipe in self._waiting:
                with suppress(BrokenPipeError):  # the process has died: _gather counts it as lost
                    pipe.send(self._window)
            self._gather("warm-up", start_ns)
            self._gather("measuring", end_ns)
            self._gather("finishing", end_ns + int((2 * plan.timeout_s + FOLD_S) * 1e9))
        except KeyboardInterrupt:
            self._interrupted = True
        if self._interrupted:
            self._end_early()
        begun = self._window.end_ns > 0
        lost = len(self._processes) - len(self._reports) if begun or not self._interrupted else 0
        faults = [report.fault for report in self._reports if report.fault is not None]
        if faults and len(faults) == len(self._processes):
            raise faults[0]
        cores = len(os.sched_getaffinity(0) if plan.cpus is None else set(plan.cpus))
        return combine(plan, self._window, self._reports, lost, self._interrupted, cores)

    def reap(self) -> None:
        """Waits until every process has ended. If all processes have reported, they have ``REAP_S`` to end by
        themselves. Otherwise, kills the processes that still run.
        """
        self._processes.reap(REAP_S if len(self._reports) == len(self._processes) else 0.0)

    def _start(self) -> None:
        """Starts the processes, and waits until all are ready to connect. A process counts as lost if the process dies
        before, or takes longer than ``READY_S``.
        """
        for client in range(self._plan.clients):
            self._look_for_interrupt()
            self._waiting.append(self._processes.start(run_client, self._plan, client, self._counts))
        coming = list(self._waiting)
        deadline_s = time.monotonic() + READY_S
        while coming and time.monotonic() < deadline_s:
            for pipe in wait(coming, PROGRESS_S):
                assert isinstance(pipe, Pipe)
                coming.remove(pipe)
                if heard(pipe) != READY:
                    self._drop(pipe)
            self._say("starting")
        for pipe in coming:
            self._drop(pipe)

    def _gather(self, phase: Phase, until_ns: int) -> None:
        """Receives reports until the moment ``until_ns``, or until all reports have come. Meanwhile calls the run's
        ``Watch``.
        """
        self._say(phase)
        while self._waiting and (left_ns := until_ns - time.perf_counter_ns()) > 0:
            for pipe in wait(self._waiting, min(left_ns / 1e9, PROGRESS_S)):
                assert isinstance(pipe, Pipe)
                report = heard(pipe)
                if isinstance(report, ClientReport):
                    self._reports.append(report)
                self._drop(pipe)
            if time.perf_counter_ns() < until_ns:
                self._say(phase)

    def _end_early(self) -> None:
        """Ends the run and the window now. Blocks until all clients have reported, or for ``INTERRUPTED_S``."""
        now_ns = time.perf_counter_ns()
        self._ending = True
        if not self._window.end_ns:  # no client knows the window yet: there is nothing to report
            return
        self._window = replace(self._window, end_ns=max(self._window.start_ns, min(now_ns, self._window.end_ns)))
        self._processes.terminate()
        self._gather("finishing", now_ns + int(INTERRUPTED_S * 1e9))

    def _drop(self, pipe: Pipe) -> None:
        """Closes the pipe of a client that has reported or is lost."""
        self._waiting.remove(pipe)
        pipe.close()

    def _say(self, phase: Phase) -> None:
        """Calls the run's ``Watch`` with the progress. Raises KeyboardInterrupt after an interrupt, unless the run is
        ending.
        """
        now_ns, window = time.perf_counter_ns(), self._window
        started = window.end_ns > 0
        elapsed_s = max(0, now_ns - window.connect_ns) / 1e9 if started else 0.0
        remaining_s = max(0, window.end_ns - now_ns) / 1e9 if started else self._plan.warm_up_s + self._plan.duration_s
        self._watch(Progress(phase, sum(self._counts[: self._plan.connections]), elapsed_s, remaining_s))
        self._look_for_interrupt()

    def _look_for_interrupt(self) -> None:
        """Raises KeyboardInterrupt after a noted interrupt, unless the run is ending. Called only between two steps, so
        that no step is left half done."""
        if self._interrupted and not self._ending:
            raise KeyboardInterrupt
