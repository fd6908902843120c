"""A model of one call of gRPC on the server, for the model of a session."""

from collections import deque
from collections.abc import Iterable, Mapping

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies
from stock_service.rpc.wire.grpc_calls import END, LATER, MORE, PLAIN, WAITING_MAX, GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_replies import PREFIX
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_clients_view import StreamView

HTTP_REFUSAL_BYTES = len("content-type: allowed: application/grpc")
"""Words of the refusal of a content-type that is not gRPC's."""

MESSAGE_BYTES_MAX = 200

SAID_BYTES = 7
"""Length that a call states for its content; None where it states none."""

Asked = tuple[int, bytes, int]
"""A request's stream, message and flags."""


class Call:
    """A call: the bytes sent, the requests asked and answered, and its end."""

    def __init__(self, stream: int, kind: Kind, fate: str, view: StreamView) -> None:
        self.stream, self.kind, self.fate, self.view = stream, kind, fate, view
        self.content_bytes = 0
        """Bytes of the call so far, without padding."""
        self.half = b""
        """What came of the next message."""
        self.whole: list[bytes] = []
        """Message of a unary call."""
        self.waiting: deque[tuple[bytes, int]] = deque()
        """Requests of a kept call: messages, and its end."""
        self.first = b""
        """The first message, until the call is begun the first that is not empty. A lawful client of a watch sends
        one."""
        self.begun = self.asked = self.finished = self.over = False
        """True where a message was given; where a worker has one; where all is answered; where the end was sent."""
        self.owed_bytes = 0
        """Bytes of DATA in all replies."""
        self.taken_bytes = 0
        """Bytes of messages that were given, with their prefixes."""
        self.ends_with: tuple[int | None, int | None] = (None, None)
        """The status, and the reset, that its client is to see."""
        self.ignored = False
        """True where frames of the call may still come, and are ignored."""

    @property
    def state(self) -> str:
        """State in the table of ``grpc_session``; *kept*: no request of it is under way."""
        if self.over:
            return "closed"
        if self.asked:
            return "open"
        if self.owed_bytes > self.view.got_bytes:
            return "held"
        if self.finished:
            return "closed"
        return "kept" if self.kind else "half"

    @property
    def waiting_bytes(self) -> int:
        """Bytes of whole messages that wait."""
        return sum(PREFIX.size + len(message) for message, flags in self.waiting if flags == PLAIN)

    @property
    def can_go_on(self) -> bool:
        """Tell whether the client may send more of the call, and the server that has ended it must bear that."""
        return not (self.view.ended_here or self.view.reset_here) and (self.state != "closed" or self.ignored)

    @property
    def counts(self) -> bool:
        """True where further frames of the call count. Behind the server's last reply they are ignored, also while that
        reply is held."""
        return self.state != "closed" and not self.finished

    def refused(self, code: int, ended: bool) -> None:
        """A fault ends it."""
        if self.begun:
            self.end(None, ErrorCode.INTERNAL_ERROR)
        else:
            self.end(code, None if ended else ErrorCode.NO_ERROR)
        self.ignored = self.begun or not ended

    def end(self, status: int | None, reset: int | None) -> None:
        """Nothing more is said of it."""
        self.over, self.asked, self.ends_with, self.ignored = True, False, (status, reset), True

    def takes(self, body: bytes, ends: bool) -> list[Asked]:
        """Takes more of its content."""
        self.content_bytes += len(body)
        if self.fate not in ("unknown", "http"):
            self.half += body
            self._take_messages(ends)
        return self.client_ended() if ends and self.state != "closed" else []

    def _take_messages(self, ends: bool) -> None:
        """The messages that are whole; a fault where one may not be."""
        if self.whole and self.half:
            self.refused(FaultCode.INTERNAL, ends)
        while len(self.half) >= 5 and self.state != "closed":
            compressed, size = self.half[0], int.from_bytes(self.half[1:5])
            whole = self.half[5 : 5 + size]
            if size > MESSAGE_BYTES_MAX or (self.kind is not Kind.UNARY and len(self.waiting) >= WAITING_MAX):
                self.refused(FaultCode.RESOURCE_EXHAUSTED, ends)
            elif compressed or (self.kind is Kind.UNARY and len(self.half) > 5 + size):
                self.refused(FaultCode.INTERNAL, ends)
            elif len(whole) < size:
                break
            elif self.kind is Kind.UNARY:
                self.whole, self.half = [whole], b""
            elif self.kind is Kind.REPLIES and (self.waiting or self.begun):
                self.refused(FaultCode.INTERNAL, ends)
            else:
                self.first = self.first or (b"" if self.begun else whole)
                self.half = self.half[5 + size :]
                self.waiting.append((whole, 0))

    def client_ended(self) -> list[Asked]:
        """All of it has come."""
        if self.fate == "http":
            self.finished, self.ends_with = True, (415, None)
            self.owed_bytes = HTTP_REFUSAL_BYTES
        elif self.fate == "unknown":
            self.refused(FaultCode.UNIMPLEMENTED, True)
        elif self.fate == "said" and self.content_bytes != SAID_BYTES:
            self.end(None, ErrorCode.PROTOCOL_ERROR)
            self.ignored = False
        elif self.half or not (self.whole or self.begun or self.waiting or self.kind is Kind.STREAMED):
            self.refused(FaultCode.INTERNAL, True)
        elif self.kind is Kind.UNARY:
            self.asked = self.begun = True
            return [(self.stream, self.whole[0], PLAIN)]
        elif self.kind is Kind.STREAMED:
            self.waiting.append((b"", END))
        return []

    def settle(self) -> list[Asked]:
        """The rest that is given of a kept call whose last answer has left."""
        if self.state != "kept" or not self.waiting:
            return []
        message, flags = self.waiting.popleft()
        if flags == PLAIN:
            self.taken_bytes += PREFIX.size + len(message)
        flags |= LATER if self.begun else 0
        self.asked = self.begun = True
        return [(self.stream, message, flags)]

    def renewed(self) -> None:
        """The health has changed."""
        if self.kind is Kind.STREAMED_REPLY and self.begun and not self.waiting:
            self.waiting.append((self.first, MORE))

    def drained(self) -> None:
        """The server stops."""
        if self.state == "half":
            self.refused(FaultCode.UNAVAILABLE, False)
        elif self.kind is Kind.STREAMED_REPLY or (self.kind is Kind.STREAMED and not self.view.ended_here):
            self.waiting.append((self.first, END))

    def lost(self) -> None:
        """The client sends no more."""
        self.over = self.over or not self.asked


def live(calls: Mapping[int, Call]) -> Iterable[Call]:
    """The calls that are not over."""
    return (call for call in calls.values() if call.state != "closed")


def reply_to(request: GrpcRequest, payload: bytes, how: str) -> tuple[bytes, bool]:
    """A worker's word on a request, and whether it ends the call."""
    its_head, stream, _, flags, _, progress = request
    if how == "fault":
        said = grpc_replies.broken_off if flags & LATER else grpc_replies.fault_reply
        return said(stream, FaultCode.INTERNAL, "planted"), True
    if progress is None and how != "metadata":
        return grpc_replies.usual_reply(stream, payload), True
    begun = b"" if flags & LATER else grpc_replies.begun(stream, metadata=[(b"name", b"value")])
    reply = begun + (b"" if how == "nothing" else grpc_replies.messages(stream, payload))
    if progress is not None:
        goes_on = how == "more" and its_head.kind in (Kind.STREAMED, Kind.REPLIES) and not flags & END
        progress.replies = iter(()) if goes_on else None
        if not flags & END and (goes_on or its_head.kind is not Kind.REPLIES):
            return reply, False
    return reply + grpc_replies.ended(stream), True
