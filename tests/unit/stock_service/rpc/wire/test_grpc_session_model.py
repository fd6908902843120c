"""A gRPC connection's state machine, against a model of every call and a client that knows what HTTP/2 allows.

The machine is driven as the server drives it. A client sends frames, cut anywhere, in any allowed order. Workers answer
in any order. After each rule every call is in the model's state, all sent bytes are lawful, and no bytes are held that
the windows allow.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_session, http2
from stock_service.rpc.wire.grpc_calls import MORE
from stock_service.rpc.wire.grpc_heads import Kind
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_call_model import Asked, live, reply_to
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import PATH, TALKED, WATCHED, data, frames, head, message
from tests.unit.stock_service.rpc.wire.grpc_session_model import GRANT_BYTES, LISTED, SessionModel

PATHS = st.sampled_from([PATH, PATH, PATH, WATCHED, TALKED, LISTED])
FATES = st.sampled_from([*["good"] * 8, "unknown", "http", "said", "malformed"])
PICKS = st.integers(0, 7)
COUNTS = st.sampled_from([1, 7, 100, 70_000])
"""Bytes by which a window is widened."""

CUTS = st.lists(st.integers(1, 30), max_size=2)
"""Places at which the bytes of a rule are cut."""

TRAILERS = encode_block([(b"name", b"value")])


def body_of(reply: bytes) -> int:
    """Bytes of DATA in it."""
    return sum(len(frame.payload) for frame in frames(reply) if frame.kind == http2.DATA)


class GrpcSessionMachine(RuleBasedStateMachine):
    """Rules for the actions of a client, of the workers, and of a server that stops."""

    @initialize(streams_max=st.integers(1, 6), window=st.sampled_from([0, 7, 40, http2.WINDOW_DEFAULT]))
    def connected(self, streams_max: int, window: int) -> None:
        """A new connection; a window is given back as soon as some bytes are used, so that each one counts."""
        self.model = SessionModel(streams_max, window)

    # ---- when

    def reads(self) -> bool:
        """Tell whether the server takes bytes of the client."""
        return not self.model.lost

    def has_room(self) -> bool:
        """True where one call more is allowed. Else nearly all calls would be refused."""
        return not self.model.lost and sum(1 for _ in live(self.model.calls)) < self.model.streams_max

    def has_calls(self) -> bool:
        """Tell whether there is a call to send something of."""
        return not self.model.lost and bool(self.model.calls)

    def may_end(self) -> bool:
        """True where enough has happened, so that the end does not come too early."""
        return not self.model.lost and len(self.model.calls) > 6

    # ---- what a client may do

    @precondition(has_room)
    @rule(path=PATHS, fate=FATES, cuts=CUTS)
    def client_begins_a_call(self, path: bytes, fate: str, cuts: list[int]) -> None:
        """HEADERS alone."""
        self.model.sends(self.model.opened(path, fate)[1], cuts=cuts)

    @precondition(has_room)
    @rule(path=PATHS, sizes=st.lists(st.integers(0, 40), min_size=1, max_size=3), cuts=CUTS)
    def client_calls(self, path: bytes, sizes: list[int], cuts: list[int]) -> None:
        """Whole calls in one go, as nearly all come."""
        sent, asked = b"", []
        for size in sizes:
            call, begun = self.model.opened(path, "good")
            frame, its = self.model.sent_of(call, message(bytes(size)), ends=True)
            sent += begun + frame
            asked += its
        if path == PATH:
            self.model.sends(sent, asked, cuts)
        else:
            self.model.sends(sent)

    @precondition(has_calls)
    @rule(pick=PICKS, size=st.integers(0, 40), part=st.integers(1, 50), ends=st.booleans(), padding=st.integers(0, 2))
    def client_sends_of_a_call(self, pick: int, size: int, part: int, ends: bool, padding: int) -> None:
        """The next piece of a message, or all the rest of it."""
        call = self.model.growing(pick)
        if call is None:
            return
        rest = b"" if call.whole else message(b"x" * size)[len(call.half) :]
        if len(call.half) >= 5 and call.state != "closed":
            rest = bytes(5 + int.from_bytes(call.half[1:5]) - len(call.half))
        self.model.sends(*self.model.sent_of(call, rest[:part], ends, padding))

    @precondition(has_room)
    @rule(pick=PICKS, sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4), ends=st.booleans())
    def client_talks(self, pick: int, sizes: list[int], ends: bool) -> None:
        """Several messages of one call, perhaps a new one, in one frame."""
        talks = [
            each
            for each in self.model.calls.values()
            if each.kind is Kind.STREAMED and each.can_go_on and not each.half
        ]
        call, begun = (talks[pick % len(talks)], b"") if talks else self.model.opened(TALKED, "good")
        frame, asked = self.model.sent_of(call, b"".join(message(bytes(size)) for size in sizes), ends)
        self.model.sends(begun + frame, asked)

    @precondition(has_calls)
    @rule(pick=PICKS, wrong=st.sampled_from([message(bytes(201)), message(b"", 1), message(b"1") + message(b"2")]))
    def client_sends_what_may_be_wrong(self, pick: int, wrong: bytes) -> None:
        """The client sends a message that is too long or compressed, or a second message."""
        call = self.model.growing(pick)
        if call is not None:
            self.model.sends(*self.model.sent_of(call, wrong, ends=False))

    @precondition(has_calls)
    @rule(pick=PICKS, good=st.booleans(), cuts=CUTS)
    def client_ends_with_trailers(self, pick: int, good: bool, cuts: list[int]) -> None:
        """The client ends a call with trailers, or with HEADERS that are not trailers."""
        call = self.model.growing(pick)
        if call is None:
            return
        asked: list[Asked] = []
        call.view.ended_here = good
        if call.counts:
            if good:
                asked = call.client_ended()
            else:
                call.end(None, ErrorCode.PROTOCOL_ERROR)
        self.model.sends(http2.headers(call.stream, TRAILERS, good), asked, cuts)

    @precondition(has_calls)
    @rule(pick=PICKS)
    def client_gives_a_call_up(self, pick: int) -> None:
        """The client gives a call up in any state."""
        call = self.model.picked(pick, "half", "open", "held", "kept", "closed")
        if call is not None:
            if call.state != "closed":
                call.end(None, None)
                call.ignored = False
            call.view.reset_here = True
            self.model.sends(http2.rst_stream(call.stream, ErrorCode.CANCEL))

    @precondition(has_calls)
    @rule(pick=PICKS, count=COUNTS)
    def client_widens_a_calls_window(self, pick: int, count: int) -> None:
        """The client widens a call's window in any state."""
        call = list(self.model.calls.values())[pick % len(self.model.calls)]
        if self.model.view.room(call.stream) + count <= http2.WINDOW_MAX:
            call.view.widened += count
            self.model.sends(http2.window_update(call.stream, count))

    @precondition(reads)
    @rule(count=COUNTS)
    def client_widens_the_connections_window(self, count: int) -> None:
        """All calls share it."""
        self.model.view.window += count
        self.model.sends(http2.window_update(0, count))

    @precondition(may_end)
    @rule(pick=PICKS)
    def client_widens_a_window_too_far(self, pick: int) -> None:
        """A call's window ends the call alone, unless its reply is held; the connection's ends the connection."""
        call = None if pick == 0 else self.model.picked(pick, "half", "open", "held", "kept")
        room = self.model.view.window if call is None else self.model.view.room(call.stream)
        if room > 0:
            if call is None or call.state == "held":
                self.model.broken_by = ErrorCode.FLOW_CONTROL_ERROR
            else:
                call.end(None, ErrorCode.FLOW_CONTROL_ERROR)
            self.model.sends(http2.window_update(0 if call is None else call.stream, http2.WINDOW_MAX))

    @precondition(reads)
    @rule(window=st.sampled_from([0, 1, 7, 40, 20_000]), ping=st.binary(min_size=8, max_size=8), cuts=CUTS)
    def client_changes_all_windows(self, window: int, ping: bytes, cuts: list[int]) -> None:
        """The client changes all windows, also to less than was used, with a PING behind it, and PRIORITY, which has no
        effect."""
        self.model.view.settings += 1
        self.model.view.pings.append(ping)
        self.model.view.initial_window = window
        settings = http2.settings((http2.INITIAL_WINDOW_SIZE, window))
        self.model.sends(settings + http2.frame(http2.PING, 0, 0, ping) + http2.frame(http2.PRIORITY, 0, 1, bytes(5)))

    @precondition(may_end)
    @rule(pick=PICKS, ended=st.booleans())
    def client_breaks_the_connection(self, pick: int, ended: bool) -> None:
        """The client breaks the connection with DATA of a call that it has ended or not begun. Nothing is read after
        that."""
        stream, self.model.broken_by = self.model.next, ErrorCode.PROTOCOL_ERROR
        ended_ones = [each for each in self.model.calls.values() if each.view.ended_here and not each.ignored]
        if ended and ended_ones:
            stream, self.model.broken_by = ended_ones[pick % len(ended_ones)].stream, ErrorCode.STREAM_CLOSED
        if self.model.draining and stream > self.model.last:
            self.model.broken_by = None  # which it was told that nobody looks at
        self.model.sends(data(stream, b""))

    @precondition(may_end)
    @rule()
    def client_sends_no_more(self) -> None:
        """The client has closed its half of the connection."""
        self.model.session.lose()
        self.model.is_lost()

    @precondition(lambda self: self.model.lost)
    @rule()
    def client_sends_what_nobody_reads(self) -> None:
        """The client sends bytes that are not read, after its end or the break of the connection."""
        assert self.model.session.feed(head(self.model.next) + data(self.model.next, message(b""))) == []

    @precondition(lambda self: self.may_end() and not self.model.draining)
    @rule()
    def server_finds_the_connection_old(self) -> None:
        """Calls are taken until its client has heard."""
        assert self.model.session.retire()
        self.model.view.take(frames(self.model.session.take_outgoing()))
        assert self.model.view.goaways[-1] == (http2.STREAM_MAX, ErrorCode.NO_ERROR)

    @precondition(lambda self: self.reads() and self.model.view.asked)
    @rule()
    def client_hears_that_it_is_old(self) -> None:
        """The client learns that the connection is old. Later calls are not taken, and all else is."""
        self.model.draining = True
        self.model.sends(http2.frame(http2.PING, http2.ACK, 0, self.model.view.asked.popleft()))
        assert self.model.view.goaways[-1] == (self.model.last, ErrorCode.NO_ERROR)

    @precondition(lambda self: self.may_end() and not self.model.stopped)
    @rule()
    def server_stops(self) -> None:
        """Whole calls are answered; streams come to their end."""
        self.model.draining = self.model.stopped = True
        for call in list(live(self.model.calls)):
            call.drained()
        self.model.session.drain()
        self.model.view.take(frames(self.model.session.take_outgoing()))
        assert self.model.view.goaways[-1] == (self.model.last, ErrorCode.NO_ERROR)
        self.model.takes_ready()

    @precondition(lambda self: self.has_calls() and not self.model.stopped)
    @rule()
    def server_renews(self) -> None:
        """A watch that was answered, and for which nothing waits, is answered again."""
        for call in live(self.model.calls):
            call.renewed()
        self.model.session.renew()
        self.model.takes_ready()

    # ---- what workers do

    @precondition(lambda self: self.model.flying)
    @rule(
        pick=PICKS,
        size=st.sampled_from([0, 1, 6, 30, 100, 20_000]),
        how=st.sampled_from(["reply", "reply", "more", "nothing", "fault", "metadata"]),
    )
    def worker_answers(self, pick: int, size: int, how: str) -> None:
        """A worker answers, in any order. A reply to a call that was given up is dropped."""
        request = self.model.flying.pop(pick % len(self.model.flying))
        call = self.model.calls[request[1]]
        asked = call.state == "open"
        assert (call.stream in request[4]) == asked
        reply, ends = reply_to(request, bytes(size), how)
        progress, kept = request[5], call.kind is not Kind.UNARY and not self.model.lost
        if asked:
            call.asked, call.finished, call.owed_bytes = False, ends, call.owed_bytes + body_of(reply)
            if ends:
                early = kept and not call.view.ended_here
                call.ends_with = (FaultCode.INTERNAL if how == "fault" else 0, ErrorCode.NO_ERROR if early else None)
                call.ignored = early
            elif progress is not None and progress.replies is not None:
                call.waiting.appendleft((b"", MORE))
        self.model.view.take(frames(self.model.session.admit(request, reply)) if asked else [])
        if not asked:
            assert self.model.session.admit(request, reply) == b""
        self.model.view.take(frames(self.model.session.take_outgoing()))
        if self.model.lost:
            call.over = True
        self.model.takes_ready()

    # ---- what always holds

    @invariant()
    def every_call_is_where_the_model_has_it(self) -> None:
        """Every call is in one place, that of the model."""
        table, endpoint = self.model.session._calls, self.model.session._endpoint
        for stream, call in self.model.calls.items():
            places = {
                "half": stream in table.half,
                "open": stream in table.open,
                "held": stream in endpoint.held,
                "kept": stream in table.kept and stream not in table.open and stream not in endpoint.held,
            }
            assert [name for name, is_there in places.items() if is_there] == [call.state] * (call.state != "closed")

    @invariant()
    def what_ended_was_said_to_end_as_it_did(self) -> None:
        """Every ended call got its end once, and no other call did. No reply is longer than it was."""
        for call in self.model.calls.values():
            view = call.view
            if call.state != "closed":
                assert (view.ended_there, view.reset) == (False, None)
            elif not (view.reset_here or self.model.lost):
                assert (view.status, view.reset) == call.ends_with
            if call.finished and not (call.over or self.model.lost):
                assert view.got_bytes == call.owed_bytes or call.state == "held"

    @invariant()
    def nothing_is_held_that_may_leave(self) -> None:
        """No held bytes may leave, and no more are held."""
        held = [call for call in self.model.calls.values() if call.state == "held"]
        for call in held:
            assert min(self.model.view.window, self.model.view.room(call.stream)) <= 0
        owed = sum(call.owed_bytes - call.view.got_bytes for call in held)
        kept = [call for call in live(self.model.calls) if call.kind and not (self.model.lost or call.finished)]
        waiting = sum(call.waiting_bytes for call in kept)
        assert self.model.session.held_bytes == owed + waiting

    @invariant()
    def windows_are_given_back(self) -> None:
        """The connection's window is given back for all bytes; a kept call's window with each of its messages."""
        if not self.model.lost:
            assert 0 <= self.model.view.sent_bytes - self.model.view.granted < GRANT_BYTES
            for call in live(self.model.calls):
                if call.kind and not call.view.ended_here:
                    assert call.view.granted == call.taken_bytes

    @invariant()
    def what_is_half_there_is_counted(self) -> None:
        """Half requests are counted, so that their time is bounded. Bytes of a call whose last reply is held are
        not."""
        if self.model.lost:
            assert self.model.session.pending_bytes == 0
        else:
            half = sum(
                len(call.half) + sum(5 + len(whole) for whole in call.whole) + (call.state == "half")
                for call in live(self.model.calls)
                if call.state == "half" or (call.kind and not call.finished)
            )
            assert self.model.session.pending_bytes == half

    def teardown(self) -> None:
        """Once workers are done and windows wide, every whole request is answered."""
        if not hasattr(self, "model"):
            return
        while self.model.flying:
            self.worker_answers(0, 3, "reply")
            if not self.model.lost:
                self.client_widens_the_connections_window(70_000)
                for pick, call in enumerate(self.model.calls.values()):
                    if call.state == "held":
                        self.client_widens_a_calls_window(pick, 70_000)
        assert not any(call.state == "open" for call in self.model.calls.values())


TestGrpcSession = pytest.mark.slow(GrpcSessionMachine.TestCase)
TestGrpcSession.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_every_state_of_a_call_is_in_the_modules_table() -> None:
    """Every state of the table is one of the model, and the reverse, except idle."""
    table = grpc_session.__doc__ or ""
    rows = [row.split("|") for row in table.splitlines() if row.startswith("|") and "---" not in row][1:]
    known = {"half", "open", "held", "closed"}
    assert {name.strip() for row in rows for name in row[3].split(",")} == known
    assert {name.strip() for row in rows for name in row[1].split(",")} - {"all of these"} == known - {"closed"} | {
        "idle"
    }
