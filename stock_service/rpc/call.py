"""A call: what a transport hands to a service's method besides the request.

It is made only for methods that ask for it (``Method.wants_call``). The others are given their request and nothing
else, so that a call costs them nothing. Left out: whatever a method would need and only one transport has, since it
would run on that transport alone.
"""

from dataclasses import dataclass

Metadata = tuple[tuple[str, str | bytes], ...]
"""Names, in lower case, and values, in the order in which they came; a name may come more than once."""

NO_METADATA: Metadata = ()
"""For transports that carry none."""


class ReplyMetadata:
    """What a method says beside its reply, or its fault: names in lower case, ``-bin`` at the end of those of bytes.

    The method fills it until it returns. The status' details are the trailing ``grpc-status-details-bin``.
    """

    __slots__ = ("initial", "trailing")

    def __init__(self) -> None:
        self.initial: list[tuple[str, str | bytes]] = []
        self.trailing: list[tuple[str, str | bytes]] = []


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
    """What was sent beside the request. Not ``authorization``: a token is for the transport, and nobody keeps it."""
    reply: ReplyMetadata | None = None
    """Where to say something beside the reply; None: the transport carries nothing."""
