"""The sockets protocol for the server core: decoding, answers and refusals (``server_core.protocol.WireProtocol``)."""

import time
from dataclasses import replace

from stock_service.rpc.errors import DeadlineExceeded, FaultCode
from stock_service.rpc.server_core.options import Address
from stock_service.rpc.server_core.protocol import OK, Methods, failure
from stock_service.rpc.wire.framing import FrameDecoder, FramingError, RequestFrame, encode_reply, request_decoder

HELLO = b"hello/1"
"""Name of the method by which a client shows its token (``greeting.py``)."""


class Frames:
    """Implementation of ``server_core.protocol.WireProtocol`` for the sockets protocol. Thread-safe."""

    def __init__(self, methods: Methods, frame_bytes_max: int) -> None:
        answering = replace(methods, plain={**methods.plain, HELLO: _welcome})
        self._answered, self._plain = answering.answered, answering.plain
        self._frame_bytes_max = frame_bytes_max

    def decoder(self) -> FrameDecoder[RequestFrame]:
        """Makes the decoder that cuts a new connection's bytes into requests."""
        return request_decoder(self._frame_bytes_max)

    def answer(self, request: RequestFrame, arrived_ns: int, peer: Address) -> bytes:
        """Calls a request's method, and returns the frame of the reply. An exception becomes a fault in the reply."""
        call, timeout_ms, name, payload = request
        method = self._plain.get(name)
        if method is None:
            return encode_reply(call, *self._answered(name, payload, timeout_ms, arrived_ns, peer))
        try:
            if timeout_ms and time.monotonic_ns() - arrived_ns > timeout_ms * 1_000_000:
                raise DeadlineExceeded(f"not begun within {timeout_ms} ms")
            return encode_reply(call, OK, method(payload))
        except BaseException as error:  # also SystemExit, since every request must get a reply
            return encode_reply(call, *failure(name, error))

    def path(self, request: RequestFrame) -> bytes | None:
        """Returns the path of a request's method; None for a hello."""
        return None if request.method == HELLO else request.method

    def refusal(self, request: RequestFrame, code: FaultCode, detail: str) -> bytes:
        """Encodes the reply that refuses a request with a fault."""
        return encode_reply(request.call, code, detail.encode())

    def timeout_ms(self, request: RequestFrame) -> int:
        """Returns a request's time limit in milliseconds; 0 for no time limit."""
        return request.timeout_ms

    def farewell(self, code: FaultCode, detail: str) -> bytes:
        """Encodes a fault of the whole connection, as a reply with the call number 0."""
        return encode_reply(0, code, detail.encode())

    def goodbye(self) -> bytes:
        """Encodes the goodbye: the fault UNAVAILABLE of the whole connection. The server does not begin any unanswered
        request.
        """
        return self.farewell(FaultCode.UNAVAILABLE, "the server ends the connection, and begins no other request of it")

    def objection(self, error: FramingError) -> bytes:
        """Encodes the reply to bytes that are no request: INVALID_ARGUMENT of the whole connection."""
        return self.farewell(FaultCode.INVALID_ARGUMENT, str(error))


def _welcome(_token: bytes) -> bytes:
    """Answers a hello with an empty reply. Either the access check has accepted the token, or the server has no access
    check.
    """
    return b""
