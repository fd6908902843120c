"""The rules: the limit is never passed, a refusal changes nothing, and a step changes only its own fields."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from stock_service.trading import rules
from stock_service.trading.model import INT64_MAX, QUANTITY_MAX, Side, Status, Stock

QUANTITIES = st.integers(1, QUANTITY_MAX)


@st.composite
def stocks(draw: st.DrawFn) -> Stock:
    """Any stock whose volume its limit allows; many stand close to it."""
    limit = draw(st.integers(0, 100) | st.integers(0, INT64_MAX))
    volume = draw(st.integers(0, limit) | st.integers(max(0, limit - 3), limit))
    return Stock(draw(st.text(max_size=5)), draw(st.integers(0, INT64_MAX)), limit, volume)


@given(stocks(), QUANTITIES | st.integers(1, 5))
def test_a_trade_fits_or_changes_nothing(stock: Stock, quantity: int) -> None:
    """A trade adds its quantity and changes nothing else, or the same stock object comes back, SUSPENDED."""
    after, status = rules.trade(stock, quantity)
    if stock.volume + quantity <= stock.volume_limit:
        assert status is Status.OK
        assert after == dataclasses.replace(stock, volume=stock.volume + quantity)
    else:
        assert status is Status.SUSPENDED
        assert after is stock


@given(stocks())
def test_a_suspended_stock_takes_no_trade_and_any_other_takes_one_share(stock: Stock) -> None:
    """Lookup says whether a trade of one share would be done."""
    assert rules.lookup_status(stock) is rules.trade(stock, 1)[1]


@given(stocks(), st.integers(0, INT64_MAX))
def test_an_update_sets_the_price_alone(stock: Stock, price_cents: int) -> None:
    """An update sets the price alone. It is a change even at the old price, and also at the limit."""
    after, status = rules.update(stock, price_cents)
    assert status is Status.OK
    assert after == dataclasses.replace(stock, price_cents=price_cents)
    assert after is not stock


def test_a_trade_is_refused_for_its_quantity_first_then_its_side() -> None:
    """Quantities are 1 to 2^31 - 1, sides BUY and SELL; where both are wrong, the quantity is named."""
    assert [rules.trade_refusal(1, side) for side in (0, 3, -1)] == [Status.INVALID_SIDE] * 3
    for side in (Side.BUY, Side.SELL, 1):
        assert rules.trade_refusal(1, side) is rules.trade_refusal(QUANTITY_MAX, side) is None
    for quantity in (0, -1, QUANTITY_MAX + 1, -(2**63)):
        assert [rules.trade_refusal(quantity, side) for side in (Side.BUY, 0)] == [Status.INVALID_QUANTITY] * 2


def test_an_update_is_refused_for_a_negative_price() -> None:
    """Zero is a price."""
    assert rules.update_refusal(0) is None
    assert rules.update_refusal(-1) is Status.INVALID_PRICE
