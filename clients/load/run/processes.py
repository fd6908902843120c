"""Client processes of the load runs. One fork server forks all client processes, each with a pipe. ``Processes.reap``
ends and reaps the processes.

The fork server has loaded the heavy modules, so a client process starts in a few milliseconds. The fork server stays
for the next run.

The fork server ends when no process has the writing end of its *alive pipe* open any more. ``multiprocessing`` also
gives this end to every forked process, since the process might fork other processes. The client processes do not fork,
and close their copy of the end. So the fork server ends with the program that started it, even if the program crashes.
When the fork server ends, the kernel kills the client processes, even in the middle of their work.
"""

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerProcess

from clients.load.plan.load_plan import CLIENTS_MAX
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.lifeline import end_with_parent
from stock_service.rpc.transports import TRANSPORTS

PRELOADED = (
    *(f"clients.load.run.{module}" for module in ("processes", "client_process", "turn_client", "cold_client")),
    *TRANSPORTS.values(),
)
"""Modules that the fork server loads before it forks the first client process."""

REAP_S = 5.0
"""Longest wait for the end of a process that has reported, in seconds. After this time the process is killed."""

DESCRIPTORS_EACH = 4
"""Number of descriptors in this program for each client process: the pipe, and three that ``multiprocessing`` opens."""

_DESCRIPTORS_BESIDE = 64
"""Number of descriptors that all other parts of a program need."""


def warm() -> None:
    """Starts the fork server, which loads its modules in the background. A second call has no effect."""
    allow_descriptors(CLIENTS_MAX + _DESCRIPTORS_BESIDE)  # the fork server inherits this limit
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    resource_tracker.ensure_running()  # a later start would unblock the signals that are blocked below
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()  # all client processes inherit the mask: only the parent gets Ctrl-C
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def make_room(clients: int) -> None:
    """Increases this process's limit of descriptors to the number that ``clients`` client processes need. Raises
    UsageError if the system does not allow this number."""
    needed = DESCRIPTORS_EACH * clients + _DESCRIPTORS_BESIDE
    allowed = allow_descriptors(needed)
    if allowed < needed:
        most = max(1, (allowed - _DESCRIPTORS_BESIDE) // DESCRIPTORS_EACH)
        raise UsageError("--clients", clients, f"up to {most}, or more open files than {allowed} (ulimit -Hn)")


def allow_descriptors(needed: int) -> int:
    """Increases this process's limit of descriptors to ``needed``, or to the largest limit that the system allows.
    Never lowers the limit. Returns the new limit; ``needed`` if there is no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return needed
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


class Processes:
    """Client processes, each with a pipe. Not thread-safe. The caller must end the processes by ``reap``."""

    def __init__(self) -> None:
        self._processes: list[ForkServerProcess] = []
        self._pipes: list[Pipe] = []

    def __len__(self) -> int:
        """Number of processes that were started since the last ``reap``."""
        return len(self._processes)

    def start(self, body: Callable[..., None], *arguments: object) -> Pipe:
        """Starts a process that calls ``body`` with one end of a new pipe and the arguments. Returns the other end of
        the pipe."""
        context = multiprocessing.get_context("forkserver")
        mine, its = context.Pipe()
        self._pipes.append(mine)
        name = f"load-client-{len(self)}"
        process = context.Process(target=run_forked, args=(body, its, *arguments), name=name)
        self._processes.append(process)  # before the start: if Ctrl-C interrupts the start, reap knows the process
        process.start()
        its.close()
        return mine

    def terminate(self) -> None:
        """Sends SIGTERM to every process. Returns at once."""
        for process in self._processes:
            process.terminate()

    def reap(self, within_s: float) -> None:
        """Closes all pipes, and waits until every process has ended. A process that still runs after ``within_s`` is
        killed. Ctrl-C during the wait kills all processes. May be called repeatedly.
        """
        for pipe in self._pipes:
            pipe.close()
        started = [process for process in self._processes if process.pid is not None]
        self._pipes, self._processes = [], []
        deadline_s = time.monotonic() + within_s
        try:
            for process in started:
                process.join(max(0.0, deadline_s - time.monotonic()))
        finally:
            for process in started:
                if process.exitcode is None:
                    process.kill()
                process.join()
                process.close()


def heard(pipe: Pipe, within_s: float = 0.0) -> object:
    """Receives the next message of a process. Returns a text with the reason if no message comes within ``within_s``,
    or if the process has died."""
    try:
        return pipe.recv() if pipe.poll(within_s) else f"a client process said nothing for {within_s:.0f} s"
    except (EOFError, ConnectionResetError):
        return "a client process has died"


def run_forked(process: Callable[..., None], *arguments: object) -> None:
    """Runs ``process`` as the body of a forked process. First ties the forked process to its parent, the fork server:
    the kernel kills the process when the fork server ends. Then closes the copy of the alive pipe."""
    end_with_parent()  # the fork server is alive, since this process still has the alive pipe open
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    process(*arguments)
