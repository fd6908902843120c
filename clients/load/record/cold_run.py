"""Times of one cold run: connecting, the first call, and the calls after it, each apart."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColdRun:
    """Calls of a fresh process on a fresh connection, in sequence. Times are in nanoseconds."""

    connect_ns: int
    """Time of making the connection. Some transports do not wait for a reply then, so that the first call pays the
    rest."""
    first_ns: int | None
    """Response time of the first call; None where it ended in an error."""
    rest_ns: int
    """Sum of the response times of the later answered calls."""
    rest: int
    """Number of these calls."""
    outcomes: Mapping[str, int]
    """Answered calls by ``Status`` name, the first call too."""
    errors: Mapping[str, int]
    """Calls without a valid reply, by kind. They are in no time here."""
