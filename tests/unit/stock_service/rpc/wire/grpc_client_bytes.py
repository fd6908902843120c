"""Bytes of gRPC's clients, good and bad, and a session's words on them; for the tests of the server's side."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from hpack import Decoder

from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.grpc_calls import GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_session import GrpcSession, SessionError
from stock_service.rpc.wire.header_blocks import Field, encode_block
from tests.unit.stock_service.rpc.wire.streams import frames_of

PATH, WATCHED, TALKED, LISTED = (b"/a.Service/" + name for name in (b"Method", b"Watch", b"Talk", b"List"))
KINDS = {PATH: Kind.UNARY, WATCHED: Kind.STREAMED_REPLY, TALKED: Kind.STREAMED, LISTED: Kind.REPLIES}

MESSAGE_BYTES_MAX, STREAMS_MAX = 100_000, 8

HELLO = http2.PREFACE + http2.settings()


class Frame(NamedTuple):
    """A frame that was sent."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def fields(path: bytes = PATH, **others: str) -> list[Field]:
    """A call's header fields; underscores in names are hyphens."""
    return [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"a:1"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        *((name.replace("_", "-").encode(), value.encode()) for name, value in others.items()),
    ]


def head(stream: int, path: bytes = PATH, ends: bool = False, **others: str) -> bytes:
    """A call's HEADERS."""
    return http2.headers(stream, encode_block(fields(path, **others)), ends)


def data(stream: int, body: bytes, ends: bool = True) -> bytes:
    """One DATA frame."""
    return http2.frame(http2.DATA, http2.END_STREAM if ends else 0, stream, body)


def message(payload: bytes, compressed: int = 0) -> bytes:
    """A message with its prefix."""
    return grpc_replies.PREFIX.pack(compressed, len(payload)) + payload


def call(stream: int, payload: bytes = b"", path: bytes = PATH, **others: str) -> bytes:
    """A whole call of a short message."""
    return head(stream, path, False, **others) + data(stream, message(payload))


def frames(said: bytes) -> list[Frame]:
    """Bytes as frames."""
    return [Frame(*frame) for frame in frames_of(said)]


MIXED = HELLO + b"".join(
    (
        call(1, b"one"),
        call(3, b"three"),
        http2.frame(http2.PING, 0, 0, b"12345678"),
        head(5, grpc_timeout="1m"),
        data(5, message(bytes(9000))[:7], ends=False),
        data(5, message(bytes(9000))[7:], ends=False),
        call(7, b"seven"),
        http2.frame(http2.DATA, http2.PADDED, 5, b"\x03" + bytes(3)),
        data(5, b""),
        http2.window_update(0, 100),
        http2.settings((http2.INITIAL_WINDOW_SIZE, 7)),
        http2.rst_stream(7, http2.ErrorCode.CANCEL),
        call(9, b"nine"),
        call(11, b"eleven", grpc_timeout="1m"),
    )
)
"""A client's session with a bit of everything."""


class Talk:
    """A session, its clock, and the client's view of it."""

    def __init__(self, hello: bytes = HELLO, streams_max: int = STREAMS_MAX) -> None:
        self.now_ns = 0
        self.session = GrpcSession(KINDS, MESSAGE_BYTES_MAX, streams_max, lambda: self.now_ns)
        self._decoder = Decoder()
        self.goaway = b""
        if hello:
            self.send(hello)
            self.said()

    def send(self, *pieces: bytes) -> list[GrpcRequest]:
        """Sends bytes. Gives their requests. A connection that breaks leaves its ``goaway``."""
        requests: list[GrpcRequest] = []
        for piece in pieces:
            try:
                requests += self.session.feed(piece)
            except FramingError as error:
                requests += error.frames
                self.goaway = cast(SessionError, error).goaway
        return requests

    def said(self) -> list[Frame]:
        """The session's own words since."""
        return frames(self.session.take_outgoing())

    def reply(self, request: GrpcRequest, payload: bytes) -> list[Frame]:
        """The bytes of an answer that leave."""
        return frames(self.session.admit(request, grpc_replies.usual_reply(request[1], payload)))

    def fields(self, frame: Frame) -> dict[bytes, bytes]:
        """A header block's fields."""
        assert frame.kind == http2.HEADERS
        return dict(self._decoder.decode(frame.payload, raw=True))

    def status(self, said: Sequence[Frame]) -> tuple[int, str]:
        """The status that a call ended with, in its last HEADERS."""
        trailers = self.fields([frame for frame in said if frame.kind == http2.HEADERS][-1])
        return int(trailers[b"grpc-status"]), trailers.get(b"grpc-message", b"").decode()

    @property
    def broken_by(self) -> http2.ErrorCode | None:
        """Why the connection was given up, if it was."""
        return http2.ErrorCode(http2.parse_goaway(frames(self.goaway)[0].payload)[1]) if self.goaway else None
