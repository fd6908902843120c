"""Encoding of a gRPC server's replies to complete frames. Flow control follows later (``grpc_call_table.py``).

The header blocks of a reply use no dynamic table, so the constant blocks are encoded once, at import. A *usual* reply
is HEADERS, one DATA frame and trailers, with the status OK and without metadata. Encoding a usual reply costs two calls
of ``Struct.pack`` and two concatenations.
"""

import binascii
import re
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from urllib.parse import quote

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.header_blocks import Field, encode_block

HEADER_LIST_BYTES_MAX, HEADER_BLOCK_BYTES_MAX = 16_384, 65_536
"""Limits of a client's header list (decoded) and header block (encoded), in bytes. The server refuses a call with a
larger list. The server ends the connection after a larger block.
"""

DETAIL_BYTES_MAX = 4000
"""Limit of a status' text, in bytes after percent-encoding. Clients accept no trailers over 8,192 bytes."""

PREFIX = Struct("!BI")
"""Prefix of a message: one byte, which is 1 for a compressed message, else 0; then the message's length in four bytes.
"""

DETAILS = "grpc-status-details-bin"
"""Name of the trailing metadata that has a status' details, as an encoded google.rpc.Status."""

_METADATA_NAME, _METADATA_TEXT = re.compile(r"[0-9a-z_.\-]+"), re.compile(r"(?! )[ -~]*(?<! )")

_TEXT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
"""Characters that a status' text may have without percent-encoding."""

_BEGIN = encode_block([(b":status", b"200"), (b"content-type", b"application/grpc")])
_BEGIN_GZIP = encode_block([(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-encoding", b"gzip")])
_END = encode_block([(b"grpc-status", b"0")])
_LENGTH_AND_KIND = Struct("!IB")

_HEADERS_START = _LENGTH_AND_KIND.pack(len(_BEGIN) << 8 | http2.HEADERS, http2.END_HEADERS)
_TRAILERS_START = _LENGTH_AND_KIND.pack(len(_END) << 8 | http2.HEADERS, http2.END_HEADERS | http2.END_STREAM)
_FAULT_FLAGS = bytes((http2.END_HEADERS | http2.END_STREAM,))
_FAULT_START = bytes((http2.HEADERS,)) + _FAULT_FLAGS  # the bytes after the frame's length
_HEAD = Struct(f"!5sI{len(_BEGIN)}sIBIBI")  # HEADERS, the header of DATA, and the message's prefix
_TAIL = Struct(f"!5sI{len(_END)}s")
_pack_head, _pack_tail = _HEAD.pack, _TAIL.pack

USUAL_BYTES = _HEAD.size - PREFIX.size + _TAIL.size
"""Number of bytes of a usual reply that flow control does not count: all bytes but the message and its prefix."""

MESSAGE_BYTES_MAX = http2.FRAME_BYTES_MAX - PREFIX.size
"""Size of the largest message that fits into one DATA frame, in bytes."""


def window_bytes(message_bytes_max: int) -> int:
    """Returns the flow-control window of a stream on a server, in bytes: room for the largest message."""
    return max(http2.WINDOW_DEFAULT, message_bytes_max + PREFIX.size)


def hello(message_bytes_max: int, streams_max: int) -> bytes:
    """Returns the first bytes that a server sends: its SETTINGS, and a WINDOW_UPDATE that enlarges the connection's
    window to the largest size.
    """
    return http2.settings(
        (http2.HEADER_TABLE_SIZE, 0),  # so that equal header blocks always have the same meaning
        (http2.MAX_CONCURRENT_STREAMS, streams_max),
        (http2.INITIAL_WINDOW_SIZE, window_bytes(message_bytes_max)),  # only the window of a kept call is renewed
        (http2.MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES_MAX),
    ) + http2.window_update(0, http2.WINDOW_MAX - http2.WINDOW_DEFAULT)


def parted(reply: bytes) -> tuple[bytes, bytes, bytes, bool]:
    """Splits a reply into the frames before DATA, the content of DATA, and the frames after DATA. The fourth result is
    True if the last frame ends the stream.
    """
    before, body, after, at, flags = b"", [], b"", 0, 0
    while at < len(reply):
        head, flags, _ = http2.HEADER.unpack_from(reply, at)
        start = at + http2.HEADER.size
        stop = start + (head >> 8)
        if head & 0xFF == http2.DATA:
            body.append(reply[start:stop])
        elif body:
            after += reply[at:stop]
        else:
            before += reply[at:stop]
        at = stop
    return before, b"".join(body), after, bool(flags & http2.END_STREAM)


def usual_reply(stream: int, message: bytes) -> bytes:
    """Encodes a reply with one message, the status OK, and no metadata."""
    size = len(message)
    if size > MESSAGE_BYTES_MAX:
        return begun(stream) + messages(stream, message) + ended(stream)
    return (
        _pack_head(_HEADERS_START, stream, _BEGIN, (size + 5) << 8, 0, stream, 0, size)
        + message
        + _pack_tail(_TRAILERS_START, stream, _END)
    )


def is_usual(reply: bytes) -> bool:
    """Returns True if a reply has the form of the replies that ``usual_reply`` makes."""
    return reply.startswith(_HEADERS_START) and reply.startswith(_TRAILERS_START, len(reply) - _TAIL.size)


def begun(stream: int, gzipped: bool = False, metadata: Sequence[Field] = ()) -> bytes:
    """Encodes the frames before the first message: the response headers with the initial metadata."""
    return http2.headers(stream, (_BEGIN_GZIP if gzipped else _BEGIN) + encode_block(metadata), False)


def messages(stream: int, message: bytes, gzipped: bool = False) -> bytes:
    """Encodes the DATA frames of one message. ``gzipped`` is True if the message is compressed already."""
    body = PREFIX.pack(gzipped, len(message)) + message
    if len(body) <= http2.FRAME_BYTES_MAX:
        return http2.frame(http2.DATA, 0, stream, body)
    starts = range(0, len(body), http2.FRAME_BYTES_MAX)
    return b"".join(http2.frame(http2.DATA, 0, stream, body[at : at + http2.FRAME_BYTES_MAX]) for at in starts)


def ended(stream: int, metadata: Sequence[Field] = ()) -> bytes:
    """Encodes the trailers of a call that ends with the status OK. ``metadata`` is the trailing metadata."""
    return http2.headers(stream, _END + encode_block(metadata), True)


def fault_reply(stream: int, code: int, detail: str, metadata: Sequence[Field] = ()) -> bytes:
    """Encodes a reply that is a fault: only trailers. A cache makes the encoding cheap for a server under overload."""
    start, block = _fault(code, detail)
    if metadata:
        return http2.headers(stream, block + encode_block(metadata), True)
    return start + stream.to_bytes(4, "big") + block


def is_fault(reply: bytes) -> bool:
    """Returns True if a reply is only trailers in one frame: the first frame ends the headers and the stream."""
    return reply[3:5] == _FAULT_START


def broken_off(stream: int, code: int, detail: str, metadata: Sequence[Field] = ()) -> bytes:
    """Encodes the trailers that end a call with a fault after the response headers were sent."""
    return http2.headers(stream, encode_block([*_status(code, detail), *metadata]), True)


def metadata_fields(metadata: Sequence[tuple[str, str | bytes]]) -> list[Field]:
    """Encodes metadata as header fields. Raises ValueError for a name or value that is not allowed."""
    return [(name.encode(), _value(name, value)) for name, value in metadata]


def _value(name: str, value: str | bytes) -> bytes:
    own = name.startswith("grpc-") and name != DETAILS
    if own or not _METADATA_NAME.fullmatch(name):
        raise ValueError(f"metadata: a name {name!r}, allowed: a-z, 0-9, -, _ and ., and not grpc- at its beginning")
    if name.endswith("-bin"):
        if isinstance(value, bytes):
            return binascii.b2a_base64(value, newline=False).rstrip(b"=")
    elif isinstance(value, str) and _METADATA_TEXT.fullmatch(value):
        return value.encode()
    raise ValueError(f"metadata: the value of {name}, allowed: bytes where it ends in -bin, else a text in ASCII")


def http_reply(stream: int, status: int, detail: str) -> bytes:
    """Encodes the reply to a request that is no gRPC call: an HTTP status, and a text with the reason."""
    fields = [(b":status", b"%d" % status), (b"content-type", b"text/plain")]
    if status == 405:
        fields.append((b"allow", b"POST"))
    return http2.headers(stream, encode_block(fields), False) + http2.frame(
        http2.DATA, http2.END_STREAM, stream, detail.encode()
    )


@lru_cache(64)
def _fault(code: int, detail: str) -> tuple[bytes, bytes]:
    """Encodes a reply with a fault in two pieces: the bytes before and after the stream's number."""
    fields = [(b":status", b"200"), (b"content-type", b"application/grpc"), *_status(code, detail)]
    if code == 12:  # UNIMPLEMENTED, perhaps for the request's encoding: a client may try again with a listed encoding
        fields.append((b"grpc-accept-encoding", b"identity,gzip"))
    block = encode_block(fields)
    return (len(block) << 8 | http2.HEADERS).to_bytes(4, "big") + _FAULT_FLAGS, block


def _status(code: int, detail: str) -> list[tuple[bytes, bytes]]:
    text = quote(detail[:DETAIL_BYTES_MAX], safe=_TEXT, errors="replace").encode()
    if len(text) > DETAIL_BYTES_MAX:
        text = text[: DETAIL_BYTES_MAX - 2]
        cut = text.rfind(b"%", -2)
        text = text[:cut] if cut >= 0 else text
    return [(b"grpc-status", b"%d" % code), (b"grpc-message", text)]
