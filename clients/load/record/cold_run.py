"""Times of one cold run: the connecting, the first call, and the later calls."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColdRun:
    """Times of one cold run: successive calls of a fresh process on a fresh connection. Times are in nanoseconds."""

    connect_ns: int
    """Time of making the connection. On some transports the client does not wait for the server while connecting. On
    these transports the first call's time includes the rest of the connecting.
    """
    first_ns: int | None
    """Response time of the first call; None for a first call that ended in an error."""
    rest_ns: int
    """Sum of the response times of the answered calls after the first call."""
    rest: int
    """Number of answered calls after the first call."""
    outcomes: Mapping[str, int]
    """Number of answered calls by ``Status`` name. The first call is included."""
    errors: Mapping[str, int]
    """Number of calls without a valid reply, by kind of error. No time in this object includes these calls."""
