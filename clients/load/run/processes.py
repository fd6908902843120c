"""Processes of load clients: forked by one fork server, each with a pipe, always reaped.

The fork server has the heavy modules loaded, so ten processes take a few milliseconds each. It stays for the next run,
and ends with this program.

The fork server ends when the last holder of its pipe is gone. It gives that pipe to all whom it forks, since they might
fork too. Our processes do not fork, so they let it go. Then the fork server ends with the program that started it,
however that ends. The processes end with the fork server, in the middle of whatever they do.
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
"""Longest time for a process that has reported to end before it is killed."""

DESCRIPTORS_EACH = 4
"""Descriptors that a client process takes here: its pipe, and three of ``multiprocessing``'s."""

_DESCRIPTORS_BESIDE = 64
"""Descriptors that whatever else a program does may take."""


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


class Processes:
    """Client processes, each with a pipe. One thread's. ``reap`` ends them."""

    def __init__(self) -> None:
        self._processes: list[ForkServerProcess] = []
        self._pipes: list[Pipe] = []

    def __len__(self) -> int:
        """Processes that were started since the last ``reap``."""
        return len(self._processes)

    def start(self, body: Callable[..., None], *arguments: object) -> Pipe:
        """Starts a process that calls ``body`` with its end of a pipe and the arguments; this program's end of it."""
        context = multiprocessing.get_context("forkserver")
        mine, its = context.Pipe()
        self._pipes.append(mine)
        name = f"load-client-{len(self)}"
        process = context.Process(target=run_forked, args=(body, its, *arguments), name=name)
        self._processes.append(process)  # before it starts: a Ctrl-C from then on finds it here
        process.start()
        its.close()
        return mine

    def terminate(self) -> None:
        """Sends SIGTERM to every process. Returns at once."""
        for process in self._processes:
            process.terminate()

    def reap(self, within_s: float) -> None:
        """Closes all pipes, and waits until every process has ended. One that runs for longer is killed; after a Ctrl-C
        meanwhile, all are. May be repeated."""
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
    """Next message of a process; a text with the reason where none comes. Blocks until then."""
    try:
        return pipe.recv() if pipe.poll(within_s) else f"a client process said nothing for {within_s:.0f} s"
    except (EOFError, ConnectionResetError):
        return "a client process has died"


def run_forked(process: Callable[..., None], *arguments: object) -> None:
    """Calls what the process is to do, in a process that ends with its parent as soon as it has begun."""
    end_with_parent()  # who is there, as long as the pipe is held
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    process(*arguments)
