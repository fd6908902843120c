"""The shared catalog's own: numbers of 64 bits, room for contents and replies, steps, and its memory."""

import os

import pytest

from stock_service.trading.exchange import Exchange
from stock_service.trading.model import INT64_MAX, NAME_LENGTH_MAX, QUANTITY_MAX, Side, Status, Stock, TradeReply
from stock_service.trading.shared.catalog import allot
from stock_service.trading.shared.memory import Memory
from tests.conformance.shared import Shared

WIDE = "\N{GRINNING FACE}"
STOCKS = (Stock("A", 100, INT64_MAX), Stock(WIDE * NAME_LENGTH_MAX, INT64_MAX, INT64_MAX, INT64_MAX - 5))


def test_the_largest_numbers_and_names_are_kept() -> None:
    """Up to 2^63 - 1, and the longest name in the longest UTF-8 with the longest id; one more is refused, not cut."""
    name, wide_id = STOCKS[1].name, WIDE * 64
    with Shared() as shared:
        catalog = shared.catalog(shared.memory(STOCKS))
        exchange = Exchange(catalog)
        assert exchange.trade(name, 5, Side.SELL, wide_id) == TradeReply(Status.OK, INT64_MAX, 1)
        assert exchange.trade(name, 5, Side.SELL, wide_id) == TradeReply(Status.OK, INT64_MAX, 1)
        assert exchange.trade(name, QUANTITY_MAX, Side.SELL) == TradeReply(Status.SUSPENDED, INT64_MAX, 0)
        assert catalog.read(name) == (Stock(name, INT64_MAX, INT64_MAX, INT64_MAX), 1)
        with pytest.raises(OverflowError):
            exchange.update("A", INT64_MAX + 1)
        assert (exchange.lookup("A").price_cents, exchange.lookup("A").sequence) == (100, 0)
        assert exchange.update("A", INT64_MAX).sequence == 2


def test_a_step_may_change_price_and_volume_alone() -> None:
    """Any other change of a stock is refused, and nothing is changed."""
    with Shared() as shared:
        catalog = shared.catalog(shared.memory(STOCKS))
        for changed in (Stock("B", 100, INT64_MAX), Stock("A", 100, 2)):
            with pytest.raises(ValueError, match="more than price and volume"):
                catalog.change("A", lambda _, stock=changed: (stock, Status.OK))  # type: ignore[misc]
        assert Exchange(catalog).trade("A", 1, Side.BUY) == TradeReply(Status.OK, 1, 1)


@pytest.mark.parametrize("size", [0, 8, 8192])
def test_a_memory_that_holds_no_catalog_is_refused(size: int) -> None:
    """A memory without a catalog, empty or with other content, is refused."""
    with Shared() as shared:
        descriptor = os.memfd_create("none")
        shared.callback(os.close, descriptor)
        os.ftruncate(descriptor, size)
        with pytest.raises(ValueError, match="empty" if size == 0 else "no memory of a catalog"):
            shared.catalog(descriptor)


def test_what_cannot_be_allotted_leaves_nothing_open() -> None:
    """A number of over 64 bits is an OverflowError."""
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OverflowError):
        allot([Stock("A", INT64_MAX + 1, 1)])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_memory_that_cannot_be_finished_leaves_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that cannot be finished is refused for each process, and leaves no lock to wait for."""

    def fails(_: Memory) -> None:
        raise IndexError("no such word")

    with Shared() as shared:
        exchange = Exchange(shared.catalog(shared.memory(STOCKS)))
        monkeypatch.setattr(Memory, "_finish", fails)
        for _ in range(2):
            with pytest.raises(IndexError):
                exchange.lookup("A")
