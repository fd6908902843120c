"""Frames of the sockets transport: bytes in, frames out, no I/O.

A request:   length u32 | call u32 | timeout_ms u32 | method_length u8 | method | payload
A reply:     length u32 | call u32 | code u8 | payload

Integers are unsigned and big-endian; ``length`` is the number of bytes after the field ``length``. ``call`` is the
client's own number for a request; the reply has the same number. So a client may send several requests before the first
reply, and the server may answer in any order. ``timeout_ms`` is the client's time limit in milliseconds; 0 means no
limit. ``method`` is the full name, ``/package.Service/Method``, in UTF-8. With ``code`` 0 the payload is the response
message. Any other ``code`` is an ``errors.FaultCode``, and the payload is the fault's detail in UTF-8. A fault of the
whole connection has the call number 0, which no request may use; after this fault the server closes the connection.

The decoder refuses a length that is too small or over the limit, as soon as the four bytes of the length have come. So
the decoder also refuses HTTP and TLS, whose first four bytes would be a length of over 300 megabytes.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

from stock_service.rpc.errors import FaultCode

FRAME_BYTES_MAX = 1 << 20
"""Default limit of a frame, in bytes: 1 MiB, over a thousand times the size of the largest trade request."""

METHOD_BYTES_MAX = 255
"""Limit of a method's name, in bytes: the frame has the name's length in one byte."""

CALL_MAX = 2**32 - 1
"""Largest call number."""

_LENGTH = Struct("!I")
_REQUEST = Struct("!IIIB")
_REPLY = Struct("!IIB")
_REQUEST_BYTES = _REQUEST.size
_REQUEST_LENGTH_MIN = _REQUEST_BYTES - _LENGTH.size
_REPLY_LENGTH_MIN = _REPLY.size - _LENGTH.size
_length_at, _request_at, _pack_reply = _LENGTH.unpack_from, _REQUEST.unpack_from, _REPLY.pack
_tuple = tuple.__new__  # takes half the time of a named tuple's own constructor, which is a Python function


class FramingError(ValueError):
    """Error for bytes that are no frame, with a text for the sender. The rest of the stream cannot be decoded.

    ``frames`` has the frames that the last call of ``feed`` completed before the error.
    """

    code = FaultCode.INVALID_ARGUMENT
    """Code of the fault that the receiver sends to the sender."""

    def __init__(self, detail: str, frames: Sequence[Any] = ()) -> None:
        super().__init__(detail)
        self.frames: Sequence[Any] = frames


class RequestFrame(NamedTuple):
    """A received request. The server makes one object for each request. So the class is a tuple, which takes half the
    time of a dataclass object.
    """

    call: int
    timeout_ms: int
    method: bytes
    payload: bytes


class ReplyFrame(NamedTuple):
    """A received reply; ``code`` 0 is an answer, any other code a fault."""

    call: int
    code: int
    payload: bytes


Frame = TypeVar("Frame", RequestFrame, ReplyFrame)

Cut = Callable[[bytes, int, int], Frame]
"""Function that makes a frame from a chunk and two offsets: the start of the frame's length, and the end of the frame.
Raises FramingError.
"""


def encode_request(call: int, timeout_ms: int, method: bytes, payload: bytes) -> bytes:
    """Encodes a request as a frame. ``method`` has at most 255 bytes."""
    length = _REQUEST_LENGTH_MIN + len(method) + len(payload)
    return _REQUEST.pack(length, call, timeout_ms, len(method)) + method + payload


def encode_reply(call: int, code: int, payload: bytes) -> bytes:
    """Encodes a reply as a frame. ``code`` 0 is an answer, any other code a fault."""
    return _pack_reply(_REPLY_LENGTH_MIN + len(payload), call, code) + payload


class FrameDecoder(Generic[Frame]):
    """Divides a stream into frames. The stream may arrive in chunks of any size. Holds one frame and one chunk at most.
    Not thread-safe.

    The decoder gathers the bytes of an unfinished frame in one buffer until the frame is whole. So a frame that comes
    byte by byte needs no more memory and copying than a frame that comes at once.
    """

    ended = False
    """Always False, since the protocol has no mark for a last frame."""

    def __init__(self, cut: Cut[Frame], length_min: int, frame_bytes_max: int) -> None:
        self._cut: Cut[Frame] = cut
        self._length_min = length_min
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._needed = 0
        self.pending_bytes = 0
        """Number of bytes of an unfinished frame in the decoder's buffer."""

    def take_interim(self) -> bytes:
        """Returns no bytes: this protocol has no interim responses."""
        return b""

    def retire(self) -> bool:
        """Returns False: the protocol cannot tell a client that its connection is old."""
        return False

    def feed(self, data: bytes) -> list[Frame]:
        """Returns the frames that ``data`` completes, in order. After a FramingError no more bytes can be decoded."""
        if self.pending_bytes:
            self._buffer += data
            self.pending_bytes += len(data)
            if self.pending_bytes < self._needed:
                return []
            data = bytes(self._buffer)
            self._buffer = bytearray()
        frames: list[Frame] = []
        start, end, needed = 0, len(data), 4
        while end - start >= 4:
            (length,) = _length_at(data, start)
            if not self._length_min <= length <= self._frame_bytes_max:
                allowed = f"{self._length_min} to {self._frame_bytes_max}"
                raise FramingError(f"a frame of {length} bytes, allowed: {allowed}", frames)
            stop = start + 4 + length
            if stop > end:
                needed = 4 + length
                break
            try:
                frames.append(self._cut(data, start, stop))
            except FramingError as error:
                error.frames = frames
                raise
            start = stop
        self.pending_bytes = end - start
        self._needed = needed
        if start < end:
            self._buffer += data[start:] if start else data
        return frames


def request_decoder(
    frame_bytes_max: int = FRAME_BYTES_MAX, cut: "Cut[RequestFrame] | None" = None
) -> FrameDecoder[RequestFrame]:
    """Makes the decoder of a server, which cuts a client's bytes into requests. ``cut`` may make objects of a
    subclass of ``RequestFrame``.
    """
    return FrameDecoder(cut or cut_request, _REQUEST_LENGTH_MIN, frame_bytes_max)


def reply_decoder(frame_bytes_max: int = FRAME_BYTES_MAX) -> FrameDecoder[ReplyFrame]:
    """Makes the decoder of a client, which cuts a server's bytes into replies."""
    return FrameDecoder(_cut_reply, _REPLY_LENGTH_MIN, frame_bytes_max)


def cut_request(data: bytes, start: int, stop: int) -> RequestFrame:
    """Decodes one request frame. ``start`` is the offset of the frame's length, and ``stop`` the end of the frame.

    Raises FramingError for call number 0, and for a method's name that ends after the frame.
    """
    _, call, timeout_ms, method_length = _request_at(data, start)
    method_start = start + _REQUEST_BYTES
    payload_start = method_start + method_length
    if payload_start > stop:
        raise FramingError(f"a method of {method_length} bytes in a frame of {stop - start - 4}")
    if not call:
        raise FramingError(f"call number 0, allowed: 1 to {CALL_MAX}")
    return _tuple(RequestFrame, (call, timeout_ms, data[method_start:payload_start], data[payload_start:stop]))


def _cut_reply(data: bytes, start: int, stop: int) -> ReplyFrame:
    """Decodes one reply frame. ``start`` is the offset of the frame's length, and ``stop`` the end of the frame."""
    _, call, code = _REPLY.unpack_from(data, start)
    return ReplyFrame(call, code, data[start + _REPLY.size : stop])
