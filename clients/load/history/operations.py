"""Histories: requests to a stock service, their replies, and the moments between which each took effect.

Times are nanoseconds of one clock for all clients. An outcome may be unknown: the request was sent, and its reply never
came. A request with an unknown outcome may have had its effect at any moment after its send, or never.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from stock_service.trading.model import LookupReply, Side, Stock, TradeReply, UpdateReply

NEVER_NS = 2**62
"""Moment of return of a request without a reply."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Request for a stock's state."""

    name: str


@dataclass(frozen=True, slots=True)
class Trade:
    """Request for a trade."""

    name: str
    quantity: int
    side: int = Side.BUY
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Request for a new price."""

    name: str
    price_cents: int


class Untold(Enum):
    """Outcome in the place of a reply."""

    UNKNOWN = "unknown"
    """No reply came, or a fault came that does not tell if the request had an effect."""
    REFUSED = "refused"
    """The request_id was used for another trade, which therefore has had its effect. This trade has none."""


Request = Lookup | Trade | Update
Reply = LookupReply | TradeReply | UpdateReply


@dataclass(frozen=True, slots=True)
class Operation:
    """A request, its reply, and the moments between which it took effect."""

    request: Request
    reply: Reply | Untold
    called_ns: int
    returned_ns: int
    """Moment of return; ``NEVER_NS`` where the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class History:
    """Operations, and the state before them: the values that a judge needs."""

    stocks: tuple[Stock, ...]
    """Stocks in their first states, with their limits."""
    before: Mapping[str, int] | None
    """Number of each stock's last commit at first; None for a new catalog, which has no other stocks."""
    operations: Sequence[Operation]


class Kept:
    """Operations of a load run. This class is not a dataclass, since msgspec would convert a dataclass's fields, and
    cannot convert the union of requests."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations


class HasReply(Protocol):
    """Protocol of the values that ``is_commit`` reads."""

    @property
    def reply(self) -> Reply | Untold:
        """See ``Operation.reply``."""


def is_commit(operation: HasReply) -> bool:
    """True where an operation is known to have changed its stock."""
    reply = operation.reply
    return not isinstance(reply, LookupReply | Untold) and reply.sequence > 0


def contended(operations: Sequence[Operation]) -> float:
    """The share of operations that overlap a conflicting operation: both use the same stock, and one of the two is a
    commit.

    A history with a low share shows little: its operations followed one another. Operations with an unknown outcome do
    not count, since they would overlap all later operations. Many operations with an unknown outcome lower the share.
    All uses of a request id should be one operation here (``retries.py``). The share of an empty history is 0.
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
            count += beside.overlapping(operation) > (beside is every)  # an operation overlaps itself
    return count / len(operations) if operations else 0.0


class _Spans:
    """Moments at which operations began and ended."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        spans = [(operation.called_ns, operation.returned_ns) for operation in operations]
        self._called = sorted(called_ns for called_ns, _ in spans)
        self._returned = sorted(returned_ns for _, returned_ns in spans)

    def overlapping(self, operation: Operation) -> int:
        """Number of these operations that overlap another operation. Two operations that touch overlap."""
        begun = bisect_right(self._called, operation.returned_ns)
        return begun - bisect_left(self._returned, operation.called_ns)
