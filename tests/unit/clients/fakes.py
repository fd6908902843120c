"""Connections and clocks that need no server and no time."""

from collections.abc import Callable

from stock_service.rpc.service import Service
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.model import Stock
from stock_service.trading.service import stock_service
from tests.raw_service import answered


class Clock:
    """A clock that moves by a nanosecond at every look, and by ``pause``."""

    now_ns = 1_000_000

    def __call__(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def pause(self, seconds: float) -> None:
        """Moves the clock, in the place of a sleep."""
        self.now_ns += int(seconds * 1e9)


class FakeConnection:
    """A connection to a service in this process. ``before`` is called first, with the number of the call."""

    def __init__(self, service: Service, before: Callable[[int], None] = lambda _: None) -> None:
        self._service = service
        self._before = before
        self.calls: list[tuple[str, bytes, float]] = []
        self.closed = False

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        assert not self.closed
        self.calls.append((path, payload, timeout_s))
        self._before(len(self.calls))
        return answered(self._service, path, payload)

    def close(self) -> None:
        self.closed = True


def service(*stocks: Stock) -> Service:
    """A stock service with these stocks, or with the default stocks."""
    return stock_service(Exchange(MemoryCatalog(stocks or DEFAULT_STOCKS, Mutex)))
