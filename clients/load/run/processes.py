"""Processes of load clients: forked by one fork server, each with a pipe, always reaped.

The fork server has the heavy modules loaded, so a process starts in a few milliseconds. The fork server stays for the
next run, and ends with this program.

The fork server ends when no process holds the fork server's pipe any more. Every forked process inherits this pipe,
since it might fork, too. The client processes do not fork, and close the pipe. So the fork server ends with the program
that started the fork server, also after a crash of the program. The client processes end with the fork server, at any
point of their work.
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
"""Modules that the fork server loads before the first client."""

REAP_S = 5.0
"""Longest time for a process to end after its report, in seconds. Then the process is killed."""

DESCRIPTORS_EACH = 4
"""Number of this program's descriptors for each client process: the pipe, and three that ``multiprocessing`` opens."""

_DESCRIPTORS_BESIDE = 64
"""Number of descriptors for the other parts of the program."""


def warm() -> None:
    """Starts the fork server, which loads its modules in the background. A second call has no effect."""
    allow_descriptors(CLIENTS_MAX + _DESCRIPTORS_BESIDE)  # the fork server inherits this limit
    multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    resource_tracker.ensure_running()  # a later start would unblock the signals blocked below
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()  # all clients inherit the mask: Ctrl-C is for the parent alone
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def make_room(clients: int) -> None:
    """Raises the limit of descriptors to the number that ``clients`` processes need. Raises UsageError if the system
    does not allow this number."""
    needed = DESCRIPTORS_EACH * clients + _DESCRIPTORS_BESIDE
    allowed = allow_descriptors(needed)
    if allowed < needed:
        most = max(1, (allowed - _DESCRIPTORS_BESIDE) // DESCRIPTORS_EACH)
        raise UsageError("--clients", clients, f"up to {most}, or more open files than {allowed} (ulimit -Hn)")


def allow_descriptors(needed: int) -> int:
    """Raises this process's limit of descriptors to ``needed``, as far as the system allows. Never lowers the limit.
    Gives the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return needed
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


class Processes:
    """Client processes, each with a pipe. For one thread. ``reap`` ends the processes."""

    def __init__(self) -> None:
        self._processes: list[ForkServerProcess] = []
        self._pipes: list[Pipe] = []

    def __len__(self) -> int:
        """Number of processes that were started since the last ``reap``."""
        return len(self._processes)

    def start(self, body: Callable[..., None], *arguments: object) -> Pipe:
        """Starts a process that calls ``body`` with one end of a pipe and the arguments. Gives the other end of the
        pipe."""
        context = multiprocessing.get_context("forkserver")
        mine, its = context.Pipe()
        self._pipes.append(mine)
        name = f"load-client-{len(self)}"
        process = context.Process(target=run_forked, args=(body, its, *arguments), name=name)
        self._processes.append(process)  # before the start, so that a Ctrl-C finds the process here
        process.start()
        its.close()
        return mine

    def terminate(self) -> None:
        """Sends SIGTERM to every process. Returns at once."""
        for process in self._processes:
            process.terminate()

    def reap(self, within_s: float) -> None:
        """Closes all pipes, and waits until every process has ended. A process that runs longer than ``within_s`` is
        killed. A Ctrl-C meanwhile kills all processes. A second call has no effect."""
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
    """Next message of a process; a text with the reason if no message comes. Blocks for ``within_s`` at most."""
    try:
        return pipe.recv() if pipe.poll(within_s) else f"a client process said nothing for {within_s:.0f} s"
    except (EOFError, ConnectionResetError):
        return "a client process has died"


def run_forked(process: Callable[..., None], *arguments: object) -> None:
    """Calls ``process`` in a forked process. The forked process ends when its parent ends, at any moment."""
    end_with_parent()  # the parent is alive while this process holds the pipe
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    process(*arguments)
