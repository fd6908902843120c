"""Interface of an executor, and functions that several executors share."""

import logging
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread, current_thread
from typing import Protocol

from stock_service.rpc.errors import Overloaded, Unavailable

_log = logging.getLogger(__name__)

Task = Callable[[], object]
"""Function that answers one request and sends the reply, or serves one connection. If the function raises an exception,
the executor logs the exception, and the thread continues.
"""


_START_S = 1.0
"""Longest wait, in seconds, for the end of a pool's started threads, if the system refuses to start the next thread."""


class Reader(Protocol):
    """Thread that reads a server's connections, or several threads that read one after the other. ``threading.Thread``
    is a ``Reader``.
    """

    def start(self) -> None:
        """Starts the thread, which then reads the server's connections."""

    def join(self, timeout: float) -> None:
        """Blocks until the reading has ended, for ``timeout`` seconds at most."""


class Executor(Protocol):
    """Threads that run tasks. The constructor takes ``workers`` and ``queue_limit``. The code that made an executor
    must stop this executor.

    Thread-safe.
    """

    workers: int
    """Largest number of tasks that run at a time."""
    limit: int
    """Largest number of accepted tasks that have not ended: the constructor's ``workers`` plus ``queue_limit``."""

    @property
    def under_way(self) -> int:
        """Number of accepted tasks that run or wait for a thread. The number may be slightly wrong while tasks begin or
        end.
        """

    @property
    def busy(self) -> int:
        """Number of threads that run a task: ``under_way`` less the number of tasks that wait. The number may be
        slightly wrong.
        """

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a thread. Never blocks. Raises Overloaded if ``limit`` is reached, and Unavailable after
        ``stop``.
        """

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to threads, in order, up to ``limit``. Returns the number of accepted tasks.

        Raises Unavailable after ``stop``. The executor ``leader-followers`` may run the tasks on the calling thread, if
        this thread is the executor's ``reader``. The call then blocks while the tasks run, and may raise a
        BaseException. The caller must not catch this exception, and must stop reading.
        """

    def reader(self, read: Callable[[], object], end: Callable[[], object]) -> Reader:
        """Makes the thread that reads a server's connections. The thread calls ``read``, and calls ``end`` when
        ``read`` has returned.

        The executor ``leader-followers`` may end ``read`` by an exception. Another thread then calls ``read`` again.
        """

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks, and ends the threads. Blocks. Returns True if all threads ended within ``grace_s``
        seconds. May be called again.
        """


def execute_each(execute: Callable[[Task], None], tasks: Sequence[Task]) -> int:
    """Implements ``Executor.execute_all`` for an executor whose method ``execute`` takes one task at a time."""
    for number, task in enumerate(tasks):
        try:
            execute(task)
        except Overloaded:
            return number
        except Unavailable:
            if number:
                return number  # the earlier tasks may run already
            raise
    return len(tasks)


def run(task: Task) -> None:
    """Calls a task, and logs its exception. Catches also SystemExit, since no task may end its thread."""
    try:
        task()
    except BaseException:
        log_raised()


def log_raised() -> None:
    """Logs the current exception, which a task raised. Never raises, since a failure of the log must not end
    a thread."""
    try:
        _log.exception("a task raised")
    except BaseException:  # a handler or a filter of the log has raised; no other place can report this error
        pass


def tell_name() -> None:
    """Gives the kernel the name of the current thread, cut to 15 characters.

    Then ``top -H`` shows the threads by name, and a measurement can find out how a pool's threads share the work.
    """
    try:
        Path("/proc/thread-self/comm").write_text(current_thread().name)
    except OSError:  # this kernel has no thread names, and only measurements need the name
        pass


def started(threads: Sequence[Thread], stop: Callable[[float], object]) -> None:
    """Starts all threads of a pool. If the system refuses a thread, stops the pool and raises RuntimeError."""
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        stop(_START_S)
        raise


def ended(threads: Sequence[Thread], grace_s: float) -> bool:
    """Waits for the end of all threads that were started. Returns True if all these threads ended within ``grace_s``
    seconds.
    """
    deadline_s = time.monotonic() + grace_s
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, deadline_s - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def reading_thread(read: Callable[[], object], end: Callable[[], object]) -> Thread:
    """Implements ``Executor.reader`` with a thread that only reads, and runs no request."""

    def live() -> None:
        tell_name()
        try:
            read()
        finally:  # also after an exception: the thread that stops the server waits for ``end``
            end()

    return Thread(target=live, name="server-reader")


def has_gil() -> bool:
    """Returns True if Python has a global interpreter lock (GIL): always, except in a free-threaded build."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
