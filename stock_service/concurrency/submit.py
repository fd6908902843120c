"""``submit`` on top of a bare ``execute``, for grpcio.

grpcio asks of an executor a ``submit`` that returns a Future and never raises: one that raises kills grpcio's serving
thread, and every later call hangs. So here a task that cannot be taken becomes a Future that has failed. The server
keeps that from happening with ``maximum_concurrent_rpcs``, since grpcio leaves such a call unanswered.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from stock_service.concurrency import Executor
from stock_service.errors import Fault

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
        """Has the executor call ``fn``. Never raises and never blocks."""
        future: Future[T] = Future()
        try:
            self._executor.execute(partial(_fulfil, future, partial(fn, *args, **kwargs)))
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
