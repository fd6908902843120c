"""The client processes of a load run: started together, told when to begin, watched, gathered, always reaped.

Processes come from a fork server that has the heavy modules loaded, so that ten take a few milliseconds each. Each says
when it stands at the barrier. When all do, the window is set, on a clock that all share (CLOCK_MONOTONIC), and all
connect at once. The barrier stands before connecting: a client which the server keeps waiting cannot stop the run.

Ctrl-C ends the run early and keeps what was measured, as often as it comes: ``LoadResult.interrupted``. A terminal
sends it to the clients too; they ignore it. The fork server stays for the next run and ends with this process. Clients
end with it too, where it was killed (``forked.py``). Programs that call ``run`` need the usual ``if __name__ ==
"__main__"`` guard.
"""

import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.sharedctypes import RawArray
from typing import Literal

from clients.load.plan.load_plan import CLIENTS_MAX, CONNECTIONS_MAX, LoadPlan
from clients.load.record.recorder import ClientReport
from clients.load.record.records import Window
from clients.load.record.result import LoadResult, combine
from clients.load.run.client_process import READY, run_client
from clients.load.run.forked import run_forked
from clients.load.send import lean
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import TRANSPORTS

PRELOADED = (
    *(f"clients.load.run.{module}" for module in ("forked", "client_process", "turn_client", "cold_client")),
    *TRANSPORTS.values(),
)
"""Modules that the fork server loads before the first client."""

LEAD_NS = 5_000_000
"""From telling the clients to the moment they connect: long enough for the last to have heard it."""

READY_S = 60.0
"""Longest time for all clients to reach the barrier; ten take a tenth of a second, 512 some seconds."""

FOLD_S = 30.0
"""Longest time for a client's report after its last reply; a million records take 0.1 s. That reply comes within two
timeouts: a request may be sent late by one, and answered within another."""

INTERRUPTED_S = 5.0
"""As ``FOLD_S``, after Ctrl-C."""

REAP_S = 5.0
"""Longest time for a process that has reported to end before it is killed."""

PROGRESS_S = 0.2
"""Between two calls of whoever watches."""

DESCRIPTORS_EACH = 4
"""Descriptors that a client process takes here: its pipe, and three of ``multiprocessing``'s."""

_DESCRIPTORS_BESIDE = 64
"""Descriptors that whatever else a program does may take."""

Phase = Literal["starting", "warm-up", "measuring", "finishing"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run."""

    phase: Phase
    requests: int
    """Requests done so far, warm-up included, to within some dozen for each connection."""
    elapsed_s: float
    """Since connecting."""
    remaining_s: float
    """Until the window ends."""


Watch = Callable[[Progress], None]
"""Called in the thread of ``run`` about five times a second, and within a millisecond or so of each change of phase."""


def warm() -> None:
    """Starts the fork server and has it load its modules, in the background. May be repeated."""
    allow_descriptors(CLIENTS_MAX + _DESCRIPTORS_BESIDE)  # the fork server begins with what is allowed here
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    resource_tracker.ensure_running()  # which would unblock what is blocked below
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()  # it and all clients inherit the mask: a Ctrl-C is the parent's alone
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    _counts()


def make_room(clients: int) -> None:
    """Sees to it that this process may have so many clients. Raises UsageError where the system does not let it."""
    needed = DESCRIPTORS_EACH * clients + _DESCRIPTORS_BESIDE
    allowed = allow_descriptors(needed)
    if allowed < needed:
        most = max(1, (allowed - _DESCRIPTORS_BESIDE) // DESCRIPTORS_EACH)
        raise UsageError("--clients", clients, f"up to {most}, or more open files than {allowed} (ulimit -Hn)")


def allow_descriptors(needed: int) -> int:
    """Raises this process's limit of descriptors to so many, if it may be; the limit, which is never lowered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return needed
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


@cache
def _counts() -> MutableSequence[int]:
    """Counts of the requests that each connection of a run has done; one array for all runs, one after the other."""
    counts: MutableSequence[int] = RawArray("q", CONNECTIONS_MAX)
    return counts


def run(plan: LoadPlan, progress: Watch | None = None) -> LoadResult:
    """Runs a plan. Blocks for its warm-up, its window, and the last replies; not in two threads at once.

    Raises the Fault of connecting if no client could connect. Raises UsageError where it may not have so many
    descriptors, or the transport has no such client. A client process that dies is counted among the errors
    (``client_lost``). No process is left behind, whatever happens. Ctrl-C ends the run early and is not raised; so does
    a KeyboardInterrupt of ``progress``, or of another signal's handler.
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
    """Nobody watches."""


class _Fleet:
    """The processes of one run."""

    def __init__(self, plan: LoadPlan, watch: Watch) -> None:
        self._plan = plan
        self._watch = watch
        self._counts = _counts()
        self._counts[: plan.connections] = [0] * plan.connections
        self._window = Window(0, 0, 0)
        self._processes: list[ForkServerProcess] = []
        self._waiting: list[Pipe] = []  # of those that have yet to report
        self._reports: list[ClientReport] = []
        self._interrupted = False  # or about to be
        self._ending = False

    @contextmanager
    def interrupts_noted(self) -> Iterator[None]:
        """Ctrl-C, and SIGTERM where somebody listens to it, are noted, and looked at where nothing is lost by it."""
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
        """See the module's ``run``."""
        plan = self._plan
        try:
            self._start()
            connect_ns = time.perf_counter_ns() + LEAD_NS
            start_ns = connect_ns + int(plan.warm_up_s * 1e9)
            end_ns = start_ns + int(plan.duration_s * 1e9)
            self._window = Window(connect_ns, start_ns, end_ns)
            for pipe in self._waiting:
                with suppress(BrokenPipeError):  # it has died, and is counted when it is listened to
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
        """Ends every process that still runs, and waits for all. Those that have reported are ending by themselves."""
        for pipe in self._waiting:
            pipe.close()
        deadline_s = time.monotonic() + (REAP_S if len(self._reports) == len(self._processes) else 0.0)
        for process in self._processes:
            process.join(max(0.0, deadline_s - time.monotonic()))
            if process.exitcode is None:
                process.kill()
            process.join()
            process.close()

    def _start(self) -> None:
        """Starts the processes, and waits until all stand at the barrier. One that dies first is lost."""
        context = multiprocessing.get_context("forkserver")
        for client in range(self._plan.clients):
            self._look_for_interrupt()
            mine, its = context.Pipe()
            arguments = (run_client, self._plan, client, its, self._counts)
            process = context.Process(target=run_forked, args=arguments, name=f"load-client-{client}")
            process.start()
            its.close()
            self._processes.append(process)
            self._waiting.append(mine)
        coming = list(self._waiting)
        deadline_s = time.monotonic() + READY_S
        while coming and time.monotonic() < deadline_s:
            for pipe in wait(coming, PROGRESS_S):
                assert isinstance(pipe, Pipe)
                coming.remove(pipe)
                if self._heard(pipe) != READY:
                    self._drop(pipe)
            self._say("starting")
        for pipe in coming:
            self._drop(pipe)

    def _gather(self, phase: Phase, until_ns: int) -> None:
        """Listens for reports until then, or until all have come, and has the run watched."""
        self._say(phase)
        while self._waiting and (left_ns := until_ns - time.perf_counter_ns()) > 0:
            for pipe in wait(self._waiting, min(left_ns / 1e9, PROGRESS_S)):
                assert isinstance(pipe, Pipe)
                report = self._heard(pipe)
                if isinstance(report, ClientReport):
                    self._reports.append(report)
                self._drop(pipe)
            if time.perf_counter_ns() < until_ns:
                self._say(phase)

    def _end_early(self) -> None:
        """Ends the run now: the window with it. Blocks for a moment."""
        now_ns = time.perf_counter_ns()
        self._ending = True
        if not self._window.end_ns:  # none has been told to begin
            return
        self._window = replace(self._window, end_ns=max(self._window.start_ns, min(now_ns, self._window.end_ns)))
        for process in self._processes:
            process.terminate()
        self._gather("finishing", now_ns + int(INTERRUPTED_S * 1e9))

    def _heard(self, pipe: Pipe) -> object:
        """Message of a client; None if it has died."""
        try:
            return pipe.recv()
        except (EOFError, ConnectionResetError):
            return None

    def _drop(self, pipe: Pipe) -> None:
        """Listens to a client no more."""
        self._waiting.remove(pipe)
        pipe.close()

    def _say(self, phase: Phase) -> None:
        now_ns, window = time.perf_counter_ns(), self._window
        started = window.end_ns > 0
        elapsed_s = max(0, now_ns - window.connect_ns) / 1e9 if started else 0.0
        remaining_s = max(0, window.end_ns - now_ns) / 1e9 if started else self._plan.warm_up_s + self._plan.duration_s
        self._watch(Progress(phase, sum(self._counts[: self._plan.connections]), elapsed_s, remaining_s))
        self._look_for_interrupt()

    def _look_for_interrupt(self) -> None:
        """Raises KeyboardInterrupt after a Ctrl-C, but not while its run is ended. Called where nothing is half
        done."""
        if self._interrupted and not self._ending:
            raise KeyboardInterrupt
