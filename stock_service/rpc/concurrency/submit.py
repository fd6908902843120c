"""``submit`` on top of a bare ``execute``, for grpcio.

grpcio needs an executor's ``submit`` to return a Future and never raise. A ``submit`` that raises kills grpcio's
serving thread, and every later call hangs. A failed Future is no better for its caller: grpcio leaves that call
unanswered.

``maximum_concurrent_rpcs`` keeps an executor from being full, but for a moment. A call counts as ended when its Future
has its result. The thread that gave the result can take another task some microseconds later. So a task that finds no
room here waits for that moment.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.errors import Fault, Overloaded

ROOM_S = 1.0
"""How long a task waits for room, at most; microseconds are usual, and only a machine that stalls lets it pass."""

_RETRY_S = 0.00005

P = ParamSpec("P")
T = TypeVar("T")


class Submitting(ThreadPoolExecutor):
    """An executor of ours as grpcio's type wants it. Owns no thread: the executor given runs everything.

    Deriving from ThreadPoolExecutor is for the type alone; of it, only ``submit`` is used, and replaced.
    """

    def __init__(self, executor: Executor) -> None:
        super().__init__(max_workers=1)
        self._executor = executor

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Has the executor call ``fn``. Never raises. Waits ``ROOM_S`` for room at most; then the Future fails."""
        future: Future[T] = Future()
        task = partial(_fulfil, future, partial(fn, *args, **kwargs))
        deadline_s = time.monotonic() + ROOM_S
        while True:
            try:
                self._executor.execute(task)
            except Overloaded as fault:
                if time.monotonic() < deadline_s:
                    time.sleep(_RETRY_S)  # a thread has given its result and is about to take the next task
                    continue
                future.set_exception(fault)
            except Fault as fault:
                future.set_exception(fault)
            return future


def _fulfil(future: Future[T], function: Callable[[], T]) -> None:
    """Calls the function and gives the future what it returned or raised."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as error:  # whoever asks for the result gets it
        future.set_exception(error)
