"""gRPC codec of the lean client (``codec.Codec``): unary calls on one HTTP/2 connection, bytes in and out, no I/O.

``prepare`` encodes a request once, except for the stream's number. Nearly always a reply comes as HEADERS, DATA and
trailers in one read, and differs from earlier replies only in the stream's number and the message. The other bytes are
the *shape* of the reply. The codec decodes a reply of a known shape by one look-up and a few comparisons. The codec
decodes any other reply with ``rpc/wire/http2_endpoint.py``, and then remembers the reply's shape if the reply has the
usual three frames.

A shape is valid while equal header blocks have the same meaning. Equal blocks have the same meaning if the server's
header table has size 0, as the client's SETTINGS demand. When the server changes the size of this table,
``rpc/wire/header_blocks.py`` counts the change, and the codec forgets all shapes.

Left out: compression, which the client refuses; metadata of a reply; streaming calls. Protocol: gRPC's
``PROTOCOL-HTTP2.md``.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from struct import error as PackError  # noqa: N812  # the library's name begins in lower case
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
"""Limit of a request message, in bytes. A server of this project accepts 1 MiB by default."""

MESSAGE_BYTES_MAX = 4 << 20
"""Limit of a response message, in bytes. gRPC's own clients have the same limit."""

HEADER_LIST_BYTES_MAX = 16_384
"""Limit of a response's header block (encoded), and limit of its header list (decoded), in bytes."""

PATH_BYTES_MAX = 8_192
"""Limit of a method's full name, in bytes. A server of this project accepts 255 bytes."""

TIMEOUT_S_MAX = 99_999.0
"""Largest time limit, in seconds, that ``grpc-timeout`` can state in milliseconds with its eight digits."""

_SHAPES_MAX = 64
"""Largest number of remembered shapes. Replies with messages of different lengths have different shapes."""

_PREFIX = Struct("!BI")
"""Prefix of a message: one byte, which is 1 for a compressed message, else 0; then the message's length in four bytes.
"""

_NUMBER = Struct("!i")  # signed, so that packing a stream number over STREAM_MAX fails
_CODE = Struct("!I")
_BEFORE_NUMBER = Struct("!IB")
_HEADER_BYTES = http2.HEADER.size

_NONE_LEFT = http2.STREAM_MAX + 2
"""Value of ``_next`` when the connection can begin no further call. Stream numbers of a client are odd."""

_USUAL = (
    (http2.HEADERS, http2.END_HEADERS),
    (http2.DATA, 0),
    (http2.HEADERS, http2.END_HEADERS | http2.END_STREAM),
)
"""Kinds and flags of the three frames of a usual reply."""

_HELLO = (
    http2.PREFACE
    + http2.settings(
        (http2.HEADER_TABLE_SIZE, 0),
        (http2.ENABLE_PUSH, 0),
        (http2.INITIAL_WINDOW_SIZE, http2.WINDOW_MAX),  # room for the largest message, so no stream's window is renewed
        (http2.MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES_MAX),
    )
    + http2.window_update(0, http2.WINDOW_MAX - http2.WINDOW_DEFAULT)
)


class _Shape(NamedTuple):
    """Shape of a usual reply, from the message's prefix to the end of the reply. The shape has a function that unpacks
    these bytes, and the values that the unpacked bytes must have.
    """

    unpack: Callable[[bytes, int], tuple[bytes, bytes, bytes, int, bytes]]
    prefix: bytes
    """Prefix of the message."""
    trailers_start: bytes
    """Header of the trailers' frame, up to the stream's number."""
    trailers: bytes
    reply_bytes: int
    """Number of bytes of all three frames of the reply."""
    data_bytes: int
    """Number of bytes of the reply that flow control counts."""


class GrpcCodec:
    """Client's side of a gRPC connection (``codec.Codec``). The number of a call is the number of its HTTP/2 stream."""

    def __init__(self, authority: str, token: str = "", metadata: Metadata = ()) -> None:
        self.hello = _HELLO
        self.preceded = False
        self._authority, self._shown = authority, (token, metadata)
        self._endpoint = Endpoint(http2.WINDOW_MAX, HEADER_LIST_BYTES_MAX)
        self._blocks = BlockReader(grpc_status.part, grpc_status.parse, HEADER_LIST_BYTES_MAX)
        self._open: dict[int, bytearray | None] = {}  # by stream: the DATA received; None: no response HEADERS yet
        self._next = 1
        self._pending = b""  # received bytes of an unfinished frame
        self._lost: Unavailable | None = None
        self._changes = 0  # value of ``BlockReader.changes`` when ``_shapes`` were remembered
        self._shapes: dict[bytes, _Shape] = {}  # by the bytes between the stream numbers of HEADERS and DATA
        self._head = _NUMBER  # unpacks a usual reply from its first byte to DATA's stream number
        self._head_bytes = http2.WINDOW_MAX  # size of ``_head``; WINDOW_MAX while no shape is known
        self._head_start = b""  # the bytes before the stream number of HEADERS

    def prepare(self, path: str, payload: bytes, timeout_s: float) -> Prepared:
        """Encodes a request in three pieces; the stream's number belongs between the pieces. See ``codec.Codec``.

        ``timeout_s`` is ``TIMEOUT_S_MAX`` at most.
        """
        if len(payload) > REQUEST_BYTES_MAX:
            raise InvalidRequest(f"a request of {len(payload)} bytes, allowed: {REQUEST_BYTES_MAX}")
        block = _request_block(path, self._authority, max(1, round(timeout_s * 1000)), *self._shown)
        body = _PREFIX.pack(0, len(payload)) + payload
        head = _BEFORE_NUMBER.pack(len(block) << 8 | http2.HEADERS, http2.END_HEADERS)
        return head, block + _BEFORE_NUMBER.pack(len(body) << 8 | http2.DATA, http2.END_STREAM), body

    def start(self, prepared: Prepared) -> tuple[int, bytes]:
        """Begins a call; see ``codec.Codec``. Raises Unavailable if the connection takes no more calls."""
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
        """Returns True if another call may be started; see ``codec.Codec``. Returns False also while a request waits
        for the server's flow-control windows.

        Allows only half of the calls that the server allows. A server in grpcio counts a call as open for some time
        after the reply, and refuses calls over its limit.
        """
        endpoint = self._endpoint
        allowed = endpoint.streams_max - (endpoint.streams_max >> 1)
        return len(self._open) < allowed and self._next < _NONE_LEFT and not endpoint.held

    def take_outgoing(self) -> bytes:
        """Takes the protocol's own bytes to send; see ``codec.Codec``. After ``feed`` has raised Unavailable, the bytes
        are a GOAWAY with the reason.
        """
        endpoint = self._endpoint
        return endpoint.take_outgoing() if endpoint.outgoing else b""

    def abandon(self, call: int) -> bytes:
        """Gives up a call, and returns the RST_STREAM frame; see ``codec.Codec``. Returns no bytes for a call that is
        over.
        """
        if call not in self._open:
            return b""
        del self._open[call]
        self._endpoint.drop(call)
        return http2.rst_stream(call, ErrorCode.CANCEL)

    def feed(self, data: bytes) -> list[Reply]:
        """Takes received bytes, and returns the replies that the bytes complete; see ``codec.Codec``."""
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
        """Decodes the replies of known shapes that begin at the offset ``at``, and appends these replies to ``done``.
        Returns the offset after these replies.
        """
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

    # ---- any other reply

    def _on(self, event: Event, done: list[Reply]) -> None:
        """Handles a frame of one call, or the server's GOAWAY. Raises Http2Error, BlockError."""
        kind, stream, ends, payload = event
        if kind == http2.GOAWAY:
            self._on_goaway(payload, done)
            return
        if kind == http2.HEADERS:
            block = self._blocks.read(payload)  # also for a call that is over: later blocks may refer to this block
            if self._blocks.changes != self._changes:
                self._changes = self._blocks.changes
                self._shapes.clear()
        if not stream & 1 or stream >= self._next:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"frame {kind} on stream {stream}, which no call has")
        if stream not in self._open:  # the call is answered or abandoned
            return
        if kind == http2.HEADERS:
            self._on_headers(stream, ends, block, done)
        elif kind == http2.DATA:
            self._on_data(stream, ends, payload, done)
        elif kind == http2.RST_STREAM:
            self._complete(stream, reset_fault(_CODE.unpack(payload)[0], self._authority), True, done)

    def _on_headers(self, stream: int, ends: bool, block: Block, done: list[Reply]) -> None:
        """Handles a header block of a call: response headers, trailers, or both in one block."""
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
        """Returns the message of a call that ended with OK. Returns a fault if the message is missing or not whole."""
        if not body:
            return InternalFault(f"{self._authority} sent the status OK and no message")
        if len(body) < _PREFIX.size or len(body) < _PREFIX.size + _PREFIX.unpack_from(body)[1]:
            return InternalFault(f"{self._authority} sent the status OK and half a message")
        return bytes(memoryview(body)[_PREFIX.size :])

    def _complete(self, stream: int, outcome: bytes | Fault, ended: bool, done: list[Reply]) -> None:
        """Ends a call, and appends its outcome to ``done``. ``ended`` is True if the server has ended the call.

        Sends RST_STREAM if the server has not ended the call, or if a part of the request was not sent.
        """
        del self._open[stream]
        if self._endpoint.drop(stream) or not ended:
            self._endpoint.outgoing += http2.rst_stream(stream, ErrorCode.CANCEL)
        done.append((stream, outcome))

    def _on_goaway(self, payload: bytes, done: list[Reply]) -> None:
        """Handles GOAWAY: this connection begins no more calls. Calls with a higher stream number than GOAWAY's end
        with a fault. The server may still answer the other calls.
        """
        last, code, detail = http2.parse_goaway(payload)
        self._next = _NONE_LEFT
        fault = goaway_fault(code, detail, self._authority)
        for stream in [stream for stream in self._open if stream > last]:
            self._complete(stream, fault, True, done)

    def _lose(self, error: Http2Error | BlockError, done: list[Reply]) -> None:
        """Ends the use of the connection after an error. Raises Unavailable if ``done`` is empty. Otherwise appends
        Unavailable to ``done`` for each open call.
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
    """Encodes the header block of a request. Raises InvalidRequest for a path that is too long."""
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
