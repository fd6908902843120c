"""The exchange: the six outcomes exactly as tabled, in the order of the checks, and retries of a trade."""

import tracemalloc

import pytest

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import QUANTITY_MAX, LookupReply, Side, Status, Stock, TradeReply, UpdateReply

STOCKS = (Stock("A", 1599, 10), Stock("B", 0, 10**12), Stock("Closed", 5, 0))

NO_NAMES = ("", "a", "A ", "X" * 64, "X" * 65, "\0", "é")

BUY, SELL = Side.BUY, Side.SELL


@pytest.fixture
def exchange() -> Exchange:
    """An exchange of three stocks."""
    return Exchange(MemoryCatalog(STOCKS, LOCKINGS["per-stock"]))


@pytest.mark.parametrize("name", NO_NAMES)
def test_an_unknown_stock_is_unknown_to_every_request(exchange: Exchange, name: str) -> None:
    """An unknown stock, an empty name and an overlong one are unknown to every request. The reply is zeros
    otherwise."""
    assert exchange.lookup(name) == LookupReply(Status.UNKNOWN_STOCK, 0, 0, 0)
    assert exchange.trade(name, 1, BUY) == TradeReply(Status.UNKNOWN_STOCK, 0, 0)
    assert exchange.update(name, 1) == UpdateReply(Status.UNKNOWN_STOCK, 0)


@pytest.mark.parametrize(
    ("name", "quantity", "side", "status"),
    [
        ("X", 0, 0, Status.UNKNOWN_STOCK),
        ("A", 0, 0, Status.INVALID_QUANTITY),
        ("A", 11, 0, Status.INVALID_SIDE),
        ("Closed", 1, 7, Status.INVALID_SIDE),
    ],
)
def test_a_refused_trade_names_the_first_fault(
    exchange: Exchange, name: str, quantity: int, side: int, status: Status
) -> None:
    """Unknown stock, then quantity, then side, then suspension; nothing is committed."""
    assert exchange.trade(name, quantity, side) == TradeReply(status)
    assert exchange.trade("B", 1, BUY).sequence == 1


@pytest.mark.parametrize(
    ("name", "price_cents", "status"), [("X", -1, Status.UNKNOWN_STOCK), ("A", -1, Status.INVALID_PRICE)]
)
def test_a_refused_update_names_the_first_fault(
    exchange: Exchange, name: str, price_cents: int, status: Status
) -> None:
    """Unknown stock, then price; nothing is committed."""
    assert exchange.update(name, price_cents) == UpdateReply(status)
    assert exchange.lookup("A") == LookupReply(Status.OK, 1599, 0, 0)
    assert exchange.update("B", 0).sequence == 1


def test_a_session() -> None:
    """A day's trading of one stock: both sides add, what does not fit is suspended with the volume that stands."""
    exchange = Exchange(MemoryCatalog(STOCKS, LOCKINGS["mutex"]))
    assert exchange.lookup("A") == LookupReply(Status.OK, 1599, 0, 0)
    assert exchange.trade("A", 4, BUY) == TradeReply(Status.OK, 4, 1)
    assert exchange.trade("A", 3, SELL) == TradeReply(Status.OK, 7, 2)
    assert exchange.trade("A", 4, BUY) == TradeReply(Status.SUSPENDED, 7, 0)
    assert exchange.update("A", 0) == UpdateReply(Status.OK, 3)
    assert exchange.lookup("A") == LookupReply(Status.OK, 0, 7, 3)
    assert exchange.trade("A", 3, BUY) == TradeReply(Status.OK, 10, 4)
    assert exchange.lookup("A") == LookupReply(Status.SUSPENDED, 0, 10, 4)
    assert exchange.update("A", 2000) == UpdateReply(Status.OK, 5)
    assert exchange.lookup("A") == LookupReply(Status.SUSPENDED, 2000, 10, 5)
    assert exchange.trade("B", QUANTITY_MAX, BUY) == TradeReply(Status.OK, QUANTITY_MAX, 6)
    assert exchange.lookup("Closed") == LookupReply(Status.SUSPENDED, 5, 0, 0)


def test_a_retry_has_one_effect(exchange: Exchange) -> None:
    """The same trade under the same id gets the original reply. Without an id it is another trade."""
    first = exchange.trade("A", 2, BUY, "id")
    assert first == TradeReply(Status.OK, 2, 1)
    assert exchange.trade("A", 1, BUY) == TradeReply(Status.OK, 3, 2)
    assert exchange.trade("A", 2, BUY, "id") == first
    assert exchange.trade("A", 2, BUY, "") == TradeReply(Status.OK, 5, 3)
    assert exchange.lookup("A").volume == 5


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
