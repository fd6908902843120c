"""Outcomes of a request, each as one byte. The byte is the request type's place in the mix × 32, plus a number:

- 1 to 6: the status of a valid reply;
- 16: the request was due and was not sent before the run ended;
- 16 and the fault's code, 3 to 14: the call ended in a fault;
- 31: the reply was invalid.
"""

from collections.abc import Iterator

from stock_service.rpc.errors import DeadlineExceeded, Fault, FaultCode
from stock_service.trading.model import Status

TYPE_STEP = 32
"""Distance between the outcomes of two request types."""

FAULT_FIRST = 16
"""First outcome that is a fault. Smaller numbers are statuses."""

NEVER_SENT = FAULT_FIRST
"""Outcome of a request that was due and never sent, since no connection had room before the run ended. No fault has the
code 0."""

INVALID_REPLY = 31
"""Outcome of an invalid reply."""

OUTCOMES = 256
"""Number of different outcomes."""

_CODES = 15
"""Number of codes with a separate outcome. UNAUTHENTICATED, 16, has the outcome of code 1. No fault has the code 1."""

ERROR_KINDS: dict[int, str] = {
    **{FAULT_FIRST + code % _CODES: code.name.lower() for code in FaultCode},
    NEVER_SENT: "never_sent",
    INVALID_REPLY: "invalid_reply",
}
"""Name of every outcome that is an error."""

STATUS_NAMES: dict[int, str] = {int(status): status.name for status in Status}


def fault_outcome(fault: Fault) -> int:
    """Outcome of a call that ended in a fault, for the first request type."""
    return FAULT_FIRST + fault.code % _CODES


LATE = fault_outcome(DeadlineExceeded("no reply in time"))
"""Outcome of a request that timed out, for the first request type. The reply may have come later."""


def by_name(counts: list[int], first: int, names: dict[int, str]) -> Iterator[tuple[str, int]]:
    """Count of each outcome of one request type that occurred, by name. ``names`` has the outcomes that count.
    ``first`` is the number of the type's first outcome."""
    for number, name in names.items():
        if counts[first + number]:
            yield name, counts[first + number]
