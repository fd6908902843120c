"""What the load client's two plain ends speak on a connection: bytes in, bytes out, no I/O.

``Codec`` is the lean client's, one implementation for each protocol; ``NullAnswers`` a server's that does nothing.

A request is encoded once, before a run; starting it only puts a call's number in. So protocols cost a sender what they
differ in, and nothing else. Whoever owns the socket sends what the methods give, in that order, and feeds what comes.
"""

from typing import Protocol

from stock_service.rpc.errors import Fault

Prepared = tuple[bytes, ...]
"""A request, encoded: the pieces between which the call's number goes. Every codec of the same kind, with the same
authority, can start what one of them prepared."""

Reply = tuple[int, bytes | Fault]
"""A call's number, and the response message or what the call ended in."""


class Codec(Protocol):
    """One connection's bytes; a connection made anew needs a new codec. One thread's."""

    hello: bytes
    """What is to be sent first, once connected; may be empty."""
    preceded: bool
    """Set where ``feed`` met something before a whole reply, or a reply of no usual form. Its caller may then have been
    woken for something else than the reply. Whoever asks sets it back."""

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request of the method ``/package.Service/Method``; the codec keeps nothing of it.

        The server is told ``timeout_s``, 0.001 and more. Raises InvalidRequest for what the protocol cannot carry.
        """

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call: its number, and the bytes to send. To be asked only where there is ``room``."""

    def feed(self, data: bytes) -> list[Reply]:
        """The calls that these bytes completed, in order; a fault is given and not raised.

        Raises Unavailable once the connection can be used no more. Calls that are open then (started, neither given nor
        abandoned) will never be given: the caller records their fault.
        """

    def take_outgoing(self) -> bytes:
        """What the protocol itself must send now; nearly always nothing. To be asked after every ``feed``."""

    def room(self) -> bool:
        """Whether another call may be started now.

        False with no call open means that none ever may: the connection is to be made anew.
        """

    def abandon(self, call: int) -> bytes:
        """Gives a call up: the bytes that tell the server so, which may be none.

        Its reply, should it come, may be given all the same: whoever gave it up ignores it.
        """


class NullAnswers(Protocol):
    """One connection of a server that gives every request the same reply, as cheaply as Python can. One thread's."""

    hello: bytes
    """What is to be sent first, once connected; may be empty."""

    def feed(self, data: bytes) -> bytes | None:
        """What to send for these bytes; None: whoever sent them does not speak the protocol, and is cut off."""
