"""The thread pool of grpcio's server, made from an executor: a call gets its thread at its headers.

grpcio asks its pool for ``submit`` alone. It counts a call as under way until the Future that it got is done, and
refuses calls over ``maximum_concurrent_rpcs`` by itself. ``submit`` never raises: that would kill grpcio's serving
thread, and every later call would hang.

A thread's ``arrival`` says how the call that it has came to it; a handler reads it (``server.py``).
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
"""Between two offers of a call to an executor that had no room for it."""


class Arrival(threading.local):
    """The call that a thread has. Each thread sees its own."""

    began_ns = 0
    """When the thread got it (``time.monotonic_ns``)."""
    waited_ns = 0
    """How long it had waited for the thread by then."""
    refused: Fault | None = None
    """Why it is not to be begun."""


class CallPool(Executor):
    """See the module. ``submit`` is for grpcio's serving thread alone."""

    def __init__(self, execute: Callable[[Task], None], submit: Callable[[Task], Future[Any]] | None = None) -> None:
        """Of the executor: its ``execute``, and the ``submit`` of one that has Futures of its own.

        One more Future for each call would take a tenth of a Lookup's time: its end waits for a lock of grpcio's.
        """
        self.arrival = Arrival()
        self.waiting: set[object] = set()
        """The calls that no thread has yet, a mark for each, without those that came once calls are refused."""
        self.give: Callable[[Task], None] = self._offer
        """Has some thread call a task. Before the server serves, what notes something may be put around it."""
        self._execute = execute
        self._submit = submit
        self._refused: Fault | None = None
        self._again = ThreadPoolExecutor(1, thread_name_prefix="grpc-again")
        self._again.submit(int)  # has its thread started now, while the system gives one

    def refuse(self) -> None:
        """From now on each new call is refused by its handler: the server is stopping."""
        self._refused = Unavailable("the server is stopping")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Takes a call from grpcio. Never raises; the Future is done once the call's thread is done with it."""
        mark, refused = object(), self._refused
        if refused is None:
            self.waiting.add(mark)
        task = partial(self._run, mark, time.monotonic_ns(), refused, partial(fn, *args, **kwargs))
        try:
            if self._submit is not None:
                return self._submit(task)
        except Fault:
            pass  # as below
        ended: Future[Any] = Future()
        self.give(partial(_ended, ended, task))
        return ended

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the pool's own thread. The executor is its maker's."""
        self._again.shutdown(wait, cancel_futures=cancel_futures)

    def _offer(self, task: Task) -> None:
        try:
            self._execute(task)
        except Fault:
            with suppress(RuntimeError):  # the server has stopped: the call has no reply, as its connection has none
                self._again.submit(self._insist, task)

    def _insist(self, task: Task) -> None:
        """Offers a task until it is taken. grpcio gives away no more calls than the executor has room for; but a thread
        whose call has just ended may not be free yet, and the system may have no thread to give."""
        while True:
            try:
                return self._execute(task)
            except Overloaded:
                time.sleep(_AGAIN_S)
            except Unavailable:
                return None  # the executor was stopped, behind the server

    def _run(self, mark: object, accepted_ns: int, refused: Fault | None, call: Task) -> None:
        """A task: the call, by way of grpcio, which waits for its message and calls its handler."""
        arrival = self.arrival
        arrival.began_ns = began_ns = time.monotonic_ns()
        arrival.waited_ns = began_ns - accepted_ns
        arrival.refused = refused
        self.waiting.discard(mark)
        call()


def _ended(ended: Future[Any], task: Task) -> None:
    """A task that tells a Future of its end."""
    try:
        task()
    finally:
        ended.set_result(None)
