"""Whether a history is linearizable, in the order that its own sequence numbers give.

The sequential specification is ``trading/rules.py``, the very functions that the catalogs make atomic. Commits carry
their number, so that nothing is searched for:

1. Commits are numbered 1 to n without gaps, and replayed in that order every one gets the reply that it got.
2. A Lookup shows its stock as it stood after the commit that it names. A refusal for lack of room names a volume at
   which there was no room. So each of them may stand in an interval of places in the order.
3. Real time: what ended before something began stands before it. One sweep over all calls and returns finds whether
   such places exist. At a call, its place must come after the earliest possible place of all that ended.
4. All uses of a request id got one reply, and count as one operation, in effect before the first of them returned.

Time is that of sorting; the sweep itself is linear. ``test_check`` compares with trying every order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from stock_service.trading import rules
from stock_service.trading.model import LookupReply, Status, Stock, TradeReply, UpdateReply
from tests.races.history import Lookup, Operation, Reply, Request, Trade, Update, is_commit


@dataclass(frozen=True, slots=True)
class _Placed:
    """An operation, and the places it may have: after commit ``low`` and before commit ``high``.

    A commit's own number is its ``low``.
    """

    operation: Operation
    low: int
    high: float
    is_commit: bool


class _Past:
    """One stock's past: the stock after each of its commits, by number; 0 is the start."""

    def __init__(self, stock: Stock) -> None:
        self.sequences = [0]
        self.stocks = [stock]
        self.volumes = [stock.volume]

    def add(self, sequence: int, stock: Stock) -> None:
        self.sequences.append(sequence)
        self.stocks.append(stock)
        self.volumes.append(stock.volume)

    def until(self, index: int) -> float:
        """The number of the commit at an index, or infinity behind the last."""
        return self.sequences[index] if index < len(self.sequences) else float("inf")


def violations(stocks: Iterable[Stock], operations: Sequence[Operation]) -> list[str]:
    """What is wrong with a history that began with these stocks; empty where it is legal."""
    initial = {stock.name: stock for stock in stocks}
    found: list[str] = []
    asked = _one_for_each_id(operations, found)
    commits = sorted((o for o in asked if is_commit(o)), key=lambda o: o.reply.sequence)
    numbers = [commit.reply.sequence for commit in commits]
    if numbers != list(range(1, len(commits) + 1)):
        strange = next((n for n, number in enumerate(numbers, start=1) if n != number), len(numbers))
        return [*found, f"commit {strange} is missing or there twice"]
    pasts = {name: _Past(stock) for name, stock in initial.items()}
    placed: list[_Placed] = []
    for commit in commits:
        sequence = commit.reply.sequence
        problem = _replay(pasts, commit)
        if problem:
            return [*found, f"commit {sequence}: {problem}"]
        placed.append(_Placed(commit, sequence, sequence, is_commit=True))
    for operation in asked:
        if not is_commit(operation):
            place = _place(pasts, operation)
            if isinstance(place, str):
                found.append(place)
            elif place is not None:
                placed.append(place)
    return found or _out_of_order(placed)


def _one_for_each_id(operations: Sequence[Operation], found: list[str]) -> list[Operation]:
    """All uses of a request id as one operation; notes ids that got several replies."""
    first_uses: dict[str, Operation] = {}
    others: list[Operation] = []
    for operation in operations:
        request = operation.request
        if not isinstance(request, Trade) or not request.request_id:
            others.append(operation)
            continue
        first = first_uses.setdefault(request.request_id, operation)
        if operation.reply != first.reply:
            found.append(f"{request.request_id}: both {first.reply} and {operation.reply}")
        first_uses[request.request_id] = replace(
            first,
            called_ns=min(first.called_ns, operation.called_ns),
            returned_ns=min(first.returned_ns, operation.returned_ns),
        )
    return [*others, *first_uses.values()]


def _replay(pasts: dict[str, _Past], commit: Operation) -> str:
    """Applies a commit to its stock; what is wrong with its reply, or nothing."""
    request, sequence = commit.request, commit.reply.sequence
    past = pasts.get(request.name)
    refusal = _refusal(request)
    if past is None or refusal is not None:
        return f"{request} can change nothing"
    stock, expected = _sequentially(past.stocks[-1], request, sequence)
    past.add(sequence, stock)
    return "" if commit.reply == expected else f"{request}: {commit.reply}, expected {expected}"


def _sequentially(stock: Stock, request: Request, sequence: int) -> tuple[Stock, Reply]:
    """A valid request on a stock by the pure rules, as the commit of this number."""
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


def _refusal(request: Request) -> Status | None:
    """Why a request is refused whatever the stock, or None."""
    match request:
        case Lookup():
            return None
        case Trade():
            return rules.trade_refusal(request.quantity, request.side)
        case Update():
            return rules.update_refusal(request.price_cents)
        case _:
            assert_never(request)


def _place(pasts: dict[str, _Past], operation: Operation) -> _Placed | str | None:
    """Where a request that committed nothing may stand; None for anywhere; in words where it can stand nowhere."""
    request, reply = operation.request, operation.reply
    past = pasts.get(request.name)
    refusal = Status.UNKNOWN_STOCK if past is None else _refusal(request)
    if past is None or refusal is not None:
        return None if reply == type(reply)(refusal or Status.OK) else f"{request}: {reply}, expected {refusal}"
    if isinstance(request, Lookup):
        index = bisect_right(past.sequences, reply.sequence) - 1
        after = index + 1
        if past.sequences[index] != reply.sequence:
            return f"{request}: {reply}, but commit {reply.sequence} is none of that stock"
    elif isinstance(reply, TradeReply):
        index = bisect_left(past.volumes, reply.volume)
        after = bisect_right(past.volumes, reply.volume)
        if index == after:
            return f"{request}: {reply}, a volume that never was"
    else:
        return f"{request}: {reply}, not committed"
    _, expected = _sequentially(past.stocks[index], request, reply.sequence)
    if reply != expected:
        return f"{request}: {reply}, expected {expected}"
    return _Placed(operation, past.sequences[index], past.until(after), is_commit=False)


def _out_of_order(placed: Sequence[_Placed]) -> list[str]:
    """Operations that stand, wherever they may, before one that ended before they began."""
    calls = [(p.operation.called_ns, 0, number) for number, p in enumerate(placed)]
    returns = [(p.operation.returned_ns, 1, number) for number, p in enumerate(placed)]
    found: list[str] = []
    floor = 0  # the place that the latest of all that ended has at least
    for _, has_ended, number in sorted(calls + returns):  # a call and a return at the same time overlap
        one = placed[number]
        if has_ended:
            floor = max(floor, one.low)
        elif floor >= one.high:
            found.append(f"{one.operation.request}: {one.operation.reply}, but commit {floor} had been seen before")
    return found
