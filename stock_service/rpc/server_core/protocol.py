"""What the server core asks of a protocol: bytes to requests, and requests to the bytes of their replies. No I/O.

Where a library keeps requests apart, ``Answers`` is all there is to a protocol.
"""

from typing import Protocol, TypeVar

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.served_stream import RequestDecoder

Request = TypeVar("Request")
"""A request as a protocol cuts it from a stream."""

Asked = TypeVar("Asked", contravariant=True)
"""The same, where it is only taken."""


class Answers(Protocol[Asked]):
    """What answers one server's requests. Every method may be called from any thread, and none raises."""

    def answer(self, request: Asked, arrived_ns: int, peer: Address) -> bytes:
        """A request's reply, a fault where it has no outcome. ``arrived_ns``: read when, on ``time.monotonic_ns``."""

    def path(self, request: Asked) -> bytes | None:
        """The method that a request names, ``/package.Service/Method``; anything else for none of the service.

        None: it is one of the protocol's own, which a timeline leaves out.
        """

    def refusal(self, request: Asked, code: FaultCode, detail: str) -> bytes:
        """A reply to a request that is not answered."""


class WireProtocol(Answers[Request], Protocol[Request]):
    """One server's, whose connections are streams of bytes."""

    def decoder(self) -> RequestDecoder[Request]:
        """What cuts a new connection's bytes into requests. For the thread that reads them."""

    def timeout_ms(self, request: Request) -> int:
        """How long a request says that its client waits, in milliseconds; 0: it does not."""

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """What to say about the connection, which is then closed."""

    def goodbye(self) -> bytes:
        """What is said last where the server ends a connection that owes no reply; empty: nothing.

        It says that no other request was begun.
        """

    def objection(self, error: FramingError) -> bytes:
        """The same about bytes that are no request."""
