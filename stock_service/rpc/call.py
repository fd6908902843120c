"""A call: what a transport hands to a service's method besides the request.

It is made only for methods that ask for it (``Method.wants_call``). The others are given their request and nothing
else, so that a call costs them nothing. Left out: whatever only one transport has. A method that needed it would run on
that transport alone.
"""

from dataclasses import dataclass

Metadata = tuple[tuple[str, str | bytes], ...]
"""Names, in lower case, and values, in the order in which they came; a name may come more than once."""

NO_METADATA: Metadata = ()
"""For transports that carry none."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it came. A value: any thread may keep it."""

    payload: bytes
    """The request, encoded."""
    peer: str = ""
    """Who sent it, ``HOST:PORT``; empty where the transport does not say."""
    deadline_ns: int | None = None
    """When the client gives up, on ``time.monotonic_ns``; None: never."""
    metadata: Metadata = NO_METADATA
