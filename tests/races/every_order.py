"""Small random histories of one stock, and their verdicts: every order and every unknown outcome is tried. Checkers of
histories are compared with it. It shares only the rules of trading with them."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from clients.load.history.operations import NEVER_NS, Lookup, Operation, Reply, Request, Trade, Untold, Update
from stock_service.trading import rules
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply, UpdateReply

STOCK = Stock("A", 5, 4)
"""What every history begins with."""

OPERATIONS_MAX = 4

OK = Status.OK


def explained(history: Sequence[Operation]) -> bool:
    """True where an order of the ended requests, with some of the others, gives every reply."""
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
    """Tell whether these requests in turn give these replies, with some rising numbers for the commits."""
    return any(
        _replies(order, numbers)
        for numbers in itertools.combinations(range(1, 2 * OPERATIONS_MAX + 2), _commits(order))
    )


def _commits(order: Sequence[Operation]) -> int:
    return sum(1 for _ in _stocks(order))


def _stocks(order: Sequence[Operation]) -> Iterator[Stock]:
    """The stock behind each commit."""
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
    """The reply to a request; ``stock`` is the one behind it."""
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
        return reply._replace(volume=number)
    return reply._replace(sequence=number)


def drawn(rng: random.Random) -> list[Operation]:
    """Replies of one order with gaps in its numbers, times of their own; then some outcomes unknown, and sometimes a
    reply or a time out of place."""
    stock, last, operations = STOCK, 0, list[Operation]()
    for place in range(rng.randint(1, OPERATIONS_MAX)):
        request = _request(rng)
        after = _stepped(stock, request)
        number = last + rng.randint(1, 2) if after is not stock else 0
        stock, last = after, number or last
        called_ns = 10 * place - rng.randint(0, 15)
        returned_ns = rng.randint(called_ns, 10 * place + 15)
        one = Operation(request, _reply(request, stock, number, last), called_ns, returned_ns)
        operations.append(_disturbed(one, rng))
    return operations


def _request(rng: random.Random) -> Request:
    kinds = (Lookup("A"), Trade("A", rng.randint(0, 3)), Trade("A", rng.randint(1, 2)), Update("A", rng.randint(-1, 2)))
    return rng.choice(kinds)


def _disturbed(operation: Operation, rng: random.Random) -> Operation:
    reply = operation.reply
    assert not isinstance(reply, Untold)
    match rng.randrange(12):
        case 0 | 1 | 2:
            return replace(operation, reply=Untold.UNKNOWN, returned_ns=NEVER_NS)
        case 3 if not isinstance(operation.request, Lookup):
            return replace(operation, reply=Untold.UNKNOWN)
        case 4:
            return replace(operation, reply=_another(reply, rng.randint(0, 4)))
        case 5:
            return replace(operation, called_ns=50, returned_ns=60)
        case _:
            return operation
