"""Verdict on a history. A history is linearizable if a sequential order of the requests agrees with their real times
and gives the observed replies.

A history without unknown outcomes is judged twice, independently, by ``by_sequence.py`` and by ``search.py``. A history
with unknown outcomes is judged by the search alone. If too few conflicting requests overlap, the history proves
nothing, and is refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from clients.load.history.by_sequence import violations
from clients.load.history.operations import History, Operation, Untold, contended
from clients.load.history.retries import one_for_each_id
from clients.load.history.search import Undecided, unexplained
from stock_service.trading.model import INT64_MAX, LookupReply, Status, TradeReply

CONTENDED_MIN = 0.3
"""Smallest share of requests that must overlap a conflicting request. Below this share the history proves nothing, and
is refused."""

Finding = Literal["linearizable", "not linearizable", "vacuous", "not decided"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Finding of a check, with the number of checked requests and further counts."""

    finding: Finding
    requests: int
    contended: float
    """Share of requests that overlapped a conflicting request, from 0 to 1."""
    unknown: int
    """Number of requests whose outcome is unknown."""
    faults: tuple[str, ...]
    """Faults of the history, or the reason why the check has no finding."""


def judged(history: History) -> Verdict:
    """Checks a history, and gives the verdict. The check takes some 30 µs and half a kilobyte of memory for each
    request."""
    operations = history.operations
    unknown = sum(operation.reply is Untold.UNKNOWN for operation in operations)
    share = contended(one_for_each_id(operations)[0])  # otherwise retries of a trade would count as conflicts
    finding: Finding = "linearizable"
    faults: list[str] = []
    try:
        faults = unexplained(history.stocks, operations, history.before)
        if not unknown:
            faults += violations(history.stocks, operations, history.before)
        if faults:
            finding = "not linearizable"
        elif share < CONTENDED_MIN:
            finding = "vacuous"
            faults = [f"{share:.0%} overlapped a conflicting request, {CONTENDED_MIN:.0%} are needed"]
    except Undecided as error:
        finding, faults = "not decided", [str(error)]
    return Verdict(finding, len(operations), share, unknown, tuple(faults))


def limit_told(name: str, operations: Iterable[Operation]) -> int:
    """Largest volume limit of the stock with which all SUSPENDED replies are possible; ``INT64_MAX`` without such a
    reply."""
    limit = INT64_MAX
    for operation in operations:
        request, reply = operation.request, operation.reply
        if request.name == name and not isinstance(reply, Untold) and reply.status is Status.SUSPENDED:
            if isinstance(reply, LookupReply):
                return reply.volume
            assert isinstance(reply, TradeReply)
            limit = min(limit, reply.volume + getattr(request, "quantity", 1) - 1)
    return limit
