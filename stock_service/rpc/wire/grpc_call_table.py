"""Table of the calls of a gRPC server's connection, with their states and replies; no I/O. See ``grpc_session.py``.

A caller of any method must hold the connection's lock.
"""

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, LATER, MORE, GrpcRequest, IncomingCall
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import PREFIX, USUAL_BYTES, is_fault, is_usual, parted
from stock_service.rpc.wire.http2 import ErrorCode
from stock_service.rpc.wire.http2_endpoint import Endpoint

_EARLY_MAX = 1000
"""Largest number of remembered calls that the server ended before the client did."""

_DRAINING = "the server is stopping"

OLD = "max_age"
"""Reason in the GOAWAY to an old connection, in the words of gRPC's own servers."""

_TOIL = 2
"""Credits for a call that is refused or reset; see ``patience.py``."""


class CallTable:
    """The calls of one connection."""

    def __init__(self, endpoint: Endpoint, streams_max: int) -> None:
        self._endpoint = endpoint
        self._streams_max = streams_max
        self.half: dict[int, IncomingCall] = {}
        """Calls whose message is not whole."""
        self.open: dict[int, int] = {}
        """Calls that wait for an answer, each with the credit of its window."""
        self.kept: dict[int, IncomingCall] = {}
        """Calls whose method streams; the server answers one message of a call at a time."""
        self.early: dict[int, None] = {}
        """Calls that the server ended before the client did: frames of such a call may be on their way."""
        self.costs: dict[int, int] = {}
        """Additional credits (``patience.py``), by stream, that a call with a costly header block takes if the call
        fails.
        """
        self.ready: list[GrpcRequest] = []
        """Messages of kept calls that waited for the answer to another message, and may begin."""
        self._lost = False
        self.pending_bytes = 0
        """See ``grpc_session``, which counts these bytes. When a call ends here, the bytes of its unfinished message
        are subtracted.
        """
        self.room = streams_max
        """Number of calls that may be ``open``: ``streams_max`` less calls that are not whole, held calls, and kept
        calls without a worker.
        """
        self.last = 0
        """Number of the last stream."""
        self.answered = 0
        """Number of calls answered."""
        self.sent_bytes = 0
        """Number of bytes of long replies."""

    def incoming(self, stream: int) -> IncomingCall | None:
        """The call of a stream, if frames of the call may still come; otherwise None."""
        return self.half.get(stream) or self.kept.get(stream)

    def count(self) -> None:
        """Computes ``room`` again. Call this after each change of the half, kept or held calls."""
        held, kept = self._endpoint.held, self.kept
        twice = sum((stream in held) + (stream in self.open) for stream in kept) if kept else 0
        self.room = self._streams_max - len(self.half) - len(kept) - len(held) + twice

    @property
    def half_bytes(self) -> int:
        """Number of bytes of unfinished messages; a call that waits for its message counts as one byte at least."""
        return sum(len(call.body) + 1 for call in self.half.values()) + sum(
            len(call.body) for call in self.kept.values()
        )

    @property
    def waiting_bytes(self) -> int:
        """Number of bytes of kept calls' whole messages that wait for the answer to an earlier message."""
        return sum(call.waiting_bytes for call in self.kept.values()) if self.kept else 0

    def settle_kept(self) -> list[GrpcRequest]:
        """The next message of each kept call whose last answer was sent. The client of the call may then send the same
        number of bytes again.
        """
        requests: list[GrpcRequest] = []
        for stream, call in self.kept.items():
            if stream not in self.open and stream not in self._endpoint.held:
                call.busy = False
            if not call.waiting or call.busy:
                continue
            message, flags = call.waiting.popleft()
            if not flags & (END | MORE):  # these are no messages that came
                size = PREFIX.size + len(message)
                call.waiting_bytes -= size
                if not call.ended:
                    self._endpoint.outgoing += http2.window_update(stream, size)
            flags |= LATER if call.begun else 0
            requests.append((call.head, stream, message, flags, self.open, call.progress))
            self.open[stream] = call.credit
            call.busy = call.begun = True
        if self.kept:
            self.count()
        return requests

    def widen(self, stream: int, count: int) -> None:
        """Adds bytes to the window of a call whose reply has not begun."""
        incoming = self.incoming(stream)
        credit = self.open.get(stream) if incoming is None or stream in self.open else incoming.credit
        if stream in self._endpoint.held or credit is None:  # counted by the endpoint, or of a call that is over
            if incoming is not None:
                incoming.credit += count
            return
        if self._endpoint.stream_window + credit + count > http2.WINDOW_MAX:
            self.reset(stream, ErrorCode.FLOW_CONTROL_ERROR)
        elif stream in self.open:
            self.open[stream] = credit + count
        elif incoming is not None:
            incoming.credit = credit + count

    def refuse(self, stream: int, ended: bool, code: FaultCode, detail: str, http_status: int = 200) -> None:
        """Ends a call with a fault. ``ended`` is True if the client has sent the whole call."""
        incoming = self.incoming(stream)
        self._endpoint.toil += _TOIL
        begun, credit = (incoming.begun, incoming.credit) if incoming is not None else (False, 0)
        self.forget(stream)
        outgoing = self._endpoint.outgoing
        if http_status != 200:
            outgoing += self._allowed(stream, credit, grpc_replies.http_reply(stream, http_status, detail))
        elif not begun:
            outgoing += grpc_replies.fault_reply(stream, code, detail)
        if begun or not ended:
            self._ended_early(stream)
            outgoing += http2.rst_stream(stream, ErrorCode.INTERNAL_ERROR if begun else ErrorCode.NO_ERROR)

    def reset(self, stream: int, code: ErrorCode, ends: bool = False) -> None:
        """Ends a call without a reply. ``ends`` is True if the client has ended the call too."""
        self.forget(stream)
        self._endpoint.toil += _TOIL
        if not ends:
            self._ended_early(stream)
        self._endpoint.outgoing += http2.rst_stream(stream, code)

    def _ended_early(self, stream: int) -> None:
        """Remembers that frames of a call may still be on their way."""
        if len(self.early) >= _EARLY_MAX:
            del self.early[next(iter(self.early))]
        self.early[stream] = None

    def forget(self, stream: int) -> None:
        """Removes a call that is over, from any state."""
        self.half.pop(stream, None)
        self.kept.pop(stream, None)
        self.open.pop(stream, None)
        self._endpoint.drop(stream)
        self._endpoint.toil += self.costs.pop(stream, 0)
        self.count()

    # ---- replies

    def admit(self, request: GrpcRequest, reply: bytes) -> bytes:
        """The part of a request's reply that may be sent now; the rest is held."""
        stream = request[1]
        credit = self.open.pop(stream, None)
        if credit is None:
            return b""
        self.answered += 1
        if self.costs:
            self.costs.pop(stream, None)
        incoming = self.kept.get(stream)
        if incoming is not None:
            return self._kept(incoming, stream, reply, credit)
        if is_fault(reply):  # not counted by windows
            return reply
        endpoint = self._endpoint
        size = len(reply) - USUAL_BYTES
        allowed_bytes = min(endpoint.send_window, endpoint.stream_window + credit, http2.FRAME_BYTES_MAX)
        if size <= allowed_bytes and is_usual(reply):
            endpoint.send_window -= size
            return reply
        return self._allowed(stream, credit, reply)

    def _allowed(self, stream: int, credit: int, reply: bytes) -> bytes:
        """The part of a reply's frames that may be sent now; the rest is held."""
        before, body, after, ends = parted(reply)
        self.sent_bytes += len(body)
        if not body:
            return before + after
        frames = self._endpoint.send_body(stream, body, ends and not after, after, credit)
        if self._lost:
            self._endpoint.drop(stream)  # the client will not allow more of it
        self.count()
        return before + frames

    def _kept(self, incoming: IncomingCall, stream: int, reply: bytes, credit: int) -> bytes:
        """The part that may be sent now of the answer to a message of a kept call, or to the call's end."""
        _, body, _, ends = parted(reply)
        if ends:
            del self.kept[stream]
            self.pending_bytes -= len(incoming.body)
            if not incoming.ended:
                self._ended_early(stream)
                reply += http2.rst_stream(stream, ErrorCode.NO_ERROR)  # held where the reply is held
            allowed = self._allowed(stream, credit, reply)
            self.count()
            return allowed
        allowed = self._allowed(stream, credit, reply)
        incoming.credit = credit - len(body)
        if incoming.progress is not None and incoming.progress.replies is not None:
            incoming.waiting.appendleft((b"", MORE))
        self.ready += self.settle_kept()
        return allowed

    def renew(self) -> None:
        """Makes the server answer the first message of each watch again. If the answer must wait, repeated calls cause
        one answer.
        """
        for call in self.kept.values():
            if call.head.kind is Kind.STREAMED_REPLY and call.begun and not call.waiting:
                message, flags = call.latest
                call.waiting.append((message, flags | MORE))
        self.ready += self.settle_kept()

    # ---- the end

    def say_goaway(self, last: int, why: str) -> None:
        """Tells the client that calls with a number above ``last`` are not taken."""
        self._endpoint.outgoing += http2.goaway(last, ErrorCode.NO_ERROR, why)

    def drain(self) -> None:
        """Accepts no further call, refuses calls that are not whole, and brings kept calls to their end.

        The GOAWAY has the number of the last call seen. RFC 9113, 6.8, recommends a first GOAWAY with 2^31 - 1, and
        more calls for a round trip; an old connection gets this GOAWAY. A drain takes only the bytes that had arrived
        when the drain began, so that its end does not depend on a client. Calls with a higher number were not begun,
        and clients may send them again.
        """
        self.say_goaway(self.last, _DRAINING)
        unasked = [
            stream
            for stream, call in self.kept.items()
            if call.head.kind is Kind.REPLIES and not (call.waiting or call.begun)
        ]
        for stream in [*self.half, *unasked]:
            self.refuse(stream, False, FaultCode.UNAVAILABLE, _DRAINING)
        for call in self.kept.values():
            if call.head.kind is Kind.STREAMED_REPLY or (call.head.kind is Kind.STREAMED and not call.ended):
                message, flags = call.latest
                call.waiting.append((message, flags | END))  # the call ends after its waiting messages
        self.ready += self.settle_kept()

    def lose(self) -> None:
        """Forgets the calls that wait for bytes, since the client sends no more bytes. Whole calls are answered."""
        self._lost = True
        self.half.clear()
        self.kept.clear()
        self.costs.clear()
        self.ready.clear()
        self._endpoint.drop_all()
