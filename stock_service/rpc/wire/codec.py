"""Codecs of the load generator's client and of the null server, for one connection: bytes in, bytes out, no I/O.

``Codec`` is the codec of the load generator's *lean client*, which spends little processor time on a call. Each
protocol has one implementation of ``Codec``. ``NullAnswers`` is the codec of the *null server*, which gives one reply
to all requests.

``Codec.prepare`` encodes a request before a measurement. During the measurement, ``Codec.start`` adds only the call's
number, so the client encodes no request again. The owner of the socket sends the bytes that the methods return, in the
same order. The owner gives the received bytes to ``feed``.
"""

from typing import Protocol

from stock_service.rpc.errors import Fault

Prepared = tuple[bytes, ...]
"""An encoded request: the pieces before and after the call's number. Any codec of the same class and for the same
server name may start the request.
"""

Reply = tuple[int, bytes | Fault]
"""A call's number, and the call's response message or fault."""


class Codec(Protocol):
    """Client's codec of one connection; each new connection needs a new codec. Not thread-safe."""

    hello: bytes
    """First bytes to send on a new connection; may be empty."""
    preceded: bool
    """True after ``feed`` has taken bytes that are not a whole reply of the usual form. Such bytes may have woken the
    caller before the reply arrived. The code that reads this field sets the field back to False.
    """

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request of the method ``path``, in the form ``/package.Service/Method``. Does not store the
        request.

        The request tells the server the time limit ``timeout_s``, which is 0.001 seconds or more. Raises InvalidRequest
        if the protocol cannot carry the request.
        """

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; returns the call's number, and the bytes to send. Call ``start`` only if ``room`` returns
        True.
        """

    def feed(self, data: bytes) -> list[Reply]:
        """Takes received bytes. Returns the replies that the bytes complete, in order. The reply to a failed call is a
        Fault.

        Raises Unavailable if the connection cannot be used any more. The caller must then record Unavailable as the
        outcome of each open call: each call that was started, and neither completed nor abandoned.
        """

    def take_outgoing(self) -> bytes:
        """Takes the bytes that the protocol itself must send now, such as window updates. Nearly always returns no
        bytes. Call ``take_outgoing`` after every ``feed``.
        """

    def room(self) -> bool:
        """True if another call may be started now.

        If no call is open and the result is False, this connection can take no further call: a new connection is
        needed.
        """

    def abandon(self, call: int) -> bytes:
        """Gives up a call. Returns the bytes that cancel the call at the server; empty if the protocol has no
        cancellation.

        ``feed`` may still return the call's reply. The caller must ignore this reply.
        """


class NullAnswers(Protocol):
    """Codec of one connection of the null server: every request gets the same reply, with as little processor time as
    possible in Python. Not thread-safe.
    """

    hello: bytes
    """First bytes to send on a new connection; may be empty."""

    def feed(self, data: bytes) -> bytes | None:
        """Takes received bytes, and returns the bytes to send. Returns None if the client does not speak the protocol;
        then the caller closes the connection.
        """
