"""Adapter with which grpcio's server uses an executor as its thread pool. A call gets a thread once the call's headers
have come.

grpcio calls only the method ``submit`` of its thread pool. grpcio counts a call as running until the Future of
``submit`` is done, and itself refuses calls over ``maximum_concurrent_rpcs``. ``submit`` never raises: an exception
would end grpcio's serving thread, and every later call would hang.

Each thread has its own ``Arrival``: the time when its current call came, and the fault if the call must be refused. The
handlers (``handlers.py``) read the ``Arrival`` of their thread.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from stock_service.rpc.concurrency import Task
from stock_service.rpc.errors import Fault, Overloaded, Unavailable

_AGAIN_S = 0.001
"""Time in seconds. If the executor did not accept a call, ``CallPool`` offers the call again after this time."""


class Arrival(threading.local):
    """Arrival of a thread's current call. Each thread sees its own values."""

    began_ns = 0
    """Time when the thread got the call, on ``time.monotonic_ns``."""
    waited_ns = 0
    """Nanoseconds for which the call waited for the thread, until ``began_ns``."""
    refused: Fault | None = None
    """Fault with which the handler must refuse the call; None for a call that may begin."""


class CallPool(Executor):
    """Thread pool for grpcio; see the module. Only grpcio's serving thread may call ``submit``."""

    def __init__(self, execute: Callable[[Task], None], submit: Callable[[Task], Future[Any]] | None = None) -> None:
        """``execute`` and ``submit`` are the methods of the executor. ``submit`` is None for an executor without this
        method.

        ``submit`` saves a second Future for each call. A second Future would take a tenth of a Lookup's time, since a
        Future waits at its end for a lock of grpcio.
        """
        self.arrival = Arrival()
        self.waiting: set[object] = set()
        """One object for each call that waits for a thread. Calls that came after ``refuse`` do not count."""
        self.give: Callable[[Task], None] = self._offer
        """Function that gives a task to a thread. Before the server's start, a wrapper that records times may replace
        this function.
        """
        self._execute = execute
        self._submit = submit
        self._refused: Fault | None = None
        self._again = ThreadPoolExecutor(1, thread_name_prefix="grpc-again")
        self._again.submit(int)  # starts the thread now, since the system may refuse a thread later

    def refuse(self) -> None:
        """Makes the handlers refuse each new call from now on, because the server is stopping."""
        self._refused = Unavailable("the server is stopping")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Takes a call from grpcio. Never raises. The Future is done once a thread has finished the call."""
        mark, refused = object(), self._refused
        if refused is None:
            self.waiting.add(mark)
        task = partial(self._run, mark, time.monotonic_ns(), refused, partial(fn, *args, **kwargs))
        try:
            if self._submit is not None:
                return self._submit(task)
        except Fault:
            pass  # ``give`` offers the call again
        ended: Future[Any] = Future()
        self.give(partial(_ended, ended, task))
        return ended

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the pool's own thread. Does not stop the executor."""
        self._again.shutdown(wait, cancel_futures=cancel_futures)

    def _offer(self, task: Task) -> None:
        try:
            self._execute(task)
        except Fault:
            with suppress(RuntimeError):  # the server has stopped, and closed the call's connection
                self._again.submit(self._insist, task)

    def _insist(self, task: Task) -> None:
        """Offers a task to the executor until the executor takes the task. Blocks; runs on the pool's own thread.

        grpcio submits no more calls than the executor's limit. But a thread whose call has just ended may not be free
        yet, or the system may refuse a new thread.
        """
        while True:
            try:
                return self._execute(task)
            except Overloaded:
                time.sleep(_AGAIN_S)
            except Unavailable:
                return None  # the executor was stopped, and the server before it

    def _run(self, mark: object, accepted_ns: int, refused: Fault | None, call: Task) -> None:
        """Task of one call. Notes the call's arrival. Then ``call`` waits for the call's message, and runs
        the handler."""
        arrival = self.arrival
        arrival.began_ns = began_ns = time.monotonic_ns()
        arrival.waited_ns = began_ns - accepted_ns
        arrival.refused = refused
        self.waiting.discard(mark)
        call()


def _ended(ended: Future[Any], task: Task) -> None:
    """Runs a task, and then marks the Future ``ended`` as done."""
    try:
        task()
    finally:
        ended.set_result(None)
