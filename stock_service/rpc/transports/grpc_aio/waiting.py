"""Requests that wait on the event loop, which serves others meanwhile: see ``rpc/waiting.py``."""

import asyncio
from collections.abc import Callable
from functools import partial

from stock_service.rpc.waiting import Flush, Wait, Waiting, here

Answer = Callable[[], bytes]
"""A request's, to be called once or twice."""


class Waits:
    """Those of one server. For the loop's thread, but for ``_over``."""

    def __init__(self, flush: Flush) -> None:
        """``flush`` is the service's."""
        self._flush = flush
        self._asked = False

    async def answered(self, answer: Answer) -> bytes:
        """What ``answer`` gives, at once or after a wait. Raises what it raises."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        wait = Wait(lambda _: self._over(loop, over))
        try:
            return _with(wait, answer)
        except Waiting:
            if not self._asked:
                self._asked = True
                loop.call_soon(self._ask)  # when all have begun that are ready now
        await over
        return _with(wait, answer)

    def _ask(self) -> None:
        self._asked = False
        self._flush(False)

    def _over(self, loop: asyncio.AbstractEventLoop, over: "asyncio.Future[None]") -> None:
        """A wait is over; any thread."""
        try:
            loop.call_soon_threadsafe(partial(_end, over))
        except RuntimeError:
            pass  # the loop is closed: the server has given this request up


def _with(wait: Wait, answer: Answer) -> bytes:
    here.wait = wait
    try:
        return answer()
    finally:
        here.wait = None


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():  # its client has given up
        over.set_result(None)
