"""The interface of an executor, and what executors share."""

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
"""One request: answers it and sends the reply. An exception that leaves a task is logged, and its thread goes on."""


_START_S = 1.0
"""Seconds that the threads have to end which were started before the system refused one."""


class Reader(Protocol):
    """A server's reading, on a thread of its own. ``threading.Thread`` is one."""

    def start(self) -> None:
        """Begins to read."""

    def join(self, timeout: float) -> None:
        """Blocks until the reading thread has ended, or for ``timeout`` seconds."""


class Executor(Protocol):
    """Decides which thread runs a request. Made from (workers, queue_limit); whoever made it stops it.

    Every method may be called from any thread.
    """

    workers: int
    """Tasks that run at a time, at most."""
    limit: int
    """Tasks under way at a time, at most: workers and the queue's limit."""

    @property
    def under_way(self) -> int:
        """Tasks that were accepted and have not ended, nearly: those that run, and those that wait for a thread."""

    @property
    def busy(self) -> int:
        """Threads that run a task now, nearly: ``under_way`` without the tasks that wait."""

    def execute(self, task: Task) -> None:
        """Has some thread call ``task``. Never blocks; raises Overloaded when full, Unavailable once stopping."""

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Has threads call ``tasks``; gives how many were accepted, from the first: for the rest there was no room.

        Only ``leader-followers`` runs tasks on the thread that calls this, if that thread reads. Then the call blocks
        while they run. It may also raise a BaseException that only the executor's reader catches: the caller then reads
        no more. Raises Unavailable once stopping.
        """

    def reader(self, read: Callable[[], object], end: Callable[[], object]) -> Reader:
        """The thread that reads for a server: calls ``read`` until it returns, and then ``end``."""

    def stop(self, grace_s: float) -> bool:
        """Runs what was accepted; says whether it and every thread ended within ``grace_s``. May be repeated."""


def execute_each(execute: Callable[[Task], None], tasks: Sequence[Task]) -> int:
    """``execute_all`` of an executor that takes tasks one by one; see ``Executor.execute_all``."""
    for number, task in enumerate(tasks):
        try:
            execute(task)
        except Overloaded:
            return number
        except Unavailable:
            if number:
                return number  # the first of them run already
            raise
    return len(tasks)


def run(task: Task) -> None:
    """Calls a task, and logs what it raises: SystemExit too, since no task may take a thread with it."""
    try:
        task()
    except BaseException:
        log_raised()


def log_raised() -> None:
    """Logs the exception that a task raised. Raises nothing: a log that fails takes no thread with it either."""
    try:
        _log.exception("a task raised")
    except BaseException:  # a handler or a filter of the log raised: nobody is left to be told
        pass


def tell_name() -> None:
    """Tells the kernel this thread's name, of which it keeps 15 characters.

    So ``top -H`` shows which threads run requests, and a measurement can see whether a pool's threads share the work.
    """
    try:
        Path("/proc/thread-self/comm").write_text(current_thread().name)
    except OSError:  # a kernel without it: nobody but a reader of figures misses the name
        pass


def started(threads: Sequence[Thread], stop: Callable[[float], object]) -> None:
    """Starts all of a pool's threads; where the system has no more to give, stops the pool and raises RuntimeError."""
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        stop(_START_S)
        raise


def ended(threads: Sequence[Thread], grace_s: float) -> bool:
    """Waits for threads to end, those that were never started aside; says whether all did within ``grace_s``."""
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
        finally:  # or who stops the server would wait for ever
            end()

    return Thread(target=live, name="server-reader")


def has_gil() -> bool:
    """False in a free-threaded build whose GIL is off."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
