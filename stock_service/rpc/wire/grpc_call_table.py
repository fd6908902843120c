"""Table of the calls of one connection of a gRPC server, with their states and replies; no I/O.

``grpc_session.py`` explains the states, and uses the table. A caller of any method must hold the connection's lock.
"""

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, LATER, MORE, GrpcRequest, IncomingCall
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import PREFIX, USUAL_BYTES, is_fault, is_usual, parted
from stock_service.rpc.wire.http2 import ErrorCode
from stock_service.rpc.wire.http2_endpoint import Endpoint

_EARLY_MAX = 1000
"""Largest number of calls in ``CallTable.early``."""

_DRAINING = "the server is stopping"

OLD = "max_age"
"""Text of the GOAWAY frame that a connection gets at its age limit. gRPC's own servers send the same text."""

_TOIL = 2
"""Cost of a call that the server refuses or resets, in credits of ``patience.py``."""


class CallTable:
    """Table of the calls of one connection, by stream; see the module."""

    def __init__(self, endpoint: Endpoint, streams_max: int) -> None:
        self._endpoint = endpoint
        self._streams_max = streams_max
        self.half: dict[int, IncomingCall] = {}
        """Unary calls whose message is not whole, by stream number."""
        self.open: dict[int, int] = {}
        """Calls whose request waits for its reply, by stream number. The value is ``IncomingCall.credit``: the number
        of bytes that the client has added to the stream's flow-control window.
        """
        self.kept: dict[int, IncomingCall] = {}
        """Calls of methods that stream, by stream number. The server answers one message of a call at a time."""
        self.early: dict[int, None] = {}
        """Calls that the server ended before the client did, by stream number. Frames of these calls may still come."""
        self.costs: dict[int, int] = {}
        """For each stream, number of additional credits (``patience.py``) that the call costs if it fails, because its
        header block was costly.
        """
        self.ready: list[GrpcRequest] = []
        """Requests that waited for the answer to an earlier message of the same call, and may now begin."""
        self._lost = False
        self.pending_bytes = 0
        """Value of ``GrpcSession.pending_bytes``. The session counts these bytes. When a kept call ends, the table
        subtracts the bytes of the call's unfinished message.
        """
        self.room = streams_max
        """Largest allowed number of calls in ``open``: ``streams_max``, less the calls in ``half``, the calls whose
        reply the endpoint holds, and the other calls in ``kept`` that are not in ``open``.
        """
        self.last = 0
        """Largest stream number that the client has used."""
        self.answered = 0
        """Number of answered requests."""
        self.sent_bytes = 0
        """Number of DATA bytes of all replies. A usual reply that the windows allowed at once does not count."""

    def incoming(self, stream: int) -> IncomingCall | None:
        """Returns the call of a stream if the call is in ``half`` or ``kept``; otherwise None."""
        return self.half.get(stream) or self.kept.get(stream)

    def count(self) -> None:
        """Computes the field ``room`` again. Call ``count`` after each change of ``half``, ``kept`` or the endpoint's
        ``held``.
        """
        held, kept = self._endpoint.held, self.kept
        twice = sum((stream in held) + (stream in self.open) for stream in kept) if kept else 0
        self.room = self._streams_max - len(self.half) - len(kept) - len(held) + twice

    @property
    def half_bytes(self) -> int:
        """Number of bytes of unfinished messages, plus 1 for each call in ``half``."""
        return sum(len(call.body) + 1 for call in self.half.values()) + sum(
            len(call.body) for call in self.kept.values()
        )

    @property
    def waiting_bytes(self) -> int:
        """Number of bytes of messages that wait for the answer to an earlier message of the same call."""
        return sum(call.waiting_bytes for call in self.kept.values()) if self.kept else 0

    def settle_kept(self) -> list[GrpcRequest]:
        """Takes the next message of each call in ``kept`` whose previous answer was sent. Returns these messages as
        requests.

        Widens the stream's flow-control window by the size of each taken message, unless the client has ended the call.
        """
        requests: list[GrpcRequest] = []
        for stream, call in self.kept.items():
            if stream not in self.open and stream not in self._endpoint.held:
                call.busy = False
            if not call.waiting or call.busy:
                continue
            message, flags = call.waiting.popleft()
            if not flags & (END | MORE):  # with END or MORE there is no new message of the client
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
        """Handles a WINDOW_UPDATE of a stream: adds ``count`` bytes to the call's credit."""
        incoming = self.incoming(stream)
        credit = self.open.get(stream) if incoming is None or stream in self.open else incoming.credit
        if stream in self._endpoint.held or credit is None:  # the endpoint has counted the bytes, or the call is over
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
        """Ends a call with a fault, or with an HTTP status if ``http_status`` is not 200. ``ended`` is True if the
        client has already sent END_STREAM.

        If the server has begun to answer the call, sends only RST_STREAM.
        """
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
        """Ends a call with RST_STREAM. ``ends`` is True if the client has already sent END_STREAM."""
        self.forget(stream)
        self._endpoint.toil += _TOIL
        if not ends:
            self._ended_early(stream)
        self._endpoint.outgoing += http2.rst_stream(stream, code)

    def _ended_early(self, stream: int) -> None:
        """Remembers a call that the server ended before the client did."""
        if len(self.early) >= _EARLY_MAX:
            del self.early[next(iter(self.early))]
        self.early[stream] = None

    def forget(self, stream: int) -> None:
        """Removes a call in any state. If the call was not answered, its connection pays the credits in ``costs``."""
        self.half.pop(stream, None)
        self.kept.pop(stream, None)
        self.open.pop(stream, None)
        self._endpoint.drop(stream)
        self._endpoint.toil += self.costs.pop(stream, 0)
        self.count()

    # ---- replies

    def admit(self, request: GrpcRequest, reply: bytes) -> bytes:
        """Returns the part of a request's reply that the flow-control windows allow now. The endpoint holds the rest of
        the reply.

        Returns no bytes for a call that is over, for example for a cancelled call.
        """
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
        if is_fault(reply):  # flow control does not count trailers
            return reply
        endpoint = self._endpoint
        size = len(reply) - USUAL_BYTES
        allowed_bytes = min(endpoint.send_window, endpoint.stream_window + credit, http2.FRAME_BYTES_MAX)
        if size <= allowed_bytes and is_usual(reply):
            endpoint.send_window -= size
            return reply
        return self._allowed(stream, credit, reply)

    def _allowed(self, stream: int, credit: int, reply: bytes) -> bytes:
        """Returns the part of a reply that the flow-control windows allow now. The endpoint holds the rest of the
        reply.
        """
        before, body, after, ends = parted(reply)
        self.sent_bytes += len(body)
        if not body:
            return before + after
        frames = self._endpoint.send_body(stream, body, ends and not after, after, credit)
        if self._lost:
            self._endpoint.drop(stream)  # the client sends no further WINDOW_UPDATE for the held rest
        self.count()
        return before + frames

    def _kept(self, incoming: IncomingCall, stream: int, reply: bytes, credit: int) -> bytes:
        """Returns the part of a kept call's answer that the flow-control windows allow now. The endpoint holds the rest
        of the answer.

        The answer belongs to one message, or to the end of the call.
        """
        _, body, _, ends = parted(reply)
        if ends:
            del self.kept[stream]
            self.pending_bytes -= len(incoming.body)
            if not incoming.ended:
                self._ended_early(stream)
                reply += http2.rst_stream(stream, ErrorCode.NO_ERROR)  # held with the reply, if the reply is held
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
        """Makes the server answer each watch (a call that waits for changes) again, because the answer may have
        changed.

        A watch that already waits for an answer gets no second answer.
        """
        for call in self.kept.values():
            if call.head.kind is Kind.STREAMED_REPLY and call.begun and not call.waiting:
                message, flags = call.latest
                call.waiting.append((message, flags | MORE))
        self.ready += self.settle_kept()

    # ---- the end

    def say_goaway(self, last: int, why: str) -> None:
        """Sends GOAWAY with the text ``why``: the server begins no call with a stream number above ``last``."""
        self._endpoint.outgoing += http2.goaway(last, ErrorCode.NO_ERROR, why)

    def drain(self) -> None:
        """Sends GOAWAY. Refuses, with UNAVAILABLE, each call whose message is not whole, except watches and calls with
        many messages. Each kept call that is not refused ends once its waiting messages are answered.

        The GOAWAY has the number of the last call that the server has seen. The server begins no call with a higher
        number, so a client may send such a call again.

        RFC 9113, 6.8, recommends to send first a GOAWAY with 2^31 - 1, and to accept calls for one more round trip.
        Only ``GrpcSession.retire`` follows this recommendation, for an old connection. A drain takes only the bytes
        that had arrived when the drain began. So the end of the drain does not depend on a client.
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
                call.waiting.append((message, flags | END))  # the call ends once its waiting messages are answered
        self.ready += self.settle_kept()

    def lose(self) -> None:
        """Removes the calls in ``half`` and ``kept``, and the held replies, since the client sends no more bytes. Calls
        in ``open`` stay in ``open``, and get their replies.
        """
        self._lost = True
        self.half.clear()
        self.kept.clear()
        self.costs.clear()
        self.ready.clear()
        self._endpoint.drop_all()
