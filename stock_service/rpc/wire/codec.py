"""Codecs of the lean client and of the null server on one connection: bytes in, bytes out, no I/O.

``Codec`` is the lean client's codec, with one implementation for each protocol. ``NullAnswers`` is the codec of a
server that does nothing.

A request is encoded once, before a run; starting a call only adds the call's number. So during a run a sender does only
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
    """True if ``feed`` found other bytes before a whole reply, or a reply of an unusual form. Then other bytes than the
    reply may have woken the caller of ``feed``. The reader of this field sets it to False.
    """

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request of the method ``/package.Service/Method``; the codec does not keep the request.

        The request carries ``timeout_s``, 0.001 or more. Raises InvalidRequest if the protocol cannot carry the
        request.
        """

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; returns the call's number, and the bytes to send. Call this only if ``room`` is True."""

    def feed(self, data: bytes) -> list[Reply]:
        """Takes received bytes. Returns the replies that the bytes complete, in order; a fault is returned and not
        raised.

        Raises Unavailable if the connection cannot be used any more. Open calls (started, neither completed nor
        abandoned) then get no reply: the caller records the fault for each of them.
        """

    def take_outgoing(self) -> bytes:
        """Bytes that the protocol itself must send now; nearly always empty. Call this after every ``feed``."""

    def room(self) -> bool:
        """True if another call may be started now.

        If no call is open and the result is False, this connection can take no further call: a new connection is
        needed.
        """

    def abandon(self, call: int) -> bytes:
        """Abandons a call. Returns the bytes that report this to the server; the bytes may be empty.

        ``feed`` may still return the call's reply: the caller then ignores the reply.
        """


class NullAnswers(Protocol):
    """One connection of a server that gives every request the same reply, as cheaply as Python can. For one thread."""

    hello: bytes
    """First bytes to send, once connected; may be empty."""

    def feed(self, data: bytes) -> bytes | None:
        """Takes received bytes, and returns the bytes to send. None if the client does not speak the protocol: then the
        connection is closed.
        """
