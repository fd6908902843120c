"""The rules of trading, as pure functions of a stock and a request.

A *step* is a function from a stock to the new stock and a status. A catalog makes each step atomic. The linearizability
check uses the same functions as its sequential specification. If a step returns the stock object that it got, the
catalog makes no commit. In this way the catalog distinguishes a refusal from a change. Setting a price to its current
value is a change.

The specified order of checks is: unknown stock, then quantity or price, then side, then suspension. ``trade_refusal``
and ``update_refusal`` make the checks that need no stock. ``trade`` checks suspension, which needs the stock. A step
must be fast, since it runs under a lock. So a step makes the new stock by positional arguments, which is three times as
fast as ``dataclasses.replace``.
"""

from stock_service.trading.model import QUANTITY_MAX, Side, Status, Stock

UNKNOWN = (None, Status.UNKNOWN_STOCK)
"""Result of any step for an unknown stock."""


def lookup_status(stock: Stock) -> Status:
    """Returns the status of a Lookup: SUSPENDED for a stock whose volume is at the limit, otherwise OK."""
    return Status.SUSPENDED if stock.volume >= stock.volume_limit else Status.OK


def trade_refusal(quantity: int, side: int) -> Status | None:
    """Returns the status that refuses a trade of any stock because of its quantity or side; None for a valid trade."""
    if not 0 < quantity <= QUANTITY_MAX:
        return Status.INVALID_QUANTITY
    if side != Side.BUY and side != Side.SELL:
        return Status.INVALID_SIDE
    return None


def refuse(stock: Stock | None, refusal: Status) -> tuple[Stock | None, Status]:
    """Step of a trade that ``trade_refusal`` refuses: changes nothing. The status is UNKNOWN_STOCK for an unknown stock
    (None), otherwise ``refusal``.
    """
    return UNKNOWN if stock is None else (stock, refusal)


def trade(stock: Stock, quantity: int) -> tuple[Stock, Status]:
    """Step of a valid trade: adds the quantity to the stock's volume. If the volume would be above the limit, changes
    nothing, and the status is SUSPENDED.
    """
    volume = stock.volume + quantity
    if volume > stock.volume_limit:
        return stock, Status.SUSPENDED
    return Stock(stock.name, stock.price_cents, stock.volume_limit, volume), Status.OK


def update_refusal(price_cents: int) -> Status | None:
    """Returns the status that refuses an invalid price; None for a valid price. Zero is valid."""
    return Status.INVALID_PRICE if price_cents < 0 else None


def update(stock: Stock, price_cents: int) -> tuple[Stock, Status]:
    """Step of a valid update: sets the stock's price, in cents. The price of a stock at its volume limit can also be
    set.
    """
    return Stock(stock.name, price_cents, stock.volume_limit, stock.volume), Status.OK
