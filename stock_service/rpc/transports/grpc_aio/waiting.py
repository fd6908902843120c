"""Calls that wait on the event loop without blocking the loop. A call waits for a group commit (``rpc/waiting.py``), or
for another thread's result.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from stock_service.rpc.errors import Fault
from stock_service.rpc.waiting import Flush, Wait, Waiting, here

T = TypeVar("T")

Answer = Callable[[], bytes]
"""Function that answers a call. If the function raises ``Waiting``, the server calls the function once more after the
wait.
"""


class Waits:
    """Calls of one server that wait for a flush (a group commit) of the service. During the wait, a call uses no
    thread. Only the loop's thread uses the object.
    """

    def __init__(self, flush: Flush) -> None:
        """``flush`` begins the work of waiting requests (``Service.flush``)."""
        self._flush = flush
        self._asked = False

    async def answered(self, answer: Answer) -> bytes:
        """Returns the result of ``answer``. If ``answer`` raises ``Waiting``, awaits the end of the wait, and calls
        ``answer`` again. Raises other exceptions of ``answer``.
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        wait = Wait(lambda _: settle(over, None))
        try:
            return _with(wait, answer)
        except Waiting:
            if not self._asked:
                self._asked = True
                loop.call_soon(self._ask)  # after the calls that are ready now have begun, so that one flush serves all
        await over
        return _with(wait, answer)

    def _ask(self) -> None:
        self._asked = False
        self._flush(False)


def _with(wait: Wait, answer: Answer) -> bytes:
    here.wait = wait
    try:
        return answer()
    finally:
        here.wait = None


def settle(future: asyncio.Future[T], result: T | Fault) -> None:
    """Makes the loop's thread give a future its result, or a fault as its exception. Does nothing if the future is
    done. Thread-safe.
    """
    try:
        future.get_loop().call_soon_threadsafe(partial(_settle, future, result))
    except RuntimeError:
        pass  # the loop is closed: the server has given up the waiting calls


def _settle(future: asyncio.Future[T], result: T | Fault) -> None:
    if future.done():
        return  # the client has cancelled the call
    if isinstance(result, Fault):
        future.set_exception(result)
    else:
        future.set_result(result)
