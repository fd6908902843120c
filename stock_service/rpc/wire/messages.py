"""Requests and replies as messages, for transports whose library keeps one message apart from the next: no I/O.

A request:   call u32 | timeout_ms u32 | method_length u8 | method | payload
A reply:     call u32 | code u8 | payload

They are the frames of ``framing`` without their length, and mean the same. ``call`` 0 in a reply is the fault of a
message that is no request.
"""

from struct import Struct

from stock_service.rpc.wire.framing import FramingError, ReplyFrame, RequestFrame

_REQUEST = Struct("!IIB")
_REPLY = Struct("!IB")
_CALL = Struct("!I")

HEADER_BYTES_MAX = _REQUEST.size + 255
"""Bytes of a request that are not its payload, at most."""


def encode_request(call: int, timeout_ms: int, method: bytes, payload: bytes) -> bytes:
    """A request's message. ``method`` has at most 255 bytes."""
    return _REQUEST.pack(call, timeout_ms, len(method)) + method + payload


def cut_request(message: bytes) -> RequestFrame:
    """The request that a message is. Raises FramingError."""
    if len(message) < _REQUEST.size:
        raise FramingError(f"a request of {len(message)} bytes, allowed: {_REQUEST.size} or more")
    call, timeout_ms, method_length = _REQUEST.unpack_from(message)
    start = _REQUEST.size + method_length
    if start > len(message):
        raise FramingError(f"a method of {method_length} bytes in a message of {len(message)}")
    return RequestFrame(call, timeout_ms, message[_REQUEST.size : start], message[start:])


def call_of(message: bytes) -> int:
    """The number of a request that is not looked at any further; 0 where there is none."""
    call: int = _CALL.unpack_from(message)[0] if len(message) >= _CALL.size else 0
    return call


def encode_reply(call: int, code: int, payload: bytes) -> bytes:
    """A reply's message."""
    return _REPLY.pack(call, code) + payload


def cut_reply(message: bytes) -> ReplyFrame:
    """The reply that a message is. Raises FramingError."""
    if len(message) < _REPLY.size:
        raise FramingError(f"a reply of {len(message)} bytes, allowed: {_REPLY.size} or more")
    call, code = _REPLY.unpack_from(message)
    return ReplyFrame(call, code, message[_REPLY.size :])
