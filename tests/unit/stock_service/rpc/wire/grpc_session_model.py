"""A session of gRPC's server, the model of it, and its client's view; for the model's rules."""

from collections.abc import Sequence

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_calls import GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_session import GrpcSession, SessionError
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_call_model import MESSAGE_BYTES_MAX, SAID_BYTES, Asked, Call, live
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, KINDS, fields, frames, head
from tests.unit.stock_service.rpc.wire.grpc_clients_view import ClientsView, StreamView
from tests.unit.stock_service.rpc.wire.streams import cut

LISTED = b"/a.Service/List"
METHODS = {**KINDS, LISTED: Kind.REPLIES}
GRANT_BYTES = 60
"""Bytes used after which the connection's window is renewed: so few that each one counts."""


class SessionModel:
    """A client's bytes, workers' words, and the state of each call."""

    def __init__(self, streams_max: int, window: int) -> None:
        """A new connection; ``window``: that of each call, as the client has it."""
        self.now_ns = 0
        self.session = GrpcSession(METHODS, MESSAGE_BYTES_MAX, streams_max, lambda: self.now_ns)
        self.session._endpoint._grant_bytes = GRANT_BYTES
        self.streams_max = streams_max
        self.view = ClientsView()
        self.calls: dict[int, Call] = {}
        self.flying: list[GrpcRequest] = []
        """Requests that no worker has answered."""
        self.next = 1
        self.last = 0
        """The last call that the server has taken."""
        self.draining = self.stopped = self.lost = False
        self.broken_by: ErrorCode | None = None
        self.session.take_outgoing()
        self.view.settings = 2
        self.view.initial_window = window
        self.sends(HELLO + http2.settings((http2.INITIAL_WINDOW_SIZE, window)))

    def sends(self, sent: bytes, asked: Sequence[Asked] = (), cuts: Sequence[int] = ()) -> None:
        """The bytes complete these requests, and those of kept calls that may be given now; or they break the
        connection."""
        self.now_ns += 10**9
        requests: list[GrpcRequest] = []
        goaway = b""
        for piece in cut(sent, cuts):
            try:
                requests += self.session.feed(piece)
            except SessionError as error:
                requests += error.frames
                goaway = error.goaway
            self.view.take(frames(self.session.take_outgoing()))
        self.view.take(frames(goaway))
        asked = list(asked)
        if self.broken_by is None:
            assert not goaway
            asked += self.settled()
        else:
            assert self.view.goaways[-1][1] == self.broken_by
            self.is_lost()
        assert [(stream, body, flags) for _, stream, body, flags, *_ in requests] == asked
        self.flying += requests

    def settled(self) -> list[Asked]:
        """The rest that is given of kept calls; none is once the client has ended."""
        return [] if self.lost else [asked for call in self.calls.values() for asked in call.settle()]

    def is_lost(self) -> None:
        """The client is lost: whole calls are answered, the others forgotten."""
        self.lost = True
        for call in self.calls.values():
            call.lost()

    def picked(self, pick: int, *states: str) -> Call | None:
        """One of the calls in these states; *ignored*: a call that ended before its client did."""
        found = [each for each in self.calls.values() if each.state in states or (each.ignored and "ignored" in states)]
        return found[pick % len(found)] if found else None

    def growing(self, pick: int) -> Call | None:
        """A call of which the client sends more."""
        found = [each for each in self.calls.values() if each.can_go_on]
        return found[pick % len(found)] if found else None

    def opened(self, path: bytes, fate: str) -> tuple[Call, bytes]:
        """A call that begins, and its HEADERS, which do not end it."""
        stream, view = self.next, StreamView()
        self.next += 2
        kind = METHODS[path] if fate not in ("unknown", "http") else Kind.UNARY
        call = Call(stream, kind, fate, view)
        taken = sum(1 for _ in live(self.calls))
        self.calls[stream] = call
        self.view.streams[stream] = view
        sent = head(stream, path)
        match fate:
            case "unknown":
                sent = head(stream, path + b"s")
            case "http":
                sent = http2.headers(
                    stream, encode_block({**dict(fields()), b"content-type": b"text/plain"}.items()), False
                )
            case "said":
                sent = head(stream, path, content_length=str(SAID_BYTES))
            case "malformed":
                sent = http2.headers(stream, b"\x82", False)
        self.last = self.last if self.draining else stream
        if self.draining:
            call.end(None, None)
        elif fate == "malformed":
            call.end(None, ErrorCode.PROTOCOL_ERROR)
        elif taken >= self.streams_max:
            call.end(None, ErrorCode.REFUSED_STREAM)
        return call, sent

    def sent_of(self, call: Call, body: bytes, ends: bool, padding: int = 0) -> tuple[bytes, list[Asked]]:
        """A DATA frame of a call, and the requests that it completes if it is a unary one."""
        flags = (http2.END_STREAM if ends else 0) | (http2.PADDED if padding else 0)
        payload = bytes([padding]) + body + bytes(padding) if padding else body
        for sender in (self.view, call.view):
            sender.sent_bytes += len(payload)
        call.view.ended_here = ends
        asked: list[Asked] = []
        if call.counts:
            asked = call.takes(body, ends)
        else:
            call.ignored &= not ends
        return http2.frame(http2.DATA, flags, call.stream, payload), asked

    def takes_ready(self) -> None:
        """The answers that need not wait any more."""
        ready = self.session.take_ready()
        assert [(stream, body, flags) for _, stream, body, flags, *_ in ready] == self.settled()
        self.flying += ready
