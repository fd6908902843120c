"""The exchange: ids of trades. ``tests/conformance/transports.py`` has the six outcomes and the order of the checks."""

import tracemalloc

import pytest

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import Side, Status, Stock, TradeReply

STOCKS = (Stock("A", 1599, 10), Stock("B", 0, 10**12), Stock("Closed", 5, 0))

BUY, SELL = Side.BUY, Side.SELL


@pytest.fixture
def exchange() -> Exchange:
    """An exchange of three stocks."""
    return Exchange(MemoryCatalog(STOCKS, LOCKINGS["per-stock"]))


@pytest.mark.parametrize(
    ("name", "quantity", "side"), [("B", 2, BUY), ("A", 3, BUY), ("A", 2, SELL), ("X", 2, BUY), ("A", 0, BUY)]
)
def test_an_id_used_for_other_content_is_a_fault(exchange: Exchange, name: str, quantity: int, side: int) -> None:
    """Another stock, quantity or side under the same id is InvalidRequest, for any outcome that it would have had."""
    first = exchange.trade("A", 2, BUY, "id")
    with pytest.raises(InvalidRequest, match="'id'"):
        exchange.trade(name, quantity, side, "id")
    assert exchange.trade("A", 2, BUY, "id") == first
    assert exchange.lookup("B").sequence == 0


def test_an_id_has_64_characters_at_most(exchange: Exchange) -> None:
    """An id has at most 64 characters of any kind. One more is a fault before all other checks."""
    assert exchange.trade("A", 1, BUY, "é" * 64) == TradeReply(Status.OK, 1, 1)
    with pytest.raises(InvalidRequest, match="65 characters"):
        exchange.trade("X", 0, 0, "é" * 65)


@pytest.mark.slow
def test_remembered_ids_hold_no_overlong_names(exchange: Exchange) -> None:
    """A name that is too long for a stock costs the window of ids no more than a stock's name."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100):
            name = f"{number}" + "x" * 100_000
            assert exchange.trade(name, 1, BUY, f"id {number}").status is Status.UNKNOWN_STOCK
            del name
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000
