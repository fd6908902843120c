"""gRPC for the lean client: unary calls on one HTTP/2 connection, bytes in and out. See ``codec.Codec``.

A request is encoded once, except for the stream's number. Nearly always a reply comes as HEADERS, DATA and trailers in
one read, and differs from earlier replies only in the stream's number and the message. The other bytes are the *shape*
of the reply. So a reply with a known shape is decoded by one look-up and a few comparisons. A reply in pieces, or with
an unknown shape, is decoded by ``rpc/wire/http2_endpoint.py``; then the codec learns the shape if possible.

A shape is valid while equal header blocks have the same meaning. The client announces a header table of size 0; after
that, equal blocks always have the same meaning. Before that, and with a server that still keeps a table,
``rpc/wire/header_blocks.py`` reports changes.

Left out: compression, which the client refuses; metadata except a token; streaming calls. Protocol: gRPC's
``PROTOCOL-HTTP2.md``.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from struct import error as PackError  # noqa: N812  # the library's name is a variable's
from typing import NamedTuple

from stock_service.rpc.errors import Fault, InternalFault, InvalidRequest, Overloaded, Unavailable
from stock_service.rpc.security import Metadata
from stock_service.rpc.wire import grpc_status, http2
from stock_service.rpc.wire.codec import Prepared, Reply
from stock_service.rpc.wire.grpc_status import Block, goaway_fault, reset_fault
from stock_service.rpc.wire.header_blocks import BlockError, BlockReader, encode_block
from stock_service.rpc.wire.http2 import ErrorCode, Http2Error
from stock_service.rpc.wire.http2_endpoint import Endpoint, Event

REQUEST_BYTES_MAX = (1 << 24) - 6
"""Largest request message, in bytes; a server of this project accepts 1 MiB by default."""

MESSAGE_BYTES_MAX = 4 << 20
"""Largest response message, in bytes: the limit of gRPC's own clients."""

HEADER_LIST_BYTES_MAX = 16_384
"""Largest header block, in bytes, and the largest list that it decodes to."""

PATH_BYTES_MAX = 8_192
"""Largest full name of a method, in bytes; a server of this project accepts 255."""

TIMEOUT_S_MAX = 99_999.0
"""The longest timeout that ``grpc-timeout`` can give in milliseconds, with its eight digits."""

_SHAPES_MAX = 64
"""Largest number of shapes at a time: each size of a message has its own shape."""

_PREFIX = Struct("!BI")
"""Prefix of a message: 1 if the message is compressed, otherwise 0; and the message's number of bytes."""

_NUMBER = Struct("!i")  # signed, so that no stream over STREAM_MAX can be packed
_CODE = Struct("!I")
_BEFORE_NUMBER = Struct("!IB")
_HEADER_BYTES = http2.HEADER.size

_NONE_LEFT = http2.STREAM_MAX + 2
"""Value of the next stream's number when no number is left; stream numbers increase by two."""

_USUAL = (
    (http2.HEADERS, http2.END_HEADERS),
    (http2.DATA, 0),
    (http2.HEADERS, http2.END_HEADERS | http2.END_STREAM),
)
"""Kinds and flags of a usual reply."""

_HELLO = (
    http2.PREFACE
    + http2.settings(
        (http2.HEADER_TABLE_SIZE, 0),
        (http2.ENABLE_PUSH, 0),
        (http2.INITIAL_WINDOW_SIZE, http2.WINDOW_MAX),  # no stream's window is renewed: each has room for a message
        (http2.MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES_MAX),
    )
    + http2.window_update(0, http2.WINDOW_MAX - http2.WINDOW_DEFAULT)
)


class _Shape(NamedTuple):
    """Shape of a usual reply, from the message on: the ``Struct`` that unpacks the reply, and the bytes that the reply
    must have.
    """

    unpack: Callable[[bytes, int], tuple[bytes, bytes, bytes, int, bytes]]
    prefix: bytes
    """Prefix of the message."""
    trailers_start: bytes
    """Header of the trailers' frame, up to the stream."""
    trailers: bytes
    reply_bytes: int
    """Number of bytes of the whole reply, with HEADERS."""
    data_bytes: int
    """Number of bytes that flow control counts."""


class GrpcCodec:
    """See ``codec.Codec``."""

    def __init__(self, authority: str, token: str = "", metadata: Metadata = ()) -> None:
        self.hello = _HELLO
        self.preceded = False
        self._authority, self._shown = authority, (token, metadata)
        self._endpoint = Endpoint(http2.WINDOW_MAX, HEADER_LIST_BYTES_MAX)
        self._blocks = BlockReader(grpc_status.part, grpc_status.parse, HEADER_LIST_BYTES_MAX)
        self._open: dict[int, bytearray | None] = {}  # DATA of each call so far; None: no HEADERS have come
        self._next = 1
        self._pending = b""  # the beginning of a frame
        self._lost: Unavailable | None = None
        self._changes = 0  # ``BlockReader.changes`` when the shapes were learnt
        self._shapes: dict[bytes, _Shape] = {}  # by the bytes between the stream numbers of the first two frames
        self._head = _NUMBER  # beginning of a usual reply, up to the second number
        self._head_bytes = http2.WINDOW_MAX  # this much: none is known
        self._head_start = b""

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """See ``codec.Codec``. ``timeout_s`` is ``TIMEOUT_S_MAX`` at most."""
        if len(payload) > REQUEST_BYTES_MAX:
            raise InvalidRequest(f"a request of {len(payload)} bytes, allowed: {REQUEST_BYTES_MAX}")
        block = _request_block(path, self._authority, max(1, round(timeout_s * 1000)), *self._shown)
        body = _PREFIX.pack(0, len(payload)) + payload
        head = _BEFORE_NUMBER.pack(len(block) << 8 | http2.HEADERS, http2.END_HEADERS)
        return head, block + _BEFORE_NUMBER.pack(len(body) << 8 | http2.DATA, http2.END_STREAM), body

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """See ``codec.Codec``. Raises Unavailable if the connection takes no more calls."""
        head, middle, body = prepared
        stream = self._next
        try:
            number = _NUMBER.pack(stream)
        except PackError:
            raise self._unavailable("takes no more calls") from None
        self._next = stream + 2
        self._open[stream] = None
        endpoint = self._endpoint
        size = len(body)
        if size > endpoint.send_window or size > endpoint.stream_window or size > http2.FRAME_BYTES_MAX:
            block = middle[: -_BEFORE_NUMBER.size]
            return stream, http2.headers(stream, block, False) + endpoint.send_body(stream, body, True)
        endpoint.send_window -= size
        return stream, head + number + middle + number + body

    def room(self) -> bool:
        """See ``codec.Codec``. Also False while a request waits for the server's flow control.

        Uses only half of the streams that the server allows: grpcio counts a call as open for some time after its
        answer, and refuses calls over its limit.
        """
        endpoint = self._endpoint
        allowed = endpoint.streams_max - (endpoint.streams_max >> 1)
        return len(self._open) < allowed and self._next < _NONE_LEFT and not endpoint.held

    def take_outgoing(self) -> bytes:
        """See ``codec.Codec``. After ``feed`` has raised, these bytes tell the server the reason."""
        endpoint = self._endpoint
        return endpoint.take_outgoing() if endpoint.outgoing else b""

    def abandon(self, call: int) -> bytes:
        """See ``codec.Codec``."""
        if call not in self._open:
            return b""
        del self._open[call]
        self._endpoint.drop(call)
        return http2.rst_stream(call, ErrorCode.CANCEL)

    def feed(self, data: bytes) -> list[Reply]:
        """See ``codec.Codec``."""
        if self._lost is not None:
            raise self._lost
        if self._pending:
            data = self._pending + data
            self._pending = b""
        done: list[Reply] = []
        endpoint, at, end = self._endpoint, 0, len(data)
        try:
            while True:
                if end - at >= self._head_bytes and not endpoint.block_stream:
                    at = self._take_usual(data, at, done)
                if at == end:
                    break
                if not done:
                    self.preceded = True
                following, event = endpoint.take(data, at)
                if following == at:
                    self._pending = data[at:]
                    break
                if event is not None:
                    self._on(event, done)
                    if event[0] == http2.HEADERS:
                        self._learn(data, at)
                at = following
            endpoint.grant()
        except (Http2Error, BlockError) as error:
            self._lose(error, done)
        return done

    # ---- the usual reply

    def _take_usual(self, data: bytes, at: int, done: list[Reply]) -> int:
        """Takes replies of known shapes from an offset on; returns the offset of the first other bytes."""
        head, head_start, head_bytes = self._head.unpack_from, self._head_start, self._head_bytes
        calls, shapes, endpoint, end = self._open, self._shapes, self._endpoint, len(data)
        while end - at >= head_bytes:
            start, stream, between, again = head(data, at)
            shape = shapes.get(between)
            if shape is None or start != head_start or again != stream or calls.get(stream, b"") is not None:
                break
            unpack, usual_prefix, usual_start, usual_trailers, reply_bytes, data_bytes = shape
            if end - at < reply_bytes:
                break
            prefix, message, start, again, trailers = unpack(data, at + head_bytes)
            if prefix != usual_prefix or start != usual_start or again != stream or trailers != usual_trailers:
                break
            del calls[stream]
            endpoint.received += data_bytes
            done.append((stream, message))
            at += reply_bytes
        return at

    def _learn(self, data: bytes, at: int) -> None:
        """Remembers the shape of the reply at an offset, if the reply is whole and usual."""
        frames = []
        for kind, flags in _USUAL:
            if len(data) - at < _HEADER_BYTES:
                return
            head, its_flags, _ = http2.HEADER.unpack_from(data, at)
            stop = at + _HEADER_BYTES + (head >> 8)
            if head & 0xFF != kind or its_flags != flags or stop > len(data):
                return
            frames.append((data[at : at + _BEFORE_NUMBER.size], data[at + _HEADER_BYTES : stop]))
            at = stop
        (start, block), (data_start, body), (trailers_start, trailers) = frames
        message_bytes = len(body) - _PREFIX.size
        begins, ends = self._blocks.peek(block), self._blocks.peek(trailers)
        if begins is None or not begins.begins or ends is None or ends.grpc_status:
            return
        if body[: _PREFIX.size] != _PREFIX.pack(0, max(0, message_bytes)):
            return
        between = block + data_start
        if start != self._head_start or self._head.size != 2 * _NUMBER.size + len(start) + len(between):
            self._shapes.clear()
            self._head_start = start
            self._head = Struct(f"!{len(start)}sI{len(between)}sI")
            self._head_bytes = self._head.size
        elif len(self._shapes) >= _SHAPES_MAX:
            return
        unpack = Struct(f"!{_PREFIX.size}s{message_bytes}s{len(trailers_start)}sI{len(trailers)}s")
        reply_bytes = self._head_bytes + unpack.size
        prefix = body[: _PREFIX.size]
        shape = _Shape(unpack.unpack_from, prefix, trailers_start, trailers, reply_bytes, len(body))
        self._shapes[between] = shape

    # ---- the long way

    def _on(self, event: Event, done: list[Reply]) -> None:
        """Handles an event of one call or of the connection. Raises Http2Error, BlockError."""
        kind, stream, ends, payload = event
        if kind == http2.GOAWAY:
            self._on_goaway(payload, done)
            return
        if kind == http2.HEADERS:
            block = self._blocks.read(payload)  # of any call, since later blocks may refer to it
            if self._blocks.changes != self._changes:
                self._changes = self._blocks.changes
                self._shapes.clear()
        if not stream & 1 or stream >= self._next:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"frame {kind} on stream {stream}, which no call has")
        if stream not in self._open:  # the call is answered or given up
            return
        if kind == http2.HEADERS:
            self._on_headers(stream, ends, block, done)
        elif kind == http2.DATA:
            self._on_data(stream, ends, payload, done)
        elif kind == http2.RST_STREAM:
            self._complete(stream, reset_fault(_CODE.unpack(payload)[0], self._authority), True, done)

    def _on_headers(self, stream: int, ends: bool, block: Block, done: list[Reply]) -> None:
        """Handles a call's first header block, its trailers, or one block that is both."""
        body = self._open[stream]
        if ends:
            self._complete(stream, block.fault(self._authority) or self._message(body), True, done)
        elif body is not None:
            self._complete(stream, InternalFault(f"{self._authority} sent headers twice"), False, done)
        elif block.begins:
            self._open[stream] = bytearray()
        elif not block.is_interim:
            outcome = block.fault(self._authority) or InternalFault(f"{self._authority} sent a status and went on")
            self._complete(stream, outcome, False, done)

    def _on_data(self, stream: int, ends: bool, payload: bytes, done: list[Reply]) -> None:
        """Handles a piece of a call's message."""
        body = self._open[stream]
        fault: Fault | None = None
        if body is None:
            fault = InternalFault(f"{self._authority} sent a message before its headers")
        else:
            body += payload
            if len(body) >= _PREFIX.size:
                compressed, size = _PREFIX.unpack_from(body)
                if compressed:
                    fault = InternalFault(f"{self._authority} compressed its message, which nobody asked for")
                elif size > MESSAGE_BYTES_MAX:
                    fault = Overloaded(f"a message of {size} bytes, allowed: {MESSAGE_BYTES_MAX}")
                elif len(body) > _PREFIX.size + size:
                    fault = InternalFault(f"{self._authority} sent more than one message")
        if ends and fault is None:
            fault = InternalFault(f"{self._authority} ended the call without a grpc-status")
        if fault is not None:
            self._complete(stream, fault, ends, done)

    def _message(self, body: bytearray | None) -> bytes | Fault:
        """The message of a call that ended with OK, or the fault if the message is missing or not whole."""
        if not body:
            return InternalFault(f"{self._authority} sent the status OK and no message")
        if len(body) < _PREFIX.size or len(body) < _PREFIX.size + _PREFIX.unpack_from(body)[1]:
            return InternalFault(f"{self._authority} sent the status OK and half a message")
        return bytes(memoryview(body)[_PREFIX.size :])

    def _complete(self, stream: int, outcome: bytes | Fault, ended: bool, done: list[Reply]) -> None:
        """Ends a call. Tells the server, unless the server has ended the call and the request was sent whole."""
        del self._open[stream]
        if self._endpoint.drop(stream) or not ended:
            self._endpoint.outgoing += http2.rst_stream(stream, ErrorCode.CANCEL)
        done.append((stream, outcome))

    def _on_goaway(self, payload: bytes, done: list[Reply]) -> None:
        """Handles GOAWAY: the server takes no more calls. Calls with a number above GOAWAY's last number end; other
        calls may be answered.
        """
        last, code, detail = http2.parse_goaway(payload)
        self._next = _NONE_LEFT
        fault = goaway_fault(code, detail, self._authority)
        for stream in [stream for stream in self._open if stream > last]:
            self._complete(stream, fault, True, done)

    def _lose(self, error: Http2Error | BlockError, done: list[Reply]) -> None:
        """Ends the use of the connection. If ``done`` has completed calls, the open calls end with Unavailable;
        otherwise raises Unavailable.
        """
        code = error.code if isinstance(error, Http2Error) else ErrorCode.COMPRESSION_ERROR
        self._endpoint.outgoing += http2.goaway(0, code, str(error))
        self._next = _NONE_LEFT
        self._lost = self._unavailable(f"lost: {error}")
        if not done:
            raise self._lost from error
        done += [(stream, self._lost) for stream in self._open]
        self._open.clear()

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(f"connection to {self._authority} {why}")


@lru_cache(256)
def _request_block(path: str, authority: str, timeout_ms: int, token: str, metadata: Metadata) -> bytes:
    """The header block of a request. Raises InvalidRequest."""
    if len(path.encode()) > PATH_BYTES_MAX:
        raise InvalidRequest(f"a method's name of {len(path.encode())} bytes, allowed: {PATH_BYTES_MAX}")
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.encode()),
        (b":authority", authority.encode()),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        (b"user-agent", b"stock-service-load"),
        (b"grpc-timeout", b"%dm" % timeout_ms),
    ]
    if token:
        fields.append((b"authorization", b"Bearer " + token.encode()))
    fields += [(key.encode(), value.encode()) for key, value in metadata]
    return encode_block(fields)
