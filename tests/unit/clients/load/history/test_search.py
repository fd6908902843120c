"""The search for an order: it agrees with trying every order and every unknown outcome, and names what is wrong."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.load.history.operations import NEVER_NS, Lookup, Operation, Reply, Request, Trade, Untold, Update
from clients.load.history.search import unexplained
from stock_service.trading import rules
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply, UpdateReply

STOCK = Stock("A", 5, 4)
OK = Status.OK

REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.just(Lookup("A")),
    st.builds(Trade, st.just("A"), st.integers(0, 3)),
    st.builds(Update, st.just("A"), st.integers(-1, 2)),
)


def explained(history: Sequence[Operation]) -> bool:
    """Whether some order of those known to have ended, and of some of the others, gives every reply."""
    ended = [operation for operation in history if operation.returned_ns < NEVER_NS]
    others = [operation for operation in history if operation.returned_ns == NEVER_NS]
    chosen = itertools.chain.from_iterable(itertools.combinations(others, count) for count in range(len(others) + 1))
    return any(
        all(later.returned_ns >= earlier.called_ns for earlier, later in itertools.combinations(order, 2))
        and _explains(order)
        for some in chosen
        for order in itertools.permutations([*ended, *some])
    )


def _explains(order: Sequence[Operation]) -> bool:
    """Whether one after the other gives these replies, with some rising numbers for the commits."""
    return any(_replies(order, numbers) for numbers in itertools.combinations(range(1, 10), _commits(order)))


def _commits(order: Sequence[Operation]) -> int:
    return sum(1 for _ in _stocks(order))


def _stocks(order: Sequence[Operation]) -> Iterator[Stock]:
    """What each commit makes of the stock."""
    stock = STOCK
    for operation in order:
        after = _stepped(stock, operation.request)
        if after is not stock:
            yield (stock := after)


def _stepped(stock: Stock, request: Request) -> Stock:
    if isinstance(request, Trade) and rules.trade_refusal(request.quantity, request.side) is None:
        return rules.trade(stock, request.quantity)[0]
    if isinstance(request, Update) and rules.update_refusal(request.price_cents) is None:
        return rules.update(stock, request.price_cents)[0]
    return stock


def _replies(order: Sequence[Operation], numbers: Sequence[int]) -> bool:
    stock, last, rest = STOCK, 0, iter(numbers)
    for operation in order:
        request = operation.request
        after = _stepped(stock, request)
        number = next(rest) if after is not stock else 0
        stock, last = after, number or last
        if operation.reply not in (Untold.UNKNOWN, _reply(request, stock, number, last)):
            return False
    return True


def _reply(request: Request, stock: Stock, number: int, last: int) -> Reply:
    """What a request is told; ``stock`` is what stands behind it."""
    if isinstance(request, Lookup):
        return LookupReply(rules.lookup_status(stock), stock.price_cents, stock.volume, last)
    if isinstance(request, Trade):
        refusal = rules.trade_refusal(request.quantity, request.side)
        if refusal is not None:
            return TradeReply(refusal)
        return TradeReply(OK if number else Status.SUSPENDED, stock.volume, number)
    return UpdateReply(rules.update_refusal(request.price_cents) or OK, number)


def _another(reply: Reply, number: int) -> Reply:
    """A reply with one number changed."""
    if number % 2 and isinstance(reply, LookupReply | TradeReply):
        return replace(reply, volume=number)
    return replace(reply, sequence=number)


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to four operations: replies of one order with gaps in its numbers, times of their own, and then some unknown
    outcomes, and sometimes a reply out of place."""
    requests = draw(st.lists(REQUESTS, min_size=1, max_size=4))
    stock, last, operations = STOCK, 0, list[Operation]()
    for place, request in enumerate(requests):
        after = _stepped(stock, request)
        number = last + draw(st.integers(1, 2)) if after is not stock else 0
        stock, last = after, number or last
        called_ns = draw(st.integers(10 * place - 15, 10 * place))
        returned_ns = draw(st.integers(called_ns, 10 * place + 15))
        operations.append(Operation(request, _reply(request, stock, number, last), called_ns, returned_ns))
    for place, operation in enumerate(operations):
        match draw(st.integers(0, 9)):
            case 0 | 1 | 2:
                operations[place] = replace(operation, reply=Untold.UNKNOWN, returned_ns=NEVER_NS)
            case 3 if not isinstance(operation.request, Lookup):
                operations[place] = replace(operation, reply=Untold.UNKNOWN)
            case 4:
                assert not isinstance(operation.reply, Untold)
                operations[place] = replace(operation, reply=_another(operation.reply, draw(st.integers(0, 4))))
            case 5 if len(operations) > 1:
                operations[place] = replace(operation, called_ns=50, returned_ns=60)
            case _:
                pass
    return operations


@pytest.mark.slow
@settings(max_examples=200)
@given(histories())
def test_it_agrees_with_trying_every_order(history: list[Operation]) -> None:
    """A history has an explanation exactly if some order of its operations is one."""
    assert (not unexplained([STOCK], history)) == explained(history)
