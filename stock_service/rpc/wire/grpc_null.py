"""gRPC codec of the null server (``codec.NullAnswers``): the same reply to every call, with the call's stream number.

The null server speaks HTTP/2 (``http2.py``) without TLS. The server ignores the headers of a request. The headers of a
reply add no entry to a header table.

Left out: all checks of a client's bytes, and the flow control of streams: a reply is far smaller than a stream's
default window of 65,535 bytes. The codec obeys the connection's flow control.
"""

from collections.abc import Callable

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.header_blocks import encode_block

HELLO = http2.settings(
    # No header table, so that no block depends on an earlier block; no limit of streams; the largest windows.
    (http2.HEADER_TABLE_SIZE, 0),
    (http2.INITIAL_WINDOW_SIZE, http2.WINDOW_MAX),
) + http2.window_update(0, http2.WINDOW_MAX - http2.WINDOW_DEFAULT)
"""First bytes that the server sends to a client."""

_WINDOW_STEP = 1 << 20  # bytes received before the server widens the connection's window by the same number

_HEADER_BYTES = http2.HEADER.size
_STREAM_AT = 5
"""Offset of the stream's four bytes in a frame's header."""


class GrpcNull:
    """Implementation of ``codec.NullAnswers`` for gRPC."""

    def __init__(self, pieces: tuple[bytes, ...], message_bytes: int) -> None:
        self.hello = HELLO
        self._pieces = pieces
        self._message_bytes = message_bytes
        self._rest = b""
        self._greeted = False
        self._window_bytes = http2.WINDOW_DEFAULT  # bytes that the client's window of the connection still allows
        self._held: list[bytes] = []  # streams whose reply waits for a wider window
        self._received_bytes = 0  # bytes of DATA since the last WINDOW_UPDATE to the client

    def feed(self, data: bytes) -> bytes | None:
        """Takes received bytes; returns a reply for each call whose request the bytes complete. Returns None if the
        client does not begin with HTTP/2's preface.
        """
        data = self._rest + data
        at = 0
        if not self._greeted:
            if not http2.PREFACE.startswith(data[: len(http2.PREFACE)]):
                return None
            if len(data) < len(http2.PREFACE):
                self._rest = data
                return b""
            self._greeted = True
            at = len(http2.PREFACE)
        out: list[bytes] = []
        end, unpack = len(data), http2.HEADER.unpack_from
        while end - at >= _HEADER_BYTES:
            head, flags, stream = unpack(data, at)
            begin = at + _HEADER_BYTES
            after = begin + (head >> 8)
            if after > end:
                break
            kind = head & 0xFF
            if kind == http2.DATA:
                self._received_bytes += after - begin
            if kind <= http2.HEADERS:
                if flags & http2.END_STREAM:
                    self._reply(data[at + _STREAM_AT : begin], out)
            elif kind >= http2.SETTINGS:
                self._control(kind, flags, stream, data[begin:after], out)
            at = after
        self._rest = data[at:]
        if self._received_bytes >= _WINDOW_STEP:
            out.append(http2.window_update(0, self._received_bytes))
            self._received_bytes = 0
        return b"".join(out)

    def _reply(self, stream: bytes, out: list[bytes]) -> None:
        if self._window_bytes < self._message_bytes:
            self._held.append(stream)
            return
        self._window_bytes -= self._message_bytes
        out.append(stream.join(self._pieces))

    def _control(self, kind: int, flags: int, stream: int, payload: bytes, out: list[bytes]) -> None:
        """Acknowledges SETTINGS and PING, and sends held replies after a WINDOW_UPDATE of the connection."""
        if kind == http2.SETTINGS and not flags & http2.ACK:
            out.append(http2.frame(http2.SETTINGS, http2.ACK, 0))
        elif kind == http2.PING and not flags & http2.ACK:
            out.append(http2.frame(http2.PING, http2.ACK, 0, payload))
        elif kind == http2.WINDOW_UPDATE and not stream:
            self._window_bytes += int.from_bytes(payload, "big")
            held, self._held = self._held, []
            for waiting in held:
                self._reply(waiting, out)


def null_answers(reply: bytes) -> Callable[[], GrpcNull]:
    """Returns a function that makes a connection's codec. The codec answers every call with ``reply``, which must fit
    into one frame.
    """
    message = b"\0" + len(reply).to_bytes(4, "big") + reply
    begin = encode_block([(b":status", b"200"), (b"content-type", b"application/grpc")])
    trailers = encode_block([(b"grpc-status", b"0")])
    frames = http2.headers(0, begin, False), http2.frame(http2.DATA, 0, 0, message), http2.headers(0, trailers, True)
    pieces = [frames[0][:_STREAM_AT]]
    for before, after in zip(frames, (*frames[1:], b""), strict=True):
        pieces.append(before[_HEADER_BYTES:] + after[:_STREAM_AT])
    whole = tuple(pieces)
    return lambda: GrpcNull(whole, len(message))
