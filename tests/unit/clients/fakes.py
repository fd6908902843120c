"""Connections and clocks that need no server and no time."""

from collections.abc import Callable, Iterable, Iterator

from stock_service.rpc.errors import Fault
from stock_service.rpc.service import Service
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.model import Stock
from stock_service.trading.service import stock_service
from tests.raw_service import answered


class Clock:
    """A clock in nanoseconds that moves by a step at every look, and by ``pause``."""

    def __init__(self, step_ns: int = 1) -> None:
        self.now_ns = 1_000_000
        self._step_ns = step_ns

    def __call__(self) -> int:
        self.now_ns += self._step_ns
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


class CannedConnection:
    """A connection that gives prepared replies, or raises prepared faults, in sequence."""

    def __init__(self, replies: Iterable[bytes | Fault]) -> None:
        self._replies: Iterator[bytes | Fault] = iter(replies)

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        reply = next(self._replies)
        if isinstance(reply, Fault):
            raise reply
        return reply

    def close(self) -> None:
        """Does nothing: no connection is open."""


def service(*stocks: Stock) -> Service:
    """A stock service with these stocks, or with the default stocks."""
    return stock_service(Exchange(MemoryCatalog(stocks or DEFAULT_STOCKS, Mutex)))
