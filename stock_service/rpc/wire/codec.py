"""Codecs of the lean client and of the null server on one connection: bytes in, bytes out, no I/O.

``Codec`` is the lean client's, one implementation for each protocol. ``NullAnswers`` is of a server that does nothing.

A request is encoded once, before a run; starting it only puts a call's number in. So a protocol costs a sender only its
own work. The owner of the socket sends the bytes that the methods return, in that order, and feeds the bytes that come.
"""

from typing import Protocol

from stock_service.rpc.errors import Fault

Prepared = tuple[bytes, ...]
"""A request, encoded: the pieces between which the call's number goes. A request that one codec prepared, every codec
of the same kind and authority can start."""

Reply = tuple[int, bytes | Fault]
"""A call's number, and its response message or its fault."""


class Codec(Protocol):
    """Codec of one connection; each new connection needs a new codec. For one thread."""

    hello: bytes
    """First bytes to send, once connected; may be empty."""
    preceded: bool
    """True where ``feed`` met other bytes before a whole reply, or a reply of an unusual form. Its caller may then have
    been woken for these, and not for the reply. The reader of this sets it back."""

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request of the method ``/package.Service/Method``; the codec keeps nothing of it.

        The request carries ``timeout_s``, 0.001 or more. Raises InvalidRequest where the protocol cannot carry the
        request.
        """

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; returns its number, and the bytes to send. To be called only where there is ``room``."""

    def feed(self, data: bytes) -> list[Reply]:
        """Replies that these bytes completed, in order; a fault is returned and not raised.

        Raises Unavailable once the connection cannot be used any more. Open calls (started, neither completed nor
        abandoned) then get no reply: the caller records their fault.
        """

    def take_outgoing(self) -> bytes:
        """Bytes that the protocol itself must send now; nearly always empty. To be called after every ``feed``."""

    def room(self) -> bool:
        """True where another call may be started now.

        False with no call open means that none ever may: a new connection is needed.
        """

    def abandon(self, call: int) -> bytes:
        """Gives a call up; returns the bytes that tell the server, which may be empty.

        ``feed`` may still return its reply: the caller then ignores the reply.
        """


class NullAnswers(Protocol):
    """One connection of a server that gives every request the same reply, as cheaply as Python can. For one thread."""

    hello: bytes
    """First bytes to send, once connected; may be empty."""

    def feed(self, data: bytes) -> bytes | None:
        """Bytes to send for these bytes; None: the client does not speak the protocol, and is cut off."""
