"""The rules of trading: pure functions of a stock and a request, written once.

A catalog makes each step atomic; the linearizability check uses the same functions as the sequential specification. A
step returns the new stock, and the status. If a step returns the object that it was given, there is no commit: so a
catalog distinguishes a refusal from a change. Setting a price to its current value is a change.

The specified order of checks is: unknown stock, then quantity or price, then side, then suspension. ``trade_refusal``
and ``update_refusal`` need no stock. Suspension needs the stock, and is checked last. Stocks are made with positional
arguments, which is three times as fast as ``dataclasses.replace``, since a step runs under a lock.
"""

from stock_service.trading.model import QUANTITY_MAX, Side, Status, Stock

UNKNOWN = (None, Status.UNKNOWN_STOCK)
"""Result of any step for an unknown stock."""


def lookup_status(stock: Stock) -> Status:
    """OK, or SUSPENDED for a stock whose volume is at the limit."""
    return Status.SUSPENDED if stock.volume >= stock.volume_limit else Status.OK


def trade_refusal(quantity: int, side: int) -> Status | None:
    """The status that refuses this trade for any stock, or None."""
    if not 0 < quantity <= QUANTITY_MAX:
        return Status.INVALID_QUANTITY
    if side != Side.BUY and side != Side.SELL:
        return Status.INVALID_SIDE
    return None


def refuse(stock: Stock | None, refusal: Status) -> tuple[Stock | None, Status]:
    """Result of a request that is refused for any stock: an unknown stock comes before any other reason."""
    return UNKNOWN if stock is None else (stock, refusal)


def trade(stock: Stock, quantity: int) -> tuple[Stock, Status]:
    """Adds a quantity that ``trade_refusal`` accepted; SUSPENDED if the volume would be above the limit."""
    volume = stock.volume + quantity
    if volume > stock.volume_limit:
        return stock, Status.SUSPENDED
    return Stock(stock.name, stock.price_cents, stock.volume_limit, volume), Status.OK


def update_refusal(price_cents: int) -> Status | None:
    """The status that refuses this price for any stock, or None. Zero is a price."""
    return Status.INVALID_PRICE if price_cents < 0 else None


def update(stock: Stock, price_cents: int) -> tuple[Stock, Status]:
    """Sets a price that ``update_refusal`` accepted."""
    return Stock(stock.name, price_cents, stock.volume_limit, stock.volume), Status.OK
