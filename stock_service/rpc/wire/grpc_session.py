"""State machine of one connection of a gRPC server, without I/O: bytes in, requests out; replies in, bytes out.

A stream of HTTP/2 is one call. "The windows" are the client's flow-control windows. The states of a call:

| state | event | next | action of the session |
|---|---|---|---|
| idle | HEADERS within MAX_CONCURRENT_STREAMS | half | none yet: a call takes no worker before its message is whole |
| idle | HEADERS over MAX_CONCURRENT_STREAMS | closed | RST_STREAM, REFUSED_STREAM |
| idle | HEADERS that are malformed by HTTP/2's rules | closed | RST_STREAM, PROTOCOL_ERROR |
| idle | HEADERS after a GOAWAY with a smaller number | closed | nothing: the client may send the call elsewhere |
| half | the message is whole, and the client ends the call | open | returns the request |
| half | the client ends a call that must be refused | closed | sends an HTTP or gRPC status |
| half | too long a message, two messages, or half a message | closed | gRPC status; RST_STREAM if the call goes on |
| half | the server drains | closed | UNAVAILABLE, RST_STREAM |
| open | a reply that the windows allow | closed | sends the reply |
| open | a reply that the windows do not allow | held | sends the part that the windows allow |
| held | WINDOW_UPDATE, SETTINGS | held, closed | sends the part that the windows allow now |
| half, open, held | RST_STREAM | closed | forgets the call; drops its request, if no worker has the request yet |
| half, open, held | a wrong frame | closed | RST_STREAM, or GOAWAY if the connection cannot continue |
| all of these | a frame that breaks the connection | closed | GOAWAY |

A call whose method streams (``Kind``) is *kept*: each message becomes a request, one after the other. ``Kind`` states
when a kept call ends. The end of a STREAMED call is also a request. The end of a watch when the server drains is a
request, too.

A *usual* call arrives whole in two frames: HEADERS with a short plain block (``header_blocks.py``), and DATA that ends
the stream. Nearly all calls of all clients are usual. ``_cut_usual`` brings a usual call to the state open at once.

``patience.py`` limits floods. The limits of streams, messages and header lists bound a connection's memory. Left out: a
check that a client keeps within the server's windows, since the size of a message is limited anyway.
"""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.grpc_call_table import OLD, CallTable
from stock_service.rpc.wire.grpc_calls import PLAIN, GrpcRequest, IncomingCall, unfolds_bytes
from stock_service.rpc.wire.grpc_heads import Head, Heads, Kind, Refusal, part
from stock_service.rpc.wire.grpc_replies import HEADER_BLOCK_BYTES_MAX, HEADER_LIST_BYTES_MAX, hello
from stock_service.rpc.wire.header_blocks import KNOWN_BYTES_MAX, BlockError, BlockReader, ListTooLong
from stock_service.rpc.wire.http2 import ErrorCode, Http2Error
from stock_service.rpc.wire.http2_endpoint import Endpoint, Event
from stock_service.rpc.wire.patience import Patience

_DATA_START = Struct("!IBIBI")  # the header of DATA, and its message's prefix
_DATA_FEW = 64
"""A DATA frame with fewer bytes than this is *tiny*. Tiny frames cost the receiver more time than the sender."""

_NEW_BLOCK, _NEW_BYTES, _FIELDS = 4, 512, 16
"""Cost of a new header block whose call fails: ``_NEW_BLOCK`` credits, plus one credit for each ``_NEW_BYTES`` bytes of
new fields, plus one credit for each ``_FIELDS`` fields.
"""

_NEVER_MEANT = 8
"""Factor by which the cost of a malformed block is multiplied: no client library makes such a block."""

_UNFOLDED_BYTES, _UNFOLDED_NS = 4096, 4096
"""Number of decompressed bytes that cost one credit, and time in nanoseconds to decompress these bytes."""

TOIL_LEAST, TOIL_A_CALL, TOIL_MOST = 16, 4, 400
"""*Toil* is work that a client gives the server without a request, counted in credits. The client owes these credits,
up to ``TOIL_MOST``, and *toils* if it owes over ``TOIL_LEAST``: the server then reads the client's bytes in small
pieces. Each call pays back ``TOIL_A_CALL`` credits, since honest clients also send WINDOW_UPDATE and PING.
"""


class SessionError(FramingError):
    """Error that ends a connection. ``goaway`` is the GOAWAY frame that tells the client the reason."""

    def __init__(self, error: Http2Error | BlockError, last: int, requests: Sequence[GrpcRequest]) -> None:
        super().__init__(str(error), requests)
        code = error.code if isinstance(error, Http2Error) else ErrorCode.COMPRESSION_ERROR
        self.goaway = http2.goaway(last, code, str(error))


class GrpcSession:
    """Implementation of ``served_stream.Session`` for gRPC; see the module. The caller holds the connection's lock."""

    def __init__(
        self, kinds: Mapping[bytes, Kind], message_bytes_max: int, streams_max: int, now_ns: Callable[[], int]
    ) -> None:
        """``kinds`` has the kind of every method, by path. A message has ``message_bytes_max`` bytes at most."""
        self._endpoint = Endpoint(http2.WINDOW_MAX, HEADER_BLOCK_BYTES_MAX)
        self._endpoint.outgoing += hello(message_bytes_max, streams_max)
        self._blocks = BlockReader(part, Heads(kinds).head, HEADER_LIST_BYTES_MAX)
        self._known = self._blocks.known
        self._message_bytes_max = message_bytes_max
        self._patience = Patience(now_ns)
        self._pending = b""  # received bytes of an unfinished frame
        self._unread = http2.PREFACE  # the part of the preface that has not come
        self._cuts = False  # True: ``_cut_usual`` may be used: a call has come, and the server does not drain
        self._calls = CallTable(self._endpoint, streams_max)
        self.outgoing, self.held, self.ready = self._endpoint.outgoing, self._endpoint.held, self._calls.ready
        """Bytes to send, replies whose rest waits, requests that may begin; see ``served_stream.Session``."""
        self.admit, self.renew = self._calls.admit, self._calls.renew
        """``CallTable.admit`` and ``CallTable.renew``."""
        self._unpaid = 0  # credits of toil that no call has paid back
        self._heavy = 0  # credits for costly calls (large headers, compressed messages) since the last ``_count_toil``
        self.toils = True
        """True if the server must read the connection in small pieces."""
        self.later_ns = 0
        """Estimated time, in nanoseconds, to decompress the messages of the last bytes."""
        self._draining = self._lost = False
        self.ended = False
        """True once the session takes no further calls, and the client has sent every earlier call completely."""

    # ---- queries of the server

    @property
    def pending_bytes(self) -> int:
        """Number of bytes of unfinished frames, blocks and messages, plus 1 for each unfinished call or block."""
        return self._calls.pending_bytes

    @property
    def held_bytes(self) -> int:
        """Number of bytes of replies that the endpoint holds, and of waiting messages of streaming calls."""
        return self._endpoint.held_bytes + self._calls.waiting_bytes

    @property
    def occupied(self) -> bool:
        """True if a call of a streaming method is open."""
        return bool(self._calls.kept)

    @property
    def reads_on(self) -> bool:
        """True until ``lose``: the rest of a reply may need a WINDOW_UPDATE from the client."""
        return not self._lost

    def take_outgoing(self) -> bytes:
        """Removes and returns the bytes to send now."""
        return self._endpoint.take_outgoing()

    def take_interim(self) -> bytes:
        """Returns no bytes, since ``take_outgoing`` returns all bytes to send."""
        return b""

    def take_ready(self) -> Sequence[GrpcRequest]:
        """Removes and returns the requests of streaming calls that waited for an earlier answer, and may begin."""
        ready = list(self.ready)
        self.ready.clear()
        return ready

    # ---- bytes in

    def feed(self, data: bytes) -> list[GrpcRequest]:
        """Takes received bytes. Returns the requests that the bytes complete, in order. Appends frames to ``outgoing``.
        Raises SessionError, with the requests before the error, if the connection must end.
        """
        requests: list[GrpcRequest] = []
        if self._lost:
            return requests
        at = self.later_ns = 0
        if self._pending:
            data = self._pending + data
        if self._cuts and not self._endpoint.block_stream:
            at = self._cut_usual(data, 0, requests)
            if at == len(data) and not self._pending:
                self._endpoint.grant()
                self.toils = False
                if self._unpaid:
                    self._count_toil(0, len(requests))
                return requests
        self._feed_on(data, at, requests)
        return requests

    def _feed_on(self, data: bytes, at: int, requests: list[GrpcRequest]) -> None:
        """Handles all frames from the offset ``at`` on, usual or not. Raises SessionError."""
        endpoint, end, toiled = self._endpoint, len(data), 0
        try:
            if self._unread:
                at = self._greet(data)
            while at < end:
                following, event = endpoint.take(data, at)
                if following == at:
                    break
                if event is not None:
                    self._on(event, requests)
                toil = endpoint.toil + (event is None or event[0] > http2.HEADERS or _dribbles(event))
                if toil:
                    endpoint.toil = 0
                    toiled += toil
                    self._spend(toil)
                    if endpoint.pings:
                        self._on_ping()
                    if endpoint.heard and not self._draining:  # the client has received the first GOAWAY
                        self._draining, self._cuts = True, False
                        self._calls.say_goaway(self._calls.last, OLD)
                at = following
                if self._cuts and not endpoint.block_stream:
                    at = self._cut_usual(data, at, requests)
            endpoint.grant()
            requests += self._calls.settle_kept()
            self._count_toil(toiled + self._heavy, len(requests))
            self._heavy = 0
        except (Http2Error, BlockError) as error:
            self.lose()
            raise SessionError(error, self._calls.last, requests) from error
        self._pending = data[at:]
        self._count_pending()
        self._calls.count()
        self.ended = self._draining and not (self._calls.half or self._calls.kept)

    def _count_pending(self) -> None:
        """Computes ``pending_bytes`` again."""
        self._calls.pending_bytes = len(self._pending) + self._endpoint.block_bytes + self._calls.half_bytes

    def _cut_usual(self, data: bytes, at: int, requests: list[GrpcRequest]) -> int:
        """Appends the usual calls at the offset ``at`` to ``requests``. Returns the offset after these calls."""
        known, table = self._known, self._calls
        calls, end, last, room, endpoint = table.open, len(data), table.last, table.room, self._endpoint
        unpack_header, unpack_data = http2.HEADER.unpack_from, _DATA_START.unpack_from
        while end - at > 23:
            head, flags, stream = unpack_header(data, at)
            start = at + 9 + (head >> 8)
            if flags != http2.END_HEADERS or end - start < 14 or head & 0xFF != http2.HEADERS:
                break
            length, flags, again, compressed, size = unpack_data(data, start)
            stop = start + 14 + size
            if stop > end or again != stream or flags != http2.END_STREAM or length != (size + 5) << 8 or compressed:
                break
            if not last < stream <= http2.STREAM_MAX or not stream & 1 or len(calls) >= room or size > 16_379:
                break
            block = data[at + 9 : start]
            meaning = known.get(block) or (self._blocks.peek(block) if len(block) <= KNOWN_BYTES_MAX else None)
            if meaning is None or not meaning.usual or 0 <= meaning.content_bytes != size + 5:
                break
            last = stream
            calls[stream] = 0
            endpoint.received += size + 5
            requests.append((meaning, stream, data[start + 14 : stop], PLAIN, calls, None))
            at = stop
        table.last = last
        return at

    def _greet(self, data: bytes) -> int:
        """Takes bytes of HTTP/2's preface. Returns the offset after these bytes. Raises Http2Error for other bytes."""
        unread = self._unread
        if not data.startswith(unread[: len(data)]):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the client does not begin as HTTP/2 does")
        self._unread = unread[len(data) :]
        return min(len(data), len(unread))

    def _count_toil(self, toil: int, requests: int) -> None:
        """Adds the toil of one read, less the credits that its ``requests`` pay back. Sets ``toils``."""
        self._unpaid = min(TOIL_MOST, max(0, self._unpaid + toil - TOIL_A_CALL * requests))
        # a client without an answered call counts as toiling
        self.toils = self._unpaid > TOIL_LEAST or not self._calls.answered

    def _spend(self, cost: int) -> None:
        """Takes credits for frames without a message (``patience.py``). Raises Http2Error for a flood."""
        if not self._patience.spend(self._calls.answered, self._calls.sent_bytes, cost):
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "too many frames that carry nothing")

    def _on_ping(self) -> None:
        """Counts a PING, unless the endpoint holds replies to the client. Raises Http2Error after too many PINGs."""
        self._endpoint.pings = 0
        if not (self.held or self._patience.ping(self._calls.answered, self._calls.sent_bytes)):
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings")  # the words that gRPC's clients know

    # ---- frames of calls

    def _on(self, event: Event, requests: list[GrpcRequest]) -> None:
        """Handles a frame of a stream, or the client's GOAWAY. Raises Http2Error, BlockError."""
        kind, stream, ends, payload = event
        if kind == http2.HEADERS:
            self._on_headers(stream, ends, payload, requests)
            return
        if kind == http2.GOAWAY or (self._draining and stream > self._calls.last):
            return  # the client opens no more streams; or our GOAWAY has refused this stream
        if stream > self._calls.last or not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"frame {kind} on stream {stream}, which no call has")
        if kind == http2.DATA:
            self._on_data(stream, ends, payload, requests)
        elif kind == http2.RST_STREAM:
            self._calls.forget(stream)
        else:
            self._calls.widen(stream, int.from_bytes(payload, "big") & http2.WINDOW_MAX)

    def _on_headers(self, stream: int, ends: bool, block: bytes, requests: list[GrpcRequest]) -> None:
        """Handles the header block of a new call, or the trailers that end a call."""
        head, cost = self._read(block)
        incoming = self._calls.incoming(stream)
        if stream <= self._calls.last or self._draining:
            self._endpoint.toil += cost
        if incoming is not None and not incoming.ended:
            if not ends or not head.trails:
                self._calls.reset(stream, ErrorCode.PROTOCOL_ERROR)
            else:
                self._on_end(stream, incoming, requests)
            return
        if not stream & 1:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"stream {stream}, which no client may open")
        if stream <= self._calls.last:
            if stream not in self._calls.early:
                raise Http2Error(ErrorCode.STREAM_CLOSED, f"HEADERS on stream {stream}, which is closed")
            return
        if self._draining:
            return
        self._calls.last, self._cuts = stream, True
        if cost:
            self._calls.costs[stream] = cost * _NEVER_MEANT if head.malformed else cost
        if head.malformed:
            self._calls.reset(stream, ErrorCode.PROTOCOL_ERROR, ends)
        elif len(self._calls.open) >= self._calls.room:
            self._calls.reset(stream, ErrorCode.REFUSED_STREAM, ends)
        else:
            incoming = IncomingCall(head)
            (self._calls.kept if head.kind else self._calls.half)[stream] = incoming
            self._calls.count()
            if ends:
                self._on_end(stream, incoming, requests)

    def _read(self, block: bytes) -> tuple[Head, int]:
        """Decodes a header block. Returns its head, and its cost in credits if the call fails. Raises BlockError."""
        blocks = self._blocks
        try:
            head = blocks.read(block)
        except ListTooLong as error:
            head = Head(refusal=Refusal(200, FaultCode.RESOURCE_EXHAUSTED, str(error)))
        work = blocks.new_bytes // _NEW_BYTES + blocks.count // _FIELDS
        self._heavy += work
        return head, _NEW_BLOCK + work if blocks.count else 0

    def _count_unfolded(self, size: int) -> None:
        """Counts the decompressed ``size`` that messages state: a few compressed bytes may cause much work."""
        credit = min(size, self._message_bytes_max) // _UNFOLDED_BYTES
        self._heavy += credit
        self.later_ns += credit * _UNFOLDED_NS

    def _on_data(self, stream: int, ends: bool, payload: bytes, requests: list[GrpcRequest]) -> None:
        """Handles a piece of a call's messages."""
        incoming = self._calls.incoming(stream)
        if incoming is None or incoming.ended:
            if stream not in self._calls.early:
                raise Http2Error(ErrorCode.STREAM_CLOSED, f"DATA on stream {stream}, which is closed")
            if ends:
                del self._calls.early[stream]
            return
        incoming.content_bytes += len(payload)
        if incoming.head.refusal is None:
            wrong = incoming.add(payload, self._message_bytes_max)
            self._endpoint.toil += len(incoming.waiting)
            if incoming.unfolds_bytes:
                self._count_unfolded(incoming.unfolds_bytes)
                incoming.unfolds_bytes = 0
            if wrong is not None:
                self._calls.refuse(stream, ends, *wrong)
                return
        if ends:
            self._on_end(stream, incoming, requests)

    def _on_end(self, stream: int, incoming: IncomingCall, requests: list[GrpcRequest]) -> None:
        """Handles the client's end of a call: begins, refuses or resets the call."""
        head = incoming.head
        incoming.ended = True
        if 0 <= head.content_bytes != incoming.content_bytes:
            self._calls.reset(stream, ErrorCode.PROTOCOL_ERROR, ends=True)
        elif head.refusal is not None:
            self._calls.refuse(stream, True, head.refusal.code, head.refusal.detail, head.refusal.http_status)
        elif head.kind is not Kind.UNARY:
            if not incoming.end_kept():
                self._calls.refuse(stream, True, FaultCode.INTERNAL, "no message, or half of one")
        elif (message := incoming.whole()) is None:
            self._calls.refuse(stream, True, FaultCode.INTERNAL, "no message, or half of one")
        else:
            if incoming.body[0]:
                self._count_unfolded(unfolds_bytes(message))
            del self._calls.half[stream]
            self._calls.count()
            self._calls.open[stream] = incoming.credit
            requests.append((head, stream, message, incoming.body[0], self._calls.open, None))

    # ---- the end

    def retire(self) -> bool:
        """Tells the client to connect again, by GOAWAY with the largest stream number, and a PING (RFC 9113, 6.8)."""
        self._calls.say_goaway(http2.STREAM_MAX, OLD)
        self._endpoint.probe()
        return True

    def drain(self) -> None:
        """Stops taking requests, and sends GOAWAY: the server is stopping."""
        self._draining, self._cuts = True, False
        self._calls.drain()
        self._count_pending()

    def lose(self) -> None:
        """Notes that the client sends no more bytes. Drops unfinished calls, streaming calls and held replies."""
        self._lost = True
        self._calls.lose()
        self._pending = b""
        self._calls.pending_bytes = 0


def _dribbles(event: Event) -> bool:
    """Returns True for a tiny DATA frame (``_DATA_FEW``) that does not end its stream."""
    return event[0] == http2.DATA and not event[2] and len(event[3]) < _DATA_FEW
