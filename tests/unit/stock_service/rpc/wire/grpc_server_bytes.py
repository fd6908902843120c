"""Bytes of gRPC servers, as grpcio, Go and others write them; and a lean codec that has got such a server's
settings."""

from hpack import Encoder

from stock_service.rpc.errors import Fault
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_codec import GrpcCodec
from stock_service.rpc.wire.http2 import DATA, END_HEADERS, END_STREAM, PADDED, frame, settings

PATH = "/a.B/C"
AUTHORITY = "host:1"

Fields = list[tuple[bytes, bytes]]

GREETING = settings((http2.MAX_CONCURRENT_STREAMS, 64), (http2.INITIAL_WINDOW_SIZE, 1 << 20))
SETTINGS_ACK = frame(http2.SETTINGS, http2.ACK, 0)

BEGIN: Fields = [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-accept-encoding", b"identity")]
OK: Fields = [(b"grpc-status", b"0"), (b"grpc-message", b"")]


def prefixed(message: bytes, compressed: int = 0) -> bytes:
    """A message as DATA carries it."""
    return bytes([compressed]) + len(message).to_bytes(4, "big") + message


class GrpcServerBytes:
    """The server of one connection. It puts fields into its header table of ``table_size``, as servers do."""

    def __init__(self, table_size: int = 0) -> None:
        self.encoder = Encoder()
        self.encoder.header_table_size = table_size

    def headers(self, stream: int, fields: Fields, ends: bool = False) -> bytes:
        """A header block in one frame."""
        flags = END_HEADERS | (END_STREAM if ends else 0)
        return frame(http2.HEADERS, flags, stream, self.encoder.encode(fields, huffman=False))

    def trailers(self, stream: int, fields: Fields | None = None) -> bytes:
        """The end of a call, with status OK unless another is given."""
        return self.headers(stream, OK if fields is None else fields, ends=True)

    def reply(self, stream: int, message: bytes) -> bytes:
        """A call's whole reply, as usual."""
        return self.headers(stream, BEGIN) + frame(DATA, 0, stream, prefixed(message)) + self.trailers(stream)

    def odd_reply(self, stream: int, message: bytes) -> bytes:
        """The reply in another form: interim headers, a block in two frames, DATA in pieces, padding, and more."""
        body = prefixed(message)
        block = self.encoder.encode([(b":status", b"103")])
        data = frame(http2.HEADERS, END_HEADERS, stream, block)
        block = self.encoder.encode(BEGIN)
        data += frame(http2.HEADERS, http2.PRIORITISED | PADDED, stream, b"\x02" + bytes(5) + block[:3] + bytes(2))
        data += frame(http2.CONTINUATION, END_HEADERS, stream, block[3:])
        data += frame(DATA, 0, stream) + frame(DATA, 0, stream, body[:3]) + frame(http2.PING, 0, 0, b"12345678")
        data += frame(DATA, PADDED, stream, b"\x07" + body[3:] + bytes(7)) + frame(99, 0xFF, stream, b"?")
        return data + http2.window_update(0, 7) + http2.window_update(stream, 7) + self.trailers(stream)


class Client:
    """A codec whose server has greeted it, and that server."""

    def __init__(self, table_size: int = 0, greeting: bytes = GREETING) -> None:
        self.codec = GrpcCodec(AUTHORITY)
        self.server = GrpcServerBytes(table_size)
        assert self.codec.feed(greeting + SETTINGS_ACK) == []
        assert self.codec.take_outgoing() == SETTINGS_ACK
        self.prepared = self.codec.prepare(PATH, b"request", 1.5)

    def start(self) -> int:
        """A new call's number."""
        assert self.codec.room()
        return self.codec.start(self.prepared)[0]

    def warm(self) -> None:
        """Has the codec see two usual replies, after which it knows their shape."""
        for _ in range(2):
            number = self.start()
            assert self.codec.feed(self.server.reply(number, b"warm")) == [(number, b"warm")]
        assert self.codec._shapes

    def fault(self, data: bytes) -> Fault:
        """The fault in which the call under way ends when these bytes come."""
        ((_, outcome),) = self.codec.feed(data)
        assert isinstance(outcome, Fault)
        return outcome
