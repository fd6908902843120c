"""The part of HTTP/2 that client and server share: bytes in, bytes out, no I/O and no clock.

``Endpoint`` decodes received frames one by one. The endpoint handles the frames of the connection itself: SETTINGS,
PING, WINDOW_UPDATE. The endpoint also joins the pieces of a header block, and removes padding. The endpoint returns
every other frame, as an ``Event``, to the owner of the streams: a client's codec or a server's session. ``outgoing``
gathers the bytes to send. The endpoint *holds* the part of a body that the peer's flow-control windows do not allow.
Later the endpoint moves this part to ``outgoing`` when a WINDOW_UPDATE or SETTINGS allows the part.

Rules: every fault of a peer is an ``Http2Error`` and ends the connection. By RFC 9113, 5.4.1, an endpoint may end the
connection also for a fault of one stream. A peer cannot make the endpoint use unbounded memory: frames (16,384 bytes),
header blocks and answers have limits. The endpoint ignores unknown frames, flags and settings.

Left out: priorities, server push, and a check that the peer keeps within its windows. The endpoint also ignores the
peer's limit of header lists, and the peer's size of the header table, since sent blocks use no table
(``header_blocks.py``).
"""

from collections.abc import Callable
from struct import Struct

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.http2 import ErrorCode, Http2Error, frame

STREAMS_UNTOLD = 1
"""Number of concurrent streams that the endpoint assumes until the peer's SETTINGS come. Every useful peer allows at
least one stream.
"""

ANSWERS_MAX = 1000
"""Largest number of a peer's PING and SETTINGS frames between two calls of ``take_outgoing``. Honest peers send fewer.
"""

_HEADER_BYTES = http2.HEADER.size
_U32 = Struct("!I")
_SETTING = Struct("!HI")
_WINDOW_UPDATE_HEADER = (4 << 8) | http2.WINDOW_UPDATE
PROBE = b"GOAWAY 1"
"""Payload of the PING that ``Endpoint.probe`` sends."""

_OF_CONNECTION = (http2.SETTINGS, http2.PING, http2.GOAWAY)
_PAYLOAD_BYTES = {http2.PRIORITY: 5, http2.RST_STREAM: 4, http2.PING: 8, http2.WINDOW_UPDATE: 4}

Event = tuple[int, int, bool, bytes]
"""Frame for the owner of the streams: kind, stream, True if the frame ends the stream, and content. The content is the
whole header block of HEADERS, the bytes of DATA without padding, or the payload of another frame. GOAWAY has stream 0.
"""


class _Held:
    """A stream's body, whose bytes from offset ``at`` on wait until the peer's flow-control windows allow them."""

    def __init__(self, body: bytes, end_stream: bool, after: bytes, credit: int) -> None:
        self.body = body
        self.at = 0
        self.end_stream = end_stream
        self.after = after
        self.credit = credit  # bytes that the peer has added to the stream's window


class Endpoint:
    """One end of a connection, client or server; see the module. Not thread-safe."""

    def __init__(self, window_bytes: int, block_bytes_max: int) -> None:
        """``window_bytes`` is the size of our flow-control window, which limits the peer's DATA on the connection.

        The owner announces the window. The endpoint renews the window when the peer has used half of the window. The
        owner announces and renews the windows of streams. ``block_bytes_max`` limits a header block.
        """
        self._grant_bytes = max(1, window_bytes // 2)
        self._block_bytes_max = block_bytes_max
        self._greeted = False
        self._block = bytearray()
        self._block_ends = False  # True: the unfinished block ends the stream
        self._answers = 0
        self.block_stream = 0
        """Stream with an unfinished header block, or 0. The next frame must be a CONTINUATION of this stream."""
        self.held: dict[int, _Held] = {}
        """By stream: bodies whose rest waits for the peer's flow-control windows. Only for reading."""
        self.outgoing = bytearray()
        """Bytes to send. ``take_outgoing`` takes these bytes."""
        self.received = 0
        """Number of received bytes of DATA for which the peer has got no WINDOW_UPDATE yet. Code that adds to
        ``received`` must call ``grant`` from time to time.
        """
        self.send_window = http2.WINDOW_DEFAULT
        """Number of bytes of DATA that the peer's window of the connection allows. Code that sends DATA without
        ``send_body`` must subtract the sent bytes.
        """
        self.stream_window = http2.WINDOW_DEFAULT
        """Number of bytes of DATA that the peer's initial window of a stream allows."""
        self.streams_max = STREAMS_UNTOLD
        """Number of concurrent streams that the peer allows."""
        self.heard = False
        """True once the peer has answered the PING of ``probe``."""
        self._probes = False
        self.pings = 0
        """Number of the peer's PINGs. The code that reads this field sets the field back to 0."""
        self.toil = 0
        """Cost of frames without a message, in credits of ``patience.py``, in addition to one credit for each frame.
        The code that reads this field sets the field back to 0.
        """

    def take(self, data: bytes, at: int) -> tuple[int, Event | None]:
        """Takes the frame at an offset. Returns the offset of the next frame, and the event for the owner of the
        streams.

        Returns ``at`` itself if the frame is not whole yet. The event is None if the owner has nothing to do. Raises
        Http2Error.
        """
        if len(data) - at < _HEADER_BYTES:
            return at, None
        head, flags, stream = http2.HEADER.unpack_from(data, at)
        start = at + _HEADER_BYTES
        if head == _WINDOW_UPDATE_HEADER and not stream and len(data) - start >= 4 and not self.block_stream:
            self._widen(_U32.unpack_from(data, start)[0])  # a short cut: some servers send this frame with every reply
            return start + 4, None
        stop = start + (head >> 8)
        if head >> 8 > http2.FRAME_BYTES_MAX or not self._greeted:
            self._check_greeting(head, flags)
        if stop > len(data):
            return at, None
        kind, stream = head & 0xFF, stream & http2.STREAM_MAX
        if self.block_stream and (kind != http2.CONTINUATION or stream != self.block_stream):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"frame {kind} inside a header block")
        taker = _TAKERS.get(kind)
        if taker is None:
            return stop, None
        payload = data[start:stop]
        _check(kind, stream, payload)
        return stop, taker(self, flags, stream, payload)

    def take_outgoing(self) -> bytes:
        """Removes and returns the bytes to send now."""
        if not self.outgoing:
            return b""
        data = bytes(self.outgoing)
        self.outgoing.clear()
        self._answers = 0
        return data

    def grant(self) -> None:
        """Sends the connection's WINDOW_UPDATE for the ``received`` bytes, once these bytes are half of the window."""
        if self.received >= self._grant_bytes:
            self.outgoing += http2.window_update(0, self.received)
            self.received = 0

    def probe(self) -> None:
        """Sends a PING. The peer's answer shows that the peer has received all bytes sent before the PING."""
        self._probes = True
        self.outgoing += frame(http2.PING, 0, 0, PROBE)

    # ---- sending bodies

    def send_body(self, stream: int, body: bytes, end_stream: bool, after: bytes = b"", credit: int = 0) -> bytes:
        """Encodes a stream's whole body, of at least one byte. Returns the frames that the peer's windows allow: the
        caller must send these frames. The endpoint holds the rest of the body.

        ``after`` has the bytes to send after the body, such as trailers. ``credit`` is the number of bytes that the
        peer has added to the stream's initial window so far.
        """
        held = _Held(body, end_stream, after, credit)
        frames = self._allowed(stream, held)
        if held.at < len(body):
            self.held[stream] = held
        return frames

    @property
    def block_bytes(self) -> int:
        """Number of bytes of an unfinished header block, plus 1; 0 if no header block is unfinished."""
        return len(self._block) + 1 if self.block_stream else 0

    @property
    def held_bytes(self) -> int:
        """Number of unsent bytes of the bodies in ``held``."""
        return sum(len(held.body) - held.at for held in self.held.values()) if self.held else 0

    def drop_all(self) -> None:
        """Forgets all bodies in ``held``."""
        self.held.clear()

    def drop(self, stream: int) -> bool:
        """Forgets the body of a stream in ``held``; returns True if ``held`` had such a body."""
        return self.held.pop(stream, None) is not None

    def _allowed(self, stream: int, held: _Held) -> bytes:
        """Removes from a held body, and returns, the frames that the peer's windows allow now. The bytes ``held.after``
        follow the last frame.
        """
        total = len(held.body)
        stop = min(total, held.at + max(0, min(self.send_window, self.stream_window + held.credit - held.at)))
        self.send_window -= stop - held.at
        frames = []
        for at in range(held.at, stop, http2.FRAME_BYTES_MAX):
            piece = held.body[at : min(at + http2.FRAME_BYTES_MAX, stop)]
            ends = held.end_stream and at + len(piece) == total
            frames.append(frame(http2.DATA, http2.END_STREAM if ends else 0, stream, piece))
        held.at = stop
        return b"".join((*frames, held.after) if stop == total else frames)

    def _send_held(self) -> None:
        """Moves the held bodies to ``outgoing``, oldest first, as far as the peer's windows allow."""
        for stream, held in list(self.held.items()):
            if self.send_window <= 0:
                break
            self._send_on(stream, held)

    def _send_on(self, stream: int, held: _Held) -> None:
        """Moves one held body to ``outgoing`` as far as the peer's windows allow."""
        self.outgoing += self._allowed(stream, held)
        if held.at == len(held.body):
            del self.held[stream]

    def _widen(self, count: int) -> None:
        """Adds the bytes of a WINDOW_UPDATE to the connection's send window, and sends held bodies."""
        window = self.send_window + (count & http2.WINDOW_MAX)
        if not self._greeted or window == self.send_window:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a WINDOW_UPDATE of 0, or before SETTINGS")
        if window > http2.WINDOW_MAX:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, f"a window of {window} bytes, allowed: {http2.WINDOW_MAX}")
        was_shut, self.send_window = self.send_window <= 0, window
        if was_shut:
            self._send_held()

    # ---- taking frames, one kind each

    def _check_greeting(self, head: int, flags: int) -> None:
        """Checks the length of a frame, and that the peer's first frame is SETTINGS. A peer that begins with another
        frame speaks no HTTP/2.

        GOAWAY may be the first frame of a peer that accepts no connection.
        """
        length, kind = head >> 8, head & 0xFF
        if not self._greeted and (kind != http2.SETTINGS or flags & http2.ACK) and kind != http2.GOAWAY:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the peer does not begin with SETTINGS: it speaks no HTTP/2")
        if length > http2.FRAME_BYTES_MAX:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes, allowed: {http2.FRAME_BYTES_MAX}")

    def _take_data(self, flags: int, stream: int, payload: bytes) -> Event:
        self.received += len(payload)
        self.grant()
        return http2.DATA, stream, bool(flags & http2.END_STREAM), _unpadded(payload, flags)

    def _take_headers(self, flags: int, stream: int, payload: bytes) -> Event | None:
        block = _unpadded(payload, flags)
        if flags & http2.PRIORITISED:
            if len(block) < 5:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short for their priority")
            _check_priority(stream, block)
            block = block[5:]
        if flags & http2.END_HEADERS:
            self._check_block(block)
            return http2.HEADERS, stream, bool(flags & http2.END_STREAM), block
        self.block_stream = stream
        self._block_ends = bool(flags & http2.END_STREAM)
        self._block += block
        return None

    def _take_continuation(self, flags: int, stream: int, payload: bytes) -> Event | None:
        if not self.block_stream:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a CONTINUATION of nothing")
        if not payload and not flags & http2.END_HEADERS:  # such frames cost the sender little, and may come for ever
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "a CONTINUATION without a byte")
        self._block += payload
        self.toil += 15  # an honest peer's header block has at most three or four CONTINUATION frames
        self._check_block(self._block)
        if not flags & http2.END_HEADERS:
            return None
        event = (http2.HEADERS, stream, self._block_ends, bytes(self._block))
        self.block_stream = 0
        self._block = bytearray()
        return event

    def _check_block(self, block: bytes | bytearray) -> None:
        if len(block) > self._block_bytes_max:
            detail = f"a header block of {len(block)} bytes or more, allowed: {self._block_bytes_max}"
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, detail)

    def _take_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if len(payload) % 6 or (flags & http2.ACK and payload):
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes")
        if flags & http2.ACK:
            return
        if not self._greeted:
            self._greeted = True
            self.streams_max = http2.STREAM_MAX  # unless the settings limit it
        for setting, value in _SETTING.iter_unpack(payload):
            self._apply(setting, value)
        self.toil += len(payload) // 48
        self._answer(frame(http2.SETTINGS, http2.ACK, 0))
        self.toil += len(self.held) // 2
        self._send_held()

    def _apply(self, setting: int, value: int) -> None:
        if setting == http2.INITIAL_WINDOW_SIZE:
            if value > http2.WINDOW_MAX:
                detail = f"a window of {value} bytes, allowed: {http2.WINDOW_MAX}"
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, detail)
            self.stream_window = value
        elif setting == http2.MAX_CONCURRENT_STREAMS:
            self.streams_max = value
        elif setting == http2.MAX_FRAME_SIZE and not http2.FRAME_BYTES_MAX <= value < 2**24:
            detail = f"frames of {value} bytes, allowed: {http2.FRAME_BYTES_MAX} and more"
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, detail)
        elif setting == http2.ENABLE_PUSH and value > 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"ENABLE_PUSH of {value}, allowed: 0 and 1")

    def _take_ping(self, flags: int, stream: int, payload: bytes) -> None:
        if flags & http2.ACK:
            self.heard = self.heard or (self._probes and payload == PROBE)
        else:
            self.pings += 1
            self._answer(frame(http2.PING, http2.ACK, 0, payload))

    def _answer(self, answer: bytes) -> None:
        self._answers += 1
        if self._answers > ANSWERS_MAX:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, f"over {ANSWERS_MAX} PING and SETTINGS at once")
        self.outgoing += answer

    def _take_window_update(self, flags: int, stream: int, payload: bytes) -> Event | None:
        count = _U32.unpack(payload)[0] & http2.WINDOW_MAX
        if not stream:
            self._widen(count)
            return None
        if not count:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a WINDOW_UPDATE of 0 on stream {stream}")
        held = self.held.get(stream)
        if held is not None:
            if self.stream_window + held.credit + count - held.at > http2.WINDOW_MAX:
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, f"a WINDOW_UPDATE of {count} bytes on stream {stream}")
            held.credit += count
            self._send_on(stream, held)
        return http2.WINDOW_UPDATE, stream, False, payload

    def _take_rst_stream(self, flags: int, stream: int, payload: bytes) -> Event:
        return http2.RST_STREAM, stream, True, payload

    def _take_goaway(self, flags: int, stream: int, payload: bytes) -> Event:
        if len(payload) < 8:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"GOAWAY of {len(payload)} bytes")
        return http2.GOAWAY, 0, False, payload

    def _take_priority(self, flags: int, stream: int, payload: bytes) -> None:
        _check_priority(stream, payload)

    def _take_push_promise(self, flags: int, stream: int, payload: bytes) -> None:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE, which no end here allows")


_TAKERS: dict[int, Callable[[Endpoint, int, int, bytes], Event | None]] = {
    http2.DATA: Endpoint._take_data,
    http2.HEADERS: Endpoint._take_headers,
    http2.PRIORITY: Endpoint._take_priority,
    http2.RST_STREAM: Endpoint._take_rst_stream,
    http2.SETTINGS: Endpoint._take_settings,
    http2.PUSH_PROMISE: Endpoint._take_push_promise,
    http2.PING: Endpoint._take_ping,
    http2.GOAWAY: Endpoint._take_goaway,
    http2.WINDOW_UPDATE: Endpoint._take_window_update,
    http2.CONTINUATION: Endpoint._take_continuation,
}


def _check(kind: int, stream: int, payload: bytes) -> None:
    """Checks a frame's length, if its kind has a fixed length, and its stream number. The stream number must be 0 for
    SETTINGS, PING and GOAWAY, may be any number for WINDOW_UPDATE, and must not be 0 for other frames.
    """
    if kind != http2.WINDOW_UPDATE and (kind in _OF_CONNECTION) == bool(stream):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"frame {kind} on stream {stream}")
    expected = _PAYLOAD_BYTES.get(kind)
    if expected is not None and len(payload) != expected:
        raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"frame {kind} of {len(payload)} bytes, allowed: {expected}")


def _check_priority(stream: int, payload: bytes) -> None:
    """Checks that a stream's priority does not depend on the stream itself. Ignores the priority."""
    if _U32.unpack_from(payload)[0] & http2.STREAM_MAX == stream:
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"stream {stream} depends on itself")


def _unpadded(payload: bytes, flags: int) -> bytes:
    """Returns the payload of a DATA or HEADERS frame without padding."""
    if not flags & http2.PADDED:
        return payload
    padding = payload[0] if payload else 0
    if padding >= len(payload):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "padding longer than its frame")
    return payload[1 : len(payload) - padding]
