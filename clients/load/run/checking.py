"""Begin and end of a checked load run. ``begin`` reads the state of the stocks before the run. ``ended`` reads the
state after the run, and makes the run's history.

No other program may change these stocks during the run. The stocks' volume limits are derived from the replies, unless
the caller gives the limits. No reply states a limit, but each refusal rules out some limits.
"""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from time import perf_counter_ns

from clients.load.history.operations import History, Lookup, Operation
from clients.load.history.verdict import limit_told
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult
from clients.load.send.lean import connecting
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import Fault
from stock_service.trading.model import INT64_MAX, LookupReply, Status, Stock


@dataclass(frozen=True, slots=True)
class Beginning:
    """State of a plan's stocks before the run."""

    stocks: tuple[Stock, ...]
    """Stocks of the plan that the server has. Each stock has the largest possible volume limit, since the real limit is
    unknown.
    """
    before: Mapping[str, int]
    """Sequence number of each stock's last commit."""


def begin(plan: LoadPlan) -> Beginning:
    """Looks up every stock of the plan. Blocks for at most one timeout for each stock. Raises a Fault."""
    stocks, before = [], {}
    for operation in _looked_up(plan):
        reply, name = operation.reply, operation.request.name
        assert isinstance(reply, LookupReply)
        if reply.status is not Status.UNKNOWN_STOCK:
            stocks.append(Stock(name, reply.price_cents, INT64_MAX, reply.volume))
            before[name] = reply.sequence
    return Beginning(tuple(stocks), before)


def ended(plan: LoadPlan, beginning: Beginning, result: LoadResult, limits: Mapping[str, int] | None = None) -> History:
    """Looks up every stock once more, and makes the history of a run that has ended. ``limits`` has the known volume
    limits, by stock.

    Blocks for at most one timeout for each stock.
    """
    assert result.kept is not None
    operations = [*result.kept.operations]
    with suppress(Fault):  # if the server is gone, the replies so far remain
        operations += _looked_up(plan)
    known = limits or {}
    stocks = [
        Stock(
            stock.name,
            stock.price_cents,
            known[stock.name] if stock.name in known else limit_told(stock.name, operations),
            stock.volume,
        )
        for stock in beginning.stocks
    ]
    return History(tuple(stocks), beginning.before, operations)


def _looked_up(plan: LoadPlan) -> list[Operation]:
    """Looks up every stock, one after another. Returns one ``Operation`` for each Lookup."""
    with closing(connecting(plan)(plan.timeout_s)) as connection:
        exchange = RemoteExchange(connection, plan.timeout_s)
        return [_timed(exchange.lookup, name) for name in dict.fromkeys(plan.stocks)]


def _timed(lookup: Callable[[str], LookupReply], name: str) -> Operation:
    called_ns = perf_counter_ns()
    reply = lookup(name)
    return Operation(Lookup(name), reply, called_ns, perf_counter_ns())
