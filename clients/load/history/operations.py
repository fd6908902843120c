"""Histories: what was asked of a stock service, what was told, and between which moments it took effect.

Times are nanoseconds of one clock for all who asked. An outcome may be unknown: the request was sent, and its reply
never came. It may then have had its effect at any moment after it was sent, or never.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from stock_service.trading.model import LookupReply, Side, Stock, TradeReply, UpdateReply

NEVER_NS = 2**62
"""When a request returned of which nothing was heard."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Asks what a stock stands at."""

    name: str


@dataclass(frozen=True, slots=True)
class Trade:
    """Asks for a trade."""

    name: str
    quantity: int
    side: int = Side.BUY
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Asks for a new price."""

    name: str
    price_cents: int


class Untold(Enum):
    """In place of a reply."""

    UNKNOWN = "unknown"
    """Nothing was heard, or something that does not say whether the request had an effect."""
    REFUSED = "refused"
    """The request_id was used for another trade, which so has had its effect; this one has none."""


Request = Lookup | Trade | Update
Reply = LookupReply | TradeReply | UpdateReply


@dataclass(frozen=True, slots=True)
class Operation:
    """A request, its reply, and between which moments it took effect."""

    request: Request
    reply: Reply | Untold
    called_ns: int
    returned_ns: int
    """``NEVER_NS`` where the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class History:
    """Operations, and what they began with: all that is needed to judge them."""

    stocks: tuple[Stock, ...]
    """As they stood at first, with their limits."""
    before: Mapping[str, int] | None
    """The number of each stock's last commit at first; None: the catalog was new, and has no other stocks."""
    operations: Sequence[Operation]


class Kept:
    """The operations of a load run. No dataclass, since msgspec would look into one, and knows no union of requests."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations


class HasReply(Protocol):
    """Protocol of the values that ``is_commit`` reads."""

    @property
    def reply(self) -> Reply | Untold:
        """As ``Operation.reply``."""


def is_commit(operation: HasReply) -> bool:
    """True where an operation is known to have changed its stock."""
    reply = operation.reply
    return not isinstance(reply, LookupReply | Untold) and reply.sequence > 0


def contended(operations: Sequence[Operation]) -> float:
    """The share of operations that overlap another on the same stock, one of the two a commit.

    A history where this is low says little: its operations followed one another. Those whose outcome is unknown overlap
    whatever came after them, so they are not said to: a history with many of them is low too. All uses of a request id
    should be one operation here (``retries.py``). 0 where there are none.
    """
    told = [operation for operation in operations if not isinstance(operation.reply, Untold)]
    by_stock: dict[str, list[Operation]] = {}
    for operation in told:
        by_stock.setdefault(operation.request.name, []).append(operation)
    count = 0
    for history in by_stock.values():
        every, commits = _Spans(history), _Spans(filter(is_commit, history))
        for operation in history:
            beside = every if is_commit(operation) else commits
            count += beside.overlapping(operation) > (beside is every)  # it overlaps itself
    return count / len(operations) if operations else 0.0


class _Spans:
    """When operations began and ended."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        spans = [(operation.called_ns, operation.returned_ns) for operation in operations]
        self._called = sorted(called_ns for called_ns, _ in spans)
        self._returned = sorted(returned_ns for _, returned_ns in spans)

    def overlapping(self, operation: Operation) -> int:
        """Number of these operations that overlap an operation; those that touch it do."""
        begun = bisect_right(self._called, operation.returned_ns)
        return begun - bisect_left(self._returned, operation.called_ns)
