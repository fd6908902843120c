"""``Call``: a request as the argument of a service's method, with the facts that the transport knows about the request.

A transport makes a ``Call`` only for a method that wants a ``Call`` (``Method.wants_call``). Any other method gets only
the request, so that no time is spent on a ``Call``. Left out: data that only one transport has, since a method that
needs such data would run only on this transport.
"""

from dataclasses import dataclass

Metadata = tuple[tuple[str, str | bytes], ...]
"""Metadata of a request, in the order of arrival: pairs of a name, in lower case, and a value. A name may come more
than once.
"""

NO_METADATA: Metadata = ()
"""Metadata of a request on a transport that carries no metadata."""


class ReplyMetadata:
    """Metadata that a method sends with its reply or fault. Names are in lower case. A name ends in ``-bin`` if its
    value is bytes.

    The method may append pairs until the method returns. The details of a gRPC status are a pair in ``trailing`` with
    the name ``grpc-status-details-bin``.
    """

    __slots__ = ("initial", "trailing")

    def __init__(self) -> None:
        self.initial: list[tuple[str, str | bytes]] = []
        self.trailing: list[tuple[str, str | bytes]] = []


@dataclass(frozen=True, slots=True)
class Call:
    """A request, and facts about the request. Immutable, and so thread-safe, except for the lists in ``reply``."""

    payload: bytes
    """Encoded request."""
    peer: str = ""
    """Address of the client, ``HOST:PORT``; empty if the transport does not know the address."""
    deadline_ns: int | None = None
    """Time at which the client's time limit ends, on ``time.monotonic_ns``; None without a time limit."""
    metadata: Metadata = NO_METADATA
    """Metadata of the request, without ``authorization``, since no method may see a token."""
    reply: ReplyMetadata | None = None
    """Metadata of the reply, for the method to fill; None on a transport whose replies have no metadata."""
