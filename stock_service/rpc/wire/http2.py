"""HTTP/2 (RFC 9113): constants (kinds of frames, flags, settings, limits, error codes), and encoding of frames.

``http2_endpoint.py`` decodes frames, and obeys flow control.
"""

from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""First bytes of a client, before its SETTINGS."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
"""Kinds of frames."""

END_STREAM, ACK, END_HEADERS, PADDED, PRIORITISED = 0x1, 0x1, 0x4, 0x8, 0x20
"""Flags of frames, as bits. END_STREAM and ACK are the same bit, in different kinds of frames."""

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)
"""Numbers of settings."""

FRAME_BYTES_MAX = 16_384
"""Largest payload of a frame, in bytes. Every HTTP/2 peer accepts this size. We send and accept no larger payload."""

WINDOW_DEFAULT = 65_535
"""Flow-control window of a connection and of a stream, in bytes, before SETTINGS or WINDOW_UPDATE change the window."""

WINDOW_MAX = STREAM_MAX = 2**31 - 1
"""Largest flow-control window in bytes, and largest number of a stream."""

HEADER = Struct("!IBI")
"""Header of a frame: length (three bytes) and kind (one byte) as one number, then the flags, then the stream."""

_U32 = Struct("!I")
_SETTING = Struct("!HI")


class ErrorCode(IntEnum):
    """Error code of RST_STREAM and GOAWAY: the reason why a stream or a connection ended."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Http2Error(ValueError):
    """Error for a peer's bytes that break the protocol or exceed a limit. The connection cannot be used any more."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


# ---- frames


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Encodes a frame. ``payload`` has at most ``FRAME_BYTES_MAX`` bytes."""
    return HEADER.pack(len(payload) << 8 | kind, flags, stream) + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    """Encodes a SETTINGS frame. Each pair is a setting's number and value."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in pairs))


def window_update(stream: int, count: int) -> bytes:
    """Encodes a WINDOW_UPDATE frame, which allows ``count`` more bytes on a stream, or on the connection (stream 0)."""
    return frame(WINDOW_UPDATE, 0, stream, _U32.pack(count))


def rst_stream(stream: int, code: ErrorCode) -> bytes:
    """Encodes a RST_STREAM frame, which ends a stream at once."""
    return frame(RST_STREAM, 0, stream, _U32.pack(code))


def goaway(last: int, code: ErrorCode, detail: str = "") -> bytes:
    """Encodes a GOAWAY frame: the sender accepts no stream after ``last``. ``detail`` is text, cut to 100 bytes."""
    return frame(GOAWAY, 0, 0, _U32.pack(last) + _U32.pack(code) + detail.encode()[:100])


def headers(stream: int, block: bytes, end_stream: bool) -> bytes:
    """Encodes a header block as one HEADERS frame, and as many CONTINUATION frames as the block needs."""
    flags = END_STREAM if end_stream else 0
    if len(block) <= FRAME_BYTES_MAX:
        return frame(HEADERS, flags | END_HEADERS, stream, block)
    pieces = [block[at : at + FRAME_BYTES_MAX] for at in range(0, len(block), FRAME_BYTES_MAX)]
    middle = b"".join(frame(CONTINUATION, 0, stream, piece) for piece in pieces[1:-1])
    return frame(HEADERS, flags, stream, pieces[0]) + middle + frame(CONTINUATION, END_HEADERS, stream, pieces[-1])


def parse_goaway(payload: bytes) -> tuple[int, int, bytes]:
    """Decodes the payload of GOAWAY: the last stream that the peer accepts, the error code, and the text."""
    return _U32.unpack_from(payload)[0] & STREAM_MAX, _U32.unpack_from(payload, 4)[0], payload[8:]


def error_name(code: int) -> str:
    """Returns the name of an error code, or ``error N`` for an unknown code N."""
    return ErrorCode(code).name if code in ErrorCode._value2member_map_ else f"error {code}"
