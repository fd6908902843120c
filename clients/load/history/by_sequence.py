"""Check that a history is linearizable, in the order of the commit numbers.

The sequential specification is ``trading/rules.py``. Every commit has a number, so the check needs no search. The check
has four rules:

1. Commits are numbered without gaps, from 1 in a new catalog. A replay of the commits in this order must give, for each
   commit, the reply that the client got.
2. The reply to a Lookup names a commit, and must show the stock's state after this commit. A refusal because of the
   volume limit names the stock's volume at the time of the refusal. So each Lookup and each refusal has an interval of
   possible places in the order.
3. Real time: if operation A ended before operation B began, A stands before B. One sweep over all calls and returns, in
   the order of time, tests if such an order exists. When an operation is called, some possible place of the operation
   must come after the earliest possible places of all ended operations.
4. All uses of a request id count as one operation (``retries.py``).

Sorting the operations takes most of the check's time; the sweep takes linear time. So a history may be long. Left out:
operations with an unknown outcome, since no reply has their commit numbers. ``search.py`` judges these operations.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clients.load.history.operations import Lookup, Operation, Untold, is_commit
from clients.load.history.retries import one_for_each_id
from clients.load.history.sequential import refusal_of, sequentially
from stock_service.trading.model import Status, Stock, TradeReply


@dataclass(frozen=True, slots=True)
class _Placed:
    """An operation, with its possible places in the order of commits: after commit ``low`` and before commit ``high``.

    ``low`` of a commit is the commit's own number.
    """

    operation: Operation
    low: int
    high: float


class _Past:
    """States of one stock over time: the first state, and the state after each commit to the stock, with the commit's
    number."""

    def __init__(self, stock: Stock, sequence: int) -> None:
        self.sequences = [sequence]
        self.stocks = [stock]
        self.volumes = [stock.volume]

    def add(self, sequence: int, stock: Stock) -> None:
        self.sequences.append(sequence)
        self.stocks.append(stock)
        self.volumes.append(stock.volume)

    def until(self, index: int) -> float:
        """Number of the commit at ``index`` in the stock's list of commits; infinity for an index past the end."""
        return self.sequences[index] if index < len(self.sequences) else float("inf")


def violations(
    stocks: Iterable[Stock], operations: Iterable[Operation], before: Mapping[str, int] | None = None
) -> list[str]:
    """Faults of a history that began with the stocks ``stocks``. The list is empty for a linearizable history. Raises
    ValueError if an operation has an unknown outcome.

    ``before``: as in ``History``.
    """
    initial = {stock.name: stock for stock in stocks}
    asked, found = one_for_each_id(operations)
    for operation in asked:
        if isinstance(operation.reply, Untold):
            raise ValueError(f"{operation.request}: it is unknown how it ended")
    commits = sorted((each for each in asked if is_commit(each.reply)), key=lambda each: each.sequence)
    numbers = [commit.sequence for commit in commits]
    last = max(before.values(), default=0) if before else 0
    if before and numbers and numbers[0] > last:
        last = numbers[0] - 1  # earlier commits may belong to stocks that this history lacks
    if numbers != list(range(last + 1, last + 1 + len(commits))):
        strange = next((n for n, number in enumerate(numbers, start=last + 1) if n != number), last + len(numbers))
        return [*found, f"commit {strange} is missing or there twice"]
    pasts = {name: _Past(stock, (before or {}).get(name, 0)) for name, stock in initial.items()}
    placed: list[_Placed] = []
    for commit in commits:
        sequence = commit.sequence
        problem = _replay(pasts, commit)
        if problem:
            return [*found, f"commit {sequence}: {problem}"]
        placed.append(_Placed(commit, sequence, sequence))
    for operation in asked:
        if not is_commit(operation.reply):
            place = _place(pasts, operation)
            if isinstance(place, str):
                found.append(place)
            elif place is not None:
                placed.append(place)
    return found or _out_of_order(placed)


def _replay(pasts: dict[str, _Past], commit: Operation) -> str:
    """Applies a commit to the commit's stock. Returns a fault in words if the reply to the client differs from the
    reply by the rules. Returns an empty text for a correct reply."""
    request, sequence = commit.request, commit.sequence
    past = pasts.get(request.name)
    refusal = refusal_of(request)
    if past is None or refusal is not None:
        return f"{request} can change nothing"
    stock, expected = sequentially(past.stocks[-1], request, sequence)
    past.add(sequence, stock)
    return "" if commit.reply == expected else f"{request}: {commit.reply}, expected {expected}"


def _place(pasts: dict[str, _Past], operation: Operation) -> _Placed | str | None:
    """Possible places of a request that changed nothing. Returns None if every place is possible, and a text with the
    reason if no place is possible."""
    request, reply = operation.request, operation.reply
    assert not isinstance(reply, Untold)
    past = pasts.get(request.name)
    refusal = Status.UNKNOWN_STOCK if past is None else refusal_of(request)
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
    _, expected = sequentially(past.stocks[index], request, reply.sequence)
    if reply != expected:
        return f"{request}: {reply}, expected {expected}"
    return _Placed(operation, past.sequences[index], past.until(after))


def _out_of_order(placed: Sequence[_Placed]) -> list[str]:
    """A line for each operation B that breaks the order of real time. An operation A had ended before B began, but
    every possible place of B comes before the earliest possible place of A."""
    calls = [(p.operation.called_ns, 0, number) for number, p in enumerate(placed)]
    returns = [(p.operation.returned_ns, 1, number) for number, p in enumerate(placed)]
    found: list[str] = []
    floor = 0  # highest of the earliest places of all ended operations
    for _, has_ended, number in sorted(calls + returns):  # a call and a return at one moment overlap
        one = placed[number]
        if has_ended:
            floor = max(floor, one.low)
        elif floor >= one.high:
            found.append(f"{one.operation.request}: {one.operation.reply}, but commit {floor} had been seen before")
    return found
