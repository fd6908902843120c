"""Histories: lists of the requests to a stock service, with the reply and the times of each request.

Times are nanoseconds of one clock for all clients. An outcome may be unknown: the request was sent, and no reply came.
Such a request may have taken effect at any moment after the send, or never.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from stock_service.trading.model import LookupReply, Side, Stock, TradeReply, UpdateReply

NEVER_NS = 2**62
"""Value of ``returned_ns`` for a request without a reply, later than any real moment."""


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
    """Outcome of an operation without a reply that tells the effect on the stock."""

    UNKNOWN = "unknown"
    """No reply came, or a fault came that does not tell if the request had an effect."""
    REFUSED = "refused"
    """The request_id was already used for another trade. So the other trade has taken effect, and this trade has not.
    """


Request = Lookup | Trade | Update
Reply = LookupReply | TradeReply | UpdateReply


@dataclass(frozen=True, slots=True)
class Operation:
    """A request, its reply, and two moments. The request took effect between the two moments."""

    request: Request
    reply: Reply | Untold
    called_ns: int
    returned_ns: int
    """Moment of the reply; ``NEVER_NS`` if the outcome is unknown."""

    @property
    def sequence(self) -> int:
        """Number of a commit in the reply; 0 if the outcome is unknown."""
        return 0 if isinstance(self.reply, Untold) else self.reply.sequence


@dataclass(frozen=True, slots=True)
class History:
    """Operations of clients, and the state of the stocks before the first operation."""

    stocks: tuple[Stock, ...]
    """Stocks in the state before the first operation, with their volume limits."""
    before: Mapping[str, int] | None
    """Number of each stock's last commit before the first operation. None for a new catalog that has only the stocks
    ``stocks`` and no commits: each number then counts as 0.
    """
    operations: Sequence[Operation]


class Kept:
    """Holder of the operations of one load run. Not a dataclass, because msgspec would convert a dataclass's fields,
    and cannot convert the union of requests."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations


def is_commit(reply: Reply | Untold) -> bool:
    """True if a reply shows that the operation changed the stock."""
    return not isinstance(reply, LookupReply | Untold) and reply.sequence > 0


def contended(operations: Sequence[Operation]) -> float:
    """The share of operations that overlap a conflicting operation, from 0 to 1. Two operations conflict if both use
    one stock, and at least one of them is a commit.

    A history with a low share is a weak test of the server, because most operations ran one after another. An operation
    with an unknown outcome counts as not overlapping, because such an operation would overlap all later operations. The
    caller first merges all uses of a request id into one operation (``retries.py``). The share of an empty history is
    0.
    """
    told = [operation for operation in operations if not isinstance(operation.reply, Untold)]
    by_stock: dict[str, list[Operation]] = {}
    for operation in told:
        by_stock.setdefault(operation.request.name, []).append(operation)
    count = 0
    for history in by_stock.values():
        every, commits = _Spans(history), _Spans(each for each in history if is_commit(each.reply))
        for operation in history:
            beside = every if is_commit(operation.reply) else commits
            count += beside.overlapping(operation) > (beside is every)  # an operation overlaps itself
    return count / len(operations) if operations else 0.0


class _Spans:
    """Sorted times at which operations began and ended. Used to count overlaps."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        spans = [(operation.called_ns, operation.returned_ns) for operation in operations]
        self._called = sorted(called_ns for called_ns, _ in spans)
        self._returned = sorted(returned_ns for _, returned_ns in spans)

    def overlapping(self, operation: Operation) -> int:
        """Number of operations in this object that overlap the given operation. Two operations also overlap if one
        operation ends at the moment at which the other operation begins."""
        begun = bisect_right(self._called, operation.returned_ns)
        return begun - bisect_left(self._returned, operation.called_ns)
