"""``Call``: a request as the argument of a service's method, with the facts that the transport knows about the request.

To save time, a transport makes a ``Call`` only for a method that wants a ``Call`` (``Method.wants_call``). Any other
method gets only the request. Left out: data that only one transport has. A method that used these data could not run on
the other transports.
"""

from dataclasses import dataclass

Metadata = tuple[tuple[str, str | bytes], ...]
"""Metadata of a request: pairs of name and value, in the order of arrival. Names are in lower case. Several pairs may
have the same name.
"""

NO_METADATA: Metadata = ()
"""Metadata of a request on a transport that carries no metadata."""


class ReplyMetadata:
    """Metadata that a method sends with its reply or fault. Names are in lower case. A name ends in ``-bin`` if its
    value is bytes.

    The method may append pairs until it returns. To send the details of a gRPC status, the method appends a pair with
    the name ``grpc-status-details-bin`` to ``trailing``.
    """

    __slots__ = ("initial", "trailing")

    def __init__(self) -> None:
        self.initial: list[tuple[str, str | bytes]] = []
        self.trailing: list[tuple[str, str | bytes]] = []


@dataclass(frozen=True, slots=True)
class Call:
    """A request, with the facts about its client. Immutable, and so thread-safe, except for the lists in ``reply``."""

    payload: bytes
    """Encoded request message."""
    peer: str = ""
    """Address of the client, ``HOST:PORT``; empty if the transport does not know the address."""
    deadline_ns: int | None = None
    """Time at which the client's time limit ends, on the clock ``time.monotonic_ns``. None without a time limit."""
    metadata: Metadata = NO_METADATA
    """Metadata of the request, without ``authorization``, since no method may see a token."""
    reply: ReplyMetadata | None = None
    """Metadata that the method may add to its reply; None on a transport whose replies have no metadata."""
