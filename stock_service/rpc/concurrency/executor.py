"""The interface of an executor, and functions that executors share."""

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
"""Function that answers one request and sends the reply. An exception of the function is logged, and does not end the
thread.
"""


_START_S = 1.0
"""Longest time, in seconds, for the end of the started threads, after the system has refused another thread."""


class Reader(Protocol):
    """The reading of a server, on its own thread. ``threading.Thread`` is a ``Reader``."""

    def start(self) -> None:
        """Begins to read."""

    def join(self, timeout: float) -> None:
        """Blocks until the reading thread has ended, or for ``timeout`` seconds."""


class Executor(Protocol):
    """Decides which thread runs a request. Made from (workers, queue_limit). The maker of an executor stops the
    executor.

    Every method may be called from any thread.
    """

    workers: int
    """Largest number of tasks that run at a time."""
    limit: int
    """Largest number of tasks under way at a time: ``workers`` plus the queue's limit."""

    @property
    def under_way(self) -> int:
        """Number, nearly exact, of accepted tasks that run or wait for a thread."""

    @property
    def busy(self) -> int:
        """Number, nearly exact, of threads that run a task now: ``under_way`` without the tasks that wait."""

    def execute(self, task: Task) -> None:
        """Gives ``task`` to a thread. Never blocks. Raises Overloaded at ``limit``, and Unavailable after ``stop``."""

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Gives ``tasks`` to threads, in order, up to ``limit``; returns the number of tasks accepted.

        Only ``leader-followers`` runs tasks on the thread that calls this, if that thread reads. Then the call blocks
        while the tasks run. The call may also raise a BaseException, which only the executor's reader catches: then the
        caller must stop reading. Raises Unavailable after ``stop``.
        """

    def reader(self, read: Callable[[], object], end: Callable[[], object]) -> Reader:
        """The thread that reads for a server: calls ``read`` until it returns, and then ``end``."""

    def stop(self, grace_s: float) -> bool:
        """Runs the accepted tasks, and ends the threads. Returns True if all of this ended within ``grace_s``. May be
        repeated.
        """


def execute_each(execute: Callable[[Task], None], tasks: Sequence[Task]) -> int:
    """``execute_all`` of an executor that takes tasks one by one; see ``Executor.execute_all``."""
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
    """Calls a task, and logs an exception of the task: SystemExit too, since no task may end its thread."""
    try:
        task()
    except BaseException:
        log_raised()


def log_raised() -> None:
    """Logs the exception that a task raised. Raises nothing, since an error of the log must not end a thread either."""
    try:
        _log.exception("a task raised")
    except BaseException:  # a handler or a filter of the log raised an error, and no other place can report it
        pass


def tell_name() -> None:
    """Tells the kernel this thread's name, of which it keeps 15 characters.

    So ``top -H`` shows which threads run requests, and a measurement can see whether a pool's threads share the work.
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
    """Waits for the end of the started threads; returns True if all threads ended within ``grace_s``."""
    deadline_s = time.monotonic() + grace_s
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, deadline_s - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def reading_thread(read: Callable[[], object], end: Callable[[], object]) -> Thread:
    """A thread that reads and runs no request; see ``Executor.reader``."""

    def live() -> None:
        tell_name()
        try:
            read()
        finally:  # without it, the thread that stops the server would wait for ever
            end()

    return Thread(target=live, name="server-reader")


def has_gil() -> bool:
    """False in a free-threaded build whose GIL is off."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
