"""The sockets transport's frames for the server core; see ``server_core.protocol``."""

import time
from dataclasses import replace

from stock_service.rpc.errors import DeadlineExceeded, FaultCode
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import OK, Methods, failure
from stock_service.rpc.wire.framing import FrameDecoder, FramingError, RequestFrame, encode_reply, request_decoder

HELLO = b"hello/1"
"""The method by which a client shows its token; see ``greeting.py``."""


class Frames:
    """See ``server_core.protocol.WireProtocol``."""

    def __init__(self, methods: Methods, frame_bytes_max: int) -> None:
        answering = replace(methods, plain={**methods.plain, HELLO: _welcome})
        self._answered, self._plain = answering.answered, answering.plain
        self._frame_bytes_max = frame_bytes_max

    def decoder(self) -> FrameDecoder[RequestFrame]:
        """Decoder of a new connection, which cuts its bytes into requests."""
        return request_decoder(self._frame_bytes_max)

    def answer(self, request: RequestFrame, arrived_ns: int, peer: Address) -> bytes:
        """The frame that replies to a request."""
        call, timeout_ms, name, payload = request
        method = self._plain.get(name)
        if method is None:
            return encode_reply(call, *self._answered(name, payload, timeout_ms, arrived_ns, peer))
        try:
            if timeout_ms and time.monotonic_ns() - arrived_ns > timeout_ms * 1_000_000:
                raise DeadlineExceeded(f"not begun within {timeout_ms} ms")
            return encode_reply(call, OK, method(payload))
        except BaseException as error:  # SystemExit too: every request gets its reply
            return encode_reply(call, *failure(name, error))

    def path(self, request: RequestFrame) -> bytes | None:
        """Path of the method that a request names; None for a hello."""
        return None if request.method == HELLO else request.method

    def refusal(self, request: RequestFrame, code: FaultCode, detail: str) -> bytes:
        """The frame that refuses a request with a fault."""
        return encode_reply(request.call, code, detail.encode())

    def timeout_ms(self, request: RequestFrame) -> int:
        """Time limit of a request, in milliseconds; 0 for a request without a time limit."""
        return request.timeout_ms

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """The frame of a fault of the whole connection, with the call number 0."""
        return encode_reply(0, code, detail.encode())

    def goodbye(self) -> bytes:
        """The frame by which the server ends a connection in order: a fault of the whole connection."""
        return self.farewell(FaultCode.UNAVAILABLE, "the server ends the connection, and begins no other request of it")

    def objection(self, error: FramingError) -> bytes:
        """The frame for bytes that are no request: a fault of the whole connection."""
        return self.farewell(FaultCode.INVALID_ARGUMENT, str(error))


def _welcome(_token: bytes) -> bytes:
    """The empty reply to a hello: the token was accepted, or the server checks no tokens."""
    return b""
