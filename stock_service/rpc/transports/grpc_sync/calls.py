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
from functools import partial
from typing import Any, ParamSpec, TypeVar

from stock_service.rpc.concurrency.static_pool import Task
from stock_service.rpc.errors import Fault, Overloaded, Unavailable

P = ParamSpec("P")
T = TypeVar("T")

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

    def __init__(self, execute: Callable[[Task], None]) -> None:
        """``execute`` is the executor's."""
        self.arrival = Arrival()
        self.waiting: set[Future[Any]] = set()
        """The calls that no thread has yet, without those that came once calls are refused."""
        self._execute = execute
        self._refused: Fault | None = None
        self._again = ThreadPoolExecutor(1, thread_name_prefix="grpc-again")
        self._again.submit(int)  # has its thread started now, while the system gives one

    def refuse(self) -> None:
        """From now on each new call is refused by its handler: the server is stopping."""
        self._refused = Unavailable("the server is stopping")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Takes a call from grpcio. Never raises; the Future is done, without a result, once the call's thread is."""
        ended: Future[T] = Future()
        refused = self._refused
        if refused is None:
            self.waiting.add(ended)
        task = partial(self._run, ended, time.monotonic_ns(), refused, partial(fn, *args, **kwargs))
        try:
            self._execute(task)
        except Fault:
            self._again.submit(self._insist, task)
        return ended

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the pool's own thread. The executor is its maker's."""
        self._again.shutdown(wait, cancel_futures=cancel_futures)

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

    def _run(self, ended: Future[Any], accepted_ns: int, refused: Fault | None, call: Callable[[], object]) -> None:
        """A task: the call, by way of grpcio, which waits for its message and calls its handler."""
        arrival = self.arrival
        arrival.began_ns = began_ns = time.monotonic_ns()
        arrival.waited_ns = began_ns - accepted_ns
        arrival.refused = refused
        self.waiting.discard(ended)
        try:
            call()
        finally:
            ended.set_result(None)
