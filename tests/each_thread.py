"""An exchange where each thread uses a different one of several."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import cycle
from threading import local

from stock_service.trading.model import LookupReply, TradeReply, UpdateReply
from tests.races.history import Answering


class OfEachThread:
    """The exchanges in turn: each thread gets one, and then the threads begin anew. ``around`` gives a context for each
    request."""

    def __init__(
        self,
        exchanges: Sequence[Answering],
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._next = cycle(exchanges)
        self._around = around
        self._local = local()

    @property
    def _own(self) -> Answering:
        if not hasattr(self._local, "exchange"):
            self._local.exchange = next(self._next)
        exchange: Answering = self._local.exchange
        return exchange

    def lookup(self, name: str) -> LookupReply:
        with self._around():
            return self._own.lookup(name)

    def trade(self, name: str, quantity: int, side: int, request_id: str = "") -> TradeReply:
        with self._around():
            return self._own.trade(name, quantity, side, request_id)

    def update(self, name: str, price_cents: int) -> UpdateReply:
        with self._around():
            return self._own.update(name, price_cents)
