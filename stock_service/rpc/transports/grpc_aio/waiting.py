"""Requests that wait on the event loop, while the loop serves other calls. A request waits for the answer of a thread,
or in a ``Wait`` (``rpc/waiting.py``).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from stock_service.rpc.errors import Fault
from stock_service.rpc.waiting import Flush, Wait, Waiting, here

T = TypeVar("T")

Answer = Callable[[], bytes]
"""Function that answers a request. The function is called once, and once more after a wait."""


class Waits:
    """Requests of one server that wait without a thread. For the loop's thread."""

    def __init__(self, flush: Flush) -> None:
        """``flush`` is the service's ``flush``."""
        self._flush = flush
        self._asked = False

    async def answered(self, answer: Answer) -> bytes:
        """The result of ``answer``, at once or after a wait. Raises the exceptions of ``answer``."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        wait = Wait(lambda _: settle(over, None))
        try:
            return _with(wait, answer)
        except Waiting:
            if not self._asked:
                self._asked = True
                loop.call_soon(self._ask)  # after the requests that are ready now have begun
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
    """Gives a future its result, or a fault, on the loop's thread, unless it is done. Any thread may call this."""
    try:
        future.get_loop().call_soon_threadsafe(partial(_settle, future, result))
    except RuntimeError:
        pass  # the loop is closed: the server has given up the waiting calls


def _settle(future: asyncio.Future[T], result: T | Fault) -> None:
    if future.done():
        return  # its client has given up
    if isinstance(result, Fault):
        future.set_exception(result)
    else:
        future.set_result(result)
