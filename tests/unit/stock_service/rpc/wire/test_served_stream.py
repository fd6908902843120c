"""A served connection's state machine, against a model that remembers everything.

The model is a list of the client's requests, and the server's actions for each. The machine is driven as the server
drives it. The reading thread looks when it is told to, and at other times. Workers answer in any order.
"""

import tracemalloc
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_session, http1, served_stream
from stock_service.rpc.wire.framing import (
    FramingError,
    RequestFrame,
    encode_reply,
    encode_request,
    reply_decoder,
    request_decoder,
)
from stock_service.rpc.wire.served_stream import BROKEN, CLOSED, ENDING, LEAVING, PAUSED, READING, Overdue, ServedStream

IDLE_NS, READ_NS = 1000, 100
FRAME_BYTES_MAX = 1000


def request(call: int) -> bytes:
    """A request's frame."""
    return encode_request(call, 0, b"/a.B/C", b"x" * (call % 5))


def objection(error: FramingError) -> bytes:
    """The objection to bytes that are not a frame."""
    return encode_reply(0, FaultCode.INVALID_ARGUMENT, str(error).encode())


class ServedStreamMachine(RuleBasedStateMachine):
    """Rules for the actions of a client, of the workers, and of time."""

    tasks = Bundle("tasks")
    """Requests that were dispatched and not answered."""

    @initialize(pipeline_max=st.integers(1, 3))
    def connected(self, pipeline_max: int) -> None:
        """A new connection."""
        self.pipeline_max = pipeline_max
        self.now_ns = 1
        self.stream = ServedStream(request_decoder(FRAME_BYTES_MAX), objection, pipeline_max, self.now_ns)
        self.next_call = 1
        self.half = 0  # the call of the frame whose beginning was sent
        self.unread = b""  # of the frame whose beginning was sent
        self.sent: list[int] = []  # the calls that arrived whole and in order, before anything wrong
        self.begun: list[int] = []  # those that were dispatched, in that order
        self.flying = 0
        self.said: list[FaultCode] = []  # the faults of the connection
        self.wrong = False  # the client sent what is no request
        self.asked = False  # a worker asked the reading thread to look
        self.client_ended = False
        self.share, self.room = 1000, 1000  # how much of it a look dispatches

    # ---- the reading thread, as ``reactor`` has it

    def look(self, answered_meanwhile: bool = False, unseen: bool = False) -> list[int]:
        """Attend to a changed connection as the server does.

        ``answered_meanwhile``: a worker answers while it looks; ``unseen``: after it has read how many are in flight.
        """
        stream = self.stream
        self.asked = False
        if stream.state is CLOSED:
            return []
        stream.queued = False
        released = stream.release(self.share)
        for frame, arrived_ns in reversed(released[self.room :]):
            stream.put_back(frame, arrived_ns)
        begun = [self.dispatched(frame) for frame, _ in released[: self.room]]
        in_flight = stream.in_flight
        words = stream.words()
        if answered_meanwhile:
            self.flying -= 1
            self.asked = stream.replied(stream.unsent)
            if unseen and in_flight >= self.pipeline_max:
                return begun  # ``settle`` changes nothing by what it has read
        if words:
            assert self.flying == 0, "the fault was said before the replies"
            self.say(words)
        if stream.done:
            assert not self.flying
            assert stream.state is BROKEN or not stream.unsent
            stream.close()
        else:
            if stream.finished:
                assert not self.client_ended
                stream.leave()
            stream.settle(self.now_ns)
            if stream.releasable():
                stream.queued = True  # the server looks again by itself
        return begun

    def dispatched(self, frame: RequestFrame) -> int:
        self.begun.append(frame.call)
        self.flying += 1
        return frame.call

    def say(self, words: bytes) -> None:
        """A fault of the connection, which the client takes."""
        (reply,) = reply_decoder().feed(words)
        assert reply.call == 0
        self.said.append(FaultCode(reply.code))
        self.stream.replied(self.stream.unsent)

    def read(self, data: bytes) -> list[int]:
        """The server has read this."""
        frame = self.stream.take(data, self.now_ns, self.now_ns)
        return self.look() if frame is None else [self.dispatched(frame)]

    def reads(self) -> bool:
        """Tell whether the server reads."""
        return self.stream.state is READING

    # ---- what may happen

    @precondition(reads)
    @rule(target=tasks, count=st.integers(1, 5), held_back=st.integers(0, 12))
    def client_sends(self, count: int, held_back: int) -> object:
        """Some requests, the last perhaps not whole."""
        data, self.unread = self.unread, b""
        calls = list(range(self.next_call, self.next_call + count))
        self.next_call += count
        frames = [request(call) for call in calls]
        whole = calls
        if data:
            self.sent.append(self.half)
        data += b"".join(frames)
        if held_back:
            data, self.unread = data[:-held_back], data[-held_back:]
            whole, self.half = calls[:-1], calls[-1]
        self.sent += whole
        return _several(self.read(data))

    @precondition(lambda self: self.reads() and not self.unread)
    @rule(target=tasks, before=st.integers(0, 3), what=st.sampled_from([request(0), b"GET / HTTP/1.1\r\n\r\n"]))
    def client_sends_what_is_no_request(self, before: int, what: bytes) -> object:
        """The client sends bytes that are not a request, behind some requests. Later bytes are ignored."""
        calls = list(range(self.next_call, self.next_call + before))
        self.next_call += before
        self.sent += calls
        self.wrong = True
        return _several(self.read(b"".join(map(request, calls)) + what + (b"" if what[:1] == b"G" else request(99))))

    @rule(task=consumes(tasks), taken=st.booleans())
    def worker_answers(self, task: int, taken: bool) -> None:
        """A worker answers, in any order. The client may not take the reply."""
        self.flying -= 1
        unsent = self.stream.unsent or (not taken and self.stream.state not in (BROKEN, CLOSED))
        self.asked = self.stream.replied(unsent) or self.asked

    @rule(target=tasks, task=consumes(tasks), unseen=st.booleans())
    def worker_answers_while_the_server_looks(self, task: int, unseen: bool) -> object:
        """A worker answers at the last moment at which no further look would come, if the server did not announce
        itself first."""
        return _several(self.look(answered_meanwhile=True, unseen=unseen))

    @precondition(lambda self: self.asked)
    @rule(target=tasks)
    def server_looks_because_it_was_asked(self) -> object:
        """The server looks because it was asked, soon after."""
        return _several(self.look())

    @rule(target=tasks, share=st.sampled_from([0, 1, 2, 1000]), room=st.sampled_from([0, 1, 1000]))
    def server_has_less_room(self, share: int, room: int) -> object:
        """A turn lets some requests through. Some of the released ones may have to be put back."""
        self.share, self.room = share, room
        begun = self.look()
        self.share, self.room = 1000, 1000
        return _several(begun)

    @rule(target=tasks)
    def server_looks_without_being_asked(self) -> object:
        """Which does no harm."""
        return _several(self.look())

    @precondition(lambda self: self.stream.unsent and self.stream.state is not CLOSED)
    @rule(target=tasks, all_of_it=st.booleans())
    def client_takes_more(self, all_of_it: bool) -> object:
        """epoll says so."""
        self.stream.flushed(not all_of_it)
        return _several(self.look())

    @precondition(reads)
    @rule(target=tasks)
    def client_sends_no_more(self) -> object:
        """The client has closed its half."""
        self.client_ended = True
        self.stream.end(by_client=True)
        return _several(self.look())

    @precondition(reads)
    @rule(target=tasks)
    def server_stops(self) -> object:
        """The server has read what had arrived."""
        self.stream.end()
        return _several(self.look())

    @precondition(lambda self: self.stream.state is LEAVING)
    @rule()
    def client_leaves_last(self) -> None:
        """The server drops what came before that, and closes."""
        assert not self.flying
        assert not self.stream.unsent
        self.stream.close()

    @precondition(lambda self: self.stream.state is not CLOSED)
    @rule()
    def client_is_gone(self) -> None:
        """A reset."""
        self.stream.cut()
        if self.stream.done:
            self.stream.close()

    @precondition(lambda self: self.stream.state is not CLOSED)
    @rule(target=tasks, passed_ns=st.sampled_from([1, READ_NS + 1, IDLE_NS + 1]))
    def time_passes(self, passed_ns: int) -> object:
        """Time passes, and the server sweeps."""
        self.now_ns += passed_ns
        before, half, flying, unsent = self.stream.state, bool(self.unread), self.flying, self.stream.unsent
        overdue = self.stream.overdue(self.now_ns, IDLE_NS, READ_NS)
        match overdue:
            case Overdue.REPLY:
                assert unsent
                self.stream.cut()
                return _several(self.look())
            case Overdue.REQUEST:
                assert before is READING
                assert half
                self.said.append(FaultCode.DEADLINE_EXCEEDED)
                self.stream.replied(self.stream.unsent)
                return _several(self.look())
            case Overdue.IDLE:
                assert not flying
                assert not unsent
                self.stream.close()
            case Overdue.NOTHING:
                assert not (half and before is READING and passed_ns > READ_NS), "a request stays half there for ever"
        return _several([])

    # ---- what always holds

    @invariant()
    def requests_begin_in_the_order_in_which_they_came(self) -> None:
        """Each once, none left out."""
        assert self.begun == self.sent[: len(self.begun)]

    @invariant()
    def no_more_are_under_way_than_the_pipeline_takes(self) -> None:
        """No more requests are under way than the pipeline takes, and the machine's count is right."""
        assert self.flying <= self.pipeline_max
        assert self.stream.in_flight == self.flying

    @invariant()
    def who_is_read_is_owed_nothing_more(self) -> None:
        """A connection that is read has all its requests dispatched, and its client has taken the replies."""
        if self.stream.state is READING:
            assert self.begun == self.sent
            assert self.asked or not self.stream.unsent

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        """If nothing is under way or unsent, and no look was asked for, there is nothing to look for."""
        if not (self.asked or self.flying or self.stream.unsent or self.stream.queued):
            assert self.stream.state in (READING, LEAVING, CLOSED)

    @invariant()
    def a_fault_is_said_once_and_last(self) -> None:
        """A fault is sent once at most, as the last bytes. Bytes that are not a request get one, unless the client has
        gone."""
        assert len(self.said) <= 1
        if self.wrong:
            assert self.stream.state is not READING

    def teardown(self) -> None:
        """Once the workers are done and the client takes all bytes, an ended connection is closed, with its fault
        sent."""
        if not hasattr(self, "stream"):
            return
        gone = self.stream.state in (BROKEN, CLOSED)
        self.stream.end(by_client=True)
        for _ in range(3 * len(self.sent) + 3):
            while self.flying:
                self.flying -= 1
                self.stream.replied(False)
            if self.stream.state is not CLOSED:
                self.stream.flushed(False)
                self.look()
        assert self.stream.state in (LEAVING, CLOSED)
        if not gone:
            assert self.begun == self.sent
            assert len(self.said) == self.wrong or FaultCode.DEADLINE_EXCEEDED in self.said


def _several(calls: list[int]) -> object:
    """Each item of a bundle."""
    return multiple(*calls)


TestServedStream = pytest.mark.slow(ServedStreamMachine.TestCase)
TestServedStream.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


STATES = {state.name for state in (READING, PAUSED, ENDING, LEAVING, BROKEN, CLOSED)}


@pytest.mark.parametrize(
    ("module", "states", "begins", "ends"),
    [
        (served_stream, STATES, set(), {"CLOSED"}),
        (grpc_session, {"half", "open", "held", "closed"}, {"idle"}, {"closed"}),
        (http1, {state.name for state in http1._State}, set(), set()),
    ],
)
def test_every_state_is_in_the_modules_table(
    module: ModuleType, states: set[str], begins: set[str], ends: set[str]
) -> None:
    """The table of states in a module's docstring has every state, and no other. No row begins with one of ``ends``,
    and none leads to one of ``begins``."""
    lines = [line for line in (module.__doc__ or "").splitlines() if line.startswith("|") and "---" not in line]
    rows = [line.replace("and a message is complete", "").split("|") for line in lines[1:]]
    at_first, at_last = ({name.strip() for row in rows for name in row[place].split(",")} for place in (1, 3))
    assert at_first - {"all of these"} == states - ends | begins
    assert at_last - {""} == states


def test_time_in_which_nothing_is_read_is_not_the_clients() -> None:
    """The rest of a request could not come while the connection stood paused; from then on it must come in time."""
    stream = ServedStream(request_decoder(FRAME_BYTES_MAX), objection, 1, 1)
    assert stream.take(request(1) + request(2)[:5], 1, 1) is None
    assert len(stream.release(9)) == 1
    stream.settle(1)
    assert stream.state is PAUSED
    late_ns = 1 + 10 * READ_NS
    stream.replied(unsent=False)
    assert stream.release(9) == []
    stream.settle(late_ns)
    assert stream.state is READING
    assert stream.overdue(late_ns + READ_NS, IDLE_NS * 100, READ_NS) is Overdue.NOTHING
    assert stream.overdue(late_ns + READ_NS + 1, IDLE_NS * 100, READ_NS) is Overdue.REQUEST


@pytest.mark.slow
def test_half_a_request_counts_with_all_the_memory_that_it_takes() -> None:
    """The budget of all connections is kept in memory, not in bytes sent."""
    begun = encode_request(1, 0, b"/a.B/C", bytes(300_000))[:-1]
    stream = ServedStream(request_decoder(), objection, 1, 1)
    tracemalloc.start()
    try:
        for start in range(0, len(begun), 10_000):
            stream.take(begun[start : start + 10_000], 1, 1)
            taken, _ = tracemalloc.get_traced_memory()
            assert 0 <= stream.held_bytes() + 10_000 - taken <= 10_000 + len(begun) // 8
    finally:
        tracemalloc.stop()
