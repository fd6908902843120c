"""Times of one cold run: connecting, the first call, and the calls after it, each apart."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ColdRun:
    """Calls of a fresh process on a fresh connection, one after the other. Times are nanoseconds."""

    connect_ns: int
    """Making the connection. Some transports wait for no reply then, so that the first call pays for the rest."""
    first_ns: int | None
    """The first call's response time; None where it ended in an error."""
    rest_ns: int
    """Response times of the other calls that were answered, added up."""
    rest: int
    """Number of these calls."""
    outcomes: Mapping[str, int]
    """Answered calls by ``Status`` name, the first among them."""
    errors: Mapping[str, int]
    """Calls that got no valid reply, by kind. They are in no time here."""
