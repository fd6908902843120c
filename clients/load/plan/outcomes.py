"""Outcomes of a request. An outcome is one byte: the sum of an offset and a number. The **offset** is 32 × the index
of the request type in the mix. The number says how the request ended:

- 1 to 6: a valid reply came; the number is the reply's status;
- 16: the request was due, and was not sent before the run ended;
- 17: the call ended in the fault UNAUTHENTICATED;
- 19 to 30: the call ended in another fault; the number is 16 plus the fault's code (3 to 14);
- 31: the reply was invalid.
"""

from collections.abc import Iterator

from stock_service.rpc.errors import DeadlineExceeded, Fault, FaultCode
from stock_service.trading.model import Status

TYPE_STEP = 32
"""Distance between the offsets of two neighbouring request types."""

FAULT_FIRST = 16
"""Smallest outcome number of a request without a valid reply. Smaller numbers are statuses."""

NEVER_SENT = FAULT_FIRST
"""Outcome number of a request that was due and never sent: no connection was free before the run ended. No fault has
this number, since no fault has the code 0.
"""

INVALID_REPLY = 31
"""Outcome number of a request with an invalid reply."""

OUTCOMES = 256
"""Number of values that an outcome can have."""

_CODES = 15
"""Divisor of a fault's code. The outcome number of a fault is ``FAULT_FIRST`` plus the remainder. The remainder is the
code itself, except for UNAUTHENTICATED: the code 16 has the remainder 1. No fault has the code 1.
"""

ERROR_KINDS: dict[int, str] = {
    **{FAULT_FIRST + code % _CODES: code.name.lower() for code in FaultCode},
    NEVER_SENT: "never_sent",
    INVALID_REPLY: "invalid_reply",
}
"""Name of each error, by the error's outcome number."""

STATUS_NAMES: dict[int, str] = {int(status): status.name for status in Status}


def fault_outcome(fault: Fault) -> int:
    """Outcome number of a request that ended in this fault. The outcome is the sum of this number and the request
    type's offset.
    """
    return FAULT_FIRST + fault.code % _CODES


LATE = fault_outcome(DeadlineExceeded("no reply in time"))
"""Outcome number of a request that timed out. The reply may have come later."""


def by_name(counts: list[int], first: int, names: dict[int, str]) -> Iterator[tuple[str, int]]:
    """Yields the name and the count of each outcome that occurred, for one request type. ``counts`` has a count for
    each value of an outcome. ``first`` is the type's offset. ``names`` maps outcome numbers to names. Outcomes without
    a name are left out.
    """
    for number, name in names.items():
        if counts[first + number]:
            yield name, counts[first + number]
