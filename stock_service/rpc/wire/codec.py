"""Codecs of the lean client and of the null server on one connection: bytes in, bytes out, no I/O.

``Codec`` is the lean client's codec, with one implementation for each protocol. ``NullAnswers`` is the codec of a
server that does nothing.

A request is encoded once, before a run; starting a call only adds the call's number. So a protocol costs a sender only
the protocol's own work. The owner of the socket sends the bytes that the methods return, in that order, and feeds the
bytes that come.
"""

from typing import Protocol

from stock_service.rpc.errors import Fault

Prepared = tuple[bytes, ...]
"""An encoded request: the pieces before and after the call's number. Every codec of the same kind and authority can
start a request that one codec has prepared.
"""

Reply = tuple[int, bytes | Fault]
"""A call's number, and the call's response message or fault."""


class Codec(Protocol):
    """Codec of one connection; each new connection needs a new codec. For one thread."""

    hello: bytes
    """First bytes to send, once connected; may be empty."""
    preceded: bool
    """True if ``feed`` found other bytes before a whole reply, or a reply of an unusual form. Then these other bytes
    may have woken the caller of ``feed``. The reader of this field sets it to False.
    """

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request of the method ``/package.Service/Method``; the codec keeps nothing of it.

        The request carries ``timeout_s``, 0.001 or more. Raises InvalidRequest where the protocol cannot carry the
        request.
        """

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; returns the call's number, and the bytes to send. Call this only if ``room`` is True."""

    def feed(self, data: bytes) -> list[Reply]:
        """Replies that these bytes completed, in order; a fault is returned and not raised.

        Raises Unavailable once the connection cannot be used any more. Open calls (started, neither completed nor
        abandoned) then get no reply: the caller records their fault.
        """

    def take_outgoing(self) -> bytes:
        """Bytes that the protocol itself must send now; nearly always empty. Call this after every ``feed``."""

    def room(self) -> bool:
        """True where another call may be started now.

        False without an open call means that no further call is possible: a new connection is needed.
        """

    def abandon(self, call: int) -> bytes:
        """Gives a call up; returns the bytes that tell this to the server. The bytes may be empty.

        ``feed`` may still return its reply: the caller then ignores the reply.
        """


class NullAnswers(Protocol):
    """One connection of a server that gives every request the same reply, as cheaply as Python can. For one thread."""

    hello: bytes
    """First bytes to send, once connected; may be empty."""

    def feed(self, data: bytes) -> bytes | None:
        """Bytes to send for these bytes; None: the client does not speak the protocol, and is cut off."""
