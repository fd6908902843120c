"""The sequential specification: the effect of one request on a stock, and the reply to the request, by the rules of
``trading/rules.py``."""

from typing import assert_never

from clients.load.history.operations import Lookup, Reply, Request, Trade, Update
from stock_service.trading import rules
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply, UpdateReply


def sequentially(stock: Stock, request: Request, sequence: int) -> tuple[Stock, Reply]:
    """Applies a valid request to a stock by the rules of trading. Returns the stock's new state and the reply.
    ``sequence``: number of the commit; for a Lookup, number of the stock's last commit."""
    match request:
        case Lookup():
            return stock, LookupReply(rules.lookup_status(stock), stock.price_cents, stock.volume, sequence)
        case Trade():
            after, status = rules.trade(stock, request.quantity)
            return after, TradeReply(status, after.volume, sequence if status is Status.OK else 0)
        case Update():
            after, status = rules.update(stock, request.price_cents)
            return after, UpdateReply(status, sequence)
        case _:
            assert_never(request)


def refusal_of(request: Request) -> Status | None:
    """The status with which the service refuses the request in every state of the stock; None if some state accepts the
    request."""
    match request:
        case Lookup():
            return None
        case Trade():
            return rules.trade_refusal(request.quantity, request.side)
        case Update():
            return rules.update_refusal(request.price_cents)
        case _:
            assert_never(request)
