"""Any actions of a client, and answers in any order: all bytes of the server are lawful, and every call ends.

``ClientsView`` fails at each frame that HTTP/2 or gRPC forbids. The exact effect of each action is tried in the other
tests of the session.
"""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, LATER, GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.grpc_session import GrpcSession
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import (
    HELLO,
    KINDS,
    LISTED,
    PATH,
    TALKED,
    WATCHED,
    data,
    frames,
    head,
    message,
)
from tests.unit.stock_service.rpc.wire.grpc_clients_view import ClientsView, StreamView

PATHS = (PATH, PATH, PATH, WATCHED, TALKED, LISTED, b"/a.Service/None")
SIZES = (0, 1, 7, 40, 100, 20_000)
HOWS = ("reply", "reply", "more", "nothing", "fault", "metadata")
OUTLIVES = 1 << 20
"""Bytes by which windows are widened at the end, so that every reply may leave."""


class Played:
    """A session, and its client's view; a method for each action, with a choice and a number of bytes."""

    def __init__(self, streams_max: int, window: int) -> None:
        self.now_ns, self.view, self.streams_max = 0, ClientsView(), streams_max
        self.session = GrpcSession(KINDS, 200, streams_max, lambda: self.now_ns)
        self.flying: list[GrpcRequest] = []
        """Requests that no worker has answered."""
        self.replied: Counter[int] = Counter()
        """Bytes of DATA in the replies to each call."""
        self.session.take_outgoing()
        self.view.settings, self.view.initial_window = 2, window
        self._send(HELLO + http2.settings((http2.INITIAL_WINDOW_SIZE, window)))

    def _send(self, sent: bytes) -> None:
        self.now_ns += 10**9  # so that nothing is a flood
        half = len(sent) // 2
        for piece in (sent[:half], sent[half:]) if half % 2 else (sent,):
            self.flying += self.session.feed(piece)
            self._heard()

    def _heard(self) -> None:
        """The client hears the session's own frames."""
        self.view.take(frames(self.session.take_outgoing()))
        self.flying += self.session.take_ready()
        assert all(len(request[4]) <= self.streams_max for request in self.flying[-1:])

    def _begun(self, path: bytes) -> tuple[int, bytes]:
        stream = 2 * len(self.view.streams) + 1
        self.view.streams[stream] = StreamView()
        return stream, head(stream, path)

    def _body(self, stream: int, body: bytes, ends: bool) -> bytes:
        view = self.view.streams[stream]
        view.ended_here = ends
        view.sent_bytes += len(body)
        self.view.sent_bytes += len(body)
        return data(stream, body, ends)

    def _open(self, pick: int) -> int:
        """A call of which the client may send more; 0: there is none."""
        found = [stream for stream, view in self.view.streams.items() if not (view.ended_here or view.reset_here)]
        return found[pick % len(found)] if found else 0

    def begins(self, pick: int, _: int) -> None:
        """The client sends HEADERS alone."""
        self._send(self._begun(PATHS[pick])[1])

    def calls(self, pick: int, size: int) -> None:
        """The client sends two whole calls at once."""
        sent = b""
        for path in (PATHS[pick], PATH):
            stream, begin = self._begun(path)
            sent += begin + self._body(stream, message(bytes(size % 99)), True)
        self._send(sent)

    def sends(self, pick: int, size: int) -> None:
        """The client sends one message or two, and perhaps half of another, or its end."""
        if stream := self._open(pick):
            half = message(bytes(9))[: size % 9]
            self._send(self._body(stream, message(bytes(size % 99)) * (1 + pick % 2) + half, size == 7))

    def ends(self, pick: int, _: int) -> None:
        """The client ends a call."""
        if stream := self._open(pick):
            self._send(self._body(stream, b"", True))

    def resets(self, pick: int, _: int) -> None:
        """The client gives a call up."""
        if stream := self._open(pick):
            self.view.streams[stream].reset_here = True
            self._send(http2.rst_stream(stream, ErrorCode.CANCEL))

    def widens(self, pick: int, size: int) -> None:
        """The client widens the window of a call, and of the connection."""
        for stream in list(self.view.streams)[pick : pick + 1]:
            self.view.streams[stream].widened += size + 1
            self._send(http2.window_update(stream, size + 1))
        self.view.window += size + 1
        self._send(http2.window_update(0, size + 1))

    def settles(self, _: int, size: int) -> None:
        """The client changes the windows of all calls, also to less than was used, with a PING behind it."""
        self.view.settings += 1
        self.view.pings.append(bytes(8))
        self.view.initial_window = size
        self._send(http2.settings((http2.INITIAL_WINDOW_SIZE, size)) + http2.frame(http2.PING, 0, 0, bytes(8)))

    def answers(self, pick: int, size: int, how: str = "") -> None:
        """A worker answers one of the requests. The reply to a call that was given up is dropped."""
        if not self.flying:
            return
        request = self.flying.pop(pick % len(self.flying))
        reply = reply_to(request, bytes(size), how or HOWS[pick % len(HOWS)])
        is_open = request[1] in request[4]
        said = self.session.admit(request, reply)
        assert is_open or said == b""
        if is_open:
            self.replied[request[1]] += sum(len(each.payload) for each in frames(reply) if each.kind == http2.DATA)
        self.view.take(frames(said))
        self._heard()

    def renews(self, _: int, __: int) -> None:
        """The health has changed."""
        self.session.renew()
        self._heard()

    def finishes(self) -> None:
        """The server stops: workers answer all, and the windows are wide."""
        self.session.drain()
        self._heard()
        while self.flying or self.session.held_bytes:
            self.answers(0, 3, "reply")
            self.widens(0, OUTLIVES)
            for stream in [each for each, view in self.view.streams.items() if not view.ended_there]:
                self.view.streams[stream].widened += OUTLIVES
                self._send(http2.window_update(stream, OUTLIVES))


def reply_to(request: GrpcRequest, payload: bytes, how: str) -> bytes:
    """A worker's reply to a request."""
    its_head, stream, _, flags, _, progress = request
    if how == "fault":
        said = grpc_replies.broken_off if flags & LATER else grpc_replies.fault_reply
        return said(stream, FaultCode.INTERNAL, "planted")
    if progress is None and how != "metadata":
        return grpc_replies.usual_reply(stream, payload)
    begun = b"" if flags & LATER else grpc_replies.begun(stream, metadata=[(b"name", b"value")])
    reply = begun + (b"" if how == "nothing" else grpc_replies.messages(stream, payload))
    if progress is not None:
        goes_on = how == "more" and its_head.kind in (Kind.STREAMED, Kind.REPLIES) and not flags & END
        progress.replies = iter(()) if goes_on else None
        if not flags & END and (goes_on or its_head.kind is not Kind.REPLIES):
            return reply
    return reply + grpc_replies.ended(stream)


ACTIONS = [
    Played.begins,
    Played.calls,
    Played.sends,
    Played.sends,
    Played.ends,
    Played.resets,
    Played.widens,
    Played.settles,
    Played.answers,
    Played.answers,
    Played.renews,
]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 6),
    st.sampled_from([0, 7, 40, http2.WINDOW_DEFAULT]),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 6), st.sampled_from(SIZES)), max_size=40),
)
def test_in_any_order_all_bytes_are_lawful_and_every_call_ends(
    streams_max: int, window: int, actions: list[tuple[object, int, int]]
) -> None:
    """Every call ends once, with its whole reply, a status or a reset. At the end nothing is held."""
    played = Played(streams_max, window)
    for action, pick, size in actions:
        action(played, pick, size)  # type: ignore[operator]  # a method of it
    played.finishes()
    for stream, view in played.view.streams.items():
        assert view.ended_there or view.reset_here or view.reset is not None
        if view.ended_there and view.status == 0:
            assert view.got_bytes == played.replied[stream]
    assert played.session.held_bytes == 0
    assert not played.session.occupied
