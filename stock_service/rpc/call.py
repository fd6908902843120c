"""A call: a request, with the facts that the transport knows about the request, for a service's method.

A call is made only for methods that ask for it (``Method.wants_call``). Other methods are given their request alone,
and do not pay for a ``Call``. Left out: data that only one transport has. A method that needs such data would run on
that transport alone.
"""

from dataclasses import dataclass

Metadata = tuple[tuple[str, str | bytes], ...]
"""Pairs of a name, in lower case, and a value, in the order of arrival. A name may come more than once."""

NO_METADATA: Metadata = ()
"""No metadata, for transports that carry none."""


class ReplyMetadata:
    """Metadata that a method sends with its reply, or its fault. Names are in lower case, and end in ``-bin`` where the
    value is bytes.

    The method may add to it until it returns. The status' details are the trailing ``grpc-status-details-bin``.
    """

    __slots__ = ("initial", "trailing")

    def __init__(self) -> None:
        self.initial: list[tuple[str, str | bytes]] = []
        self.trailing: list[tuple[str, str | bytes]] = []


@dataclass(frozen=True, slots=True)
class Call:
    """A request and the facts about the request. Immutable: any thread may keep a ``Call``."""

    payload: bytes
    """The request, encoded."""
    peer: str = ""
    """Address of the sender, ``HOST:PORT``; empty if the transport does not know the address."""
    deadline_ns: int | None = None
    """Time at which the client gives up, on ``time.monotonic_ns``; None for a client that never gives up."""
    metadata: Metadata = NO_METADATA
    """Metadata of the request, without ``authorization``: only the transport uses a token, and no token is kept."""
    reply: ReplyMetadata | None = None
    """Metadata of the reply, for the method to fill; None on a transport that carries no metadata."""
