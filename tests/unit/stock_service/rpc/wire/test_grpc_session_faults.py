"""Clients that err or mean harm on a gRPC server's connection: all of it is bounded, and said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_heads import Head, Kind
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.http2 import ErrorCode
from stock_service.rpc.wire.patience import CREDITS_FIRST, CREDITS_PER_ANSWER, PINGS_MAX
from stock_service.rpc.wire.served_stream import Overdue, ServedStream
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import (
    HELLO,
    MIXED,
    STREAMS_MAX,
    TALKED,
    WATCHED,
    Talk,
    call,
    data,
    fields,
    frames,
    head,
    message,
)
from tests.unit.stock_service.rpc.wire.http2_floods import floods
from tests.unit.stock_service.rpc.wire.streams import cut

WRONG = {
    "no message": (head(1, ends=True), FaultCode.INTERNAL, "no message"),
    "half a message": (head(1) + data(1, message(b"12345")[:-1]), FaultCode.INTERNAL, "half"),
    "two messages": (head(1) + data(1, message(b"1") * 2), FaultCode.INTERNAL, "more than one"),
    "two to a watch": (head(1, WATCHED) + data(1, message(b"") * 2), FaultCode.INTERNAL, "more than one"),
    "too long": (head(1) + data(1, message(b"")[:1] + b"\x00\x10\x00\x00"), FaultCode.RESOURCE_EXHAUSTED, "1048576"),
    "compressed": (head(1) + data(1, message(b"1", 1)), FaultCode.INTERNAL, "compressed"),
    "encoding": (call(1, grpc_encoding="snappy"), FaultCode.UNIMPLEMENTED, "snappy"),
    "no such method": (call(1, path=b"/a.Service/None"), FaultCode.UNIMPLEMENTED, "/a.Service/None"),
    "timeout": (call(1, grpc_timeout="1 second"), FaultCode.INTERNAL, "grpc-timeout"),
    "binary": (call(1, trace_bin="!"), FaultCode.INTERNAL, "base64"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_call_ends_alone(kind: str) -> None:
    """The call gets a status and no worker; the next call is served, and the rest of the first is ignored."""
    sent, code, said = WRONG[kind]
    talk = Talk()
    assert not talk.send(sent)
    status, detail = talk.status([frame for frame in talk.said() if frame.kind == http2.HEADERS])
    assert (status, said in detail) == (code, True)
    assert len(talk.send(call(3))) == 1
    assert talk.broken_by is None


def test_what_is_no_call_gets_a_status_of_http() -> None:
    """A whole request that is not a call of gRPC gets a status of HTTP with the reason in text."""
    for name, value, status in (
        (b":method", b"GET", b"405"),
        (b"content-type", b"application/json", b"415"),
        (b"content-type", b"", b"415"),
    ):
        talk, block = Talk(), encode_block({**dict(fields()), name: value}.items())
        assert not talk.send(http2.headers(1, block, False))
        assert not talk.said()
        assert not talk.send(data(1, b"{}"))
        begin, text = talk.said()
        assert talk.fields(begin)[b":status"] == status
        assert text.flags == http2.END_STREAM
        assert text.payload


BREAKING = {
    "not HTTP/2": (b"GET / HTTP/1.1\r\n\r\n", ErrorCode.PROTOCOL_ERROR),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 4, ErrorCode.PROTOCOL_ERROR),
    "a closed stream's DATA": (HELLO + call(1) + data(1, b"more"), ErrorCode.STREAM_CLOSED),
    "a closed stream's HEADERS": (HELLO + call(3) + head(1), ErrorCode.STREAM_CLOSED),
    "an idle stream's DATA": (HELLO + data(1, b""), ErrorCode.PROTOCOL_ERROR),
    "an idle stream's reset": (HELLO + http2.rst_stream(1, ErrorCode.CANCEL), ErrorCode.PROTOCOL_ERROR),
    "an even stream": (HELLO + head(2), ErrorCode.PROTOCOL_ERROR),
    "a block that is none": (HELLO + http2.headers(1, b"\xff\xff\xff\xff", True), ErrorCode.COMPRESSION_ERROR),
    "a block of over 64 KiB": (
        HELLO + http2.headers(1, encode_block([(b"a", b"b" * 17_000)] * 4), True),
        ErrorCode.ENHANCE_YOUR_CALM,
    ),
}


@pytest.mark.parametrize("kind", BREAKING)
def test_what_breaks_a_connection(kind: str) -> None:
    """GOAWAY says why, and nothing that follows is looked at; the calls before it are served."""
    sent, code = BREAKING[kind]
    talk = Talk(hello=b"")
    requests = talk.send(sent)
    assert talk.broken_by is code
    assert not talk.send(call(99))
    assert not talk.session.reads_on
    for request in requests:
        assert talk.reply(request, b"reply")


FLOODS = floods()


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_is_told_to_calm_down(kind: str) -> None:
    """A flood is ended with ENHANCE_YOUR_CALM: after 500 frames without use, in no time, and sooner for costly
    frames."""
    talk = Talk()
    for number in range(500):
        talk.send(FLOODS[kind](number))
        talk.said()
        if talk.broken_by is not None:
            break
    assert talk.broken_by is ErrorCode.ENHANCE_YOUR_CALM
    assert number <= SOON.get(kind, 400)


SOON = {"380 fields": 2, "Huffman's code": 2, "2,730 settings": 7, "unknown methods": 70, "no calls": 200}
"""Number of frames after which costly floods are ended."""


@pytest.mark.parametrize("window", [0, 1])
def test_windows_that_widen_by_a_byte_are_a_flood(window: int) -> None:
    """Windows that widen by a byte are a flood: of each stream by SETTINGS, where 13 bytes move 64 held replies, and of
    the connection."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=64)
    for request in talk.send(*(call(stream) for stream in range(1, 129, 2))):
        talk.reply(request, bytes(90_000))
    if window:
        talk.send(http2.settings((http2.INITIAL_WINDOW_SIZE, 100_000)))
    said = 0
    for number in range(1500):  # the 64 calls have earned it a thousand credits
        talk.send(http2.window_update(0, 1) if window else http2.settings((http2.INITIAL_WINDOW_SIZE, number)))
        said += len(talk.said())
        if talk.broken_by is not None:
            break
    assert talk.broken_by is ErrorCode.ENHANCE_YOUR_CALM
    assert said < 3000


def test_a_header_block_that_does_not_end_is_counted() -> None:
    """Bytes of a header block that does not end are held and counted, and its rest is waited for as for half a
    request."""
    talk = Talk()
    talk.send(http2.frame(http2.HEADERS, 0, 1, bytes(100)))
    assert talk.session.pending_bytes == 101
    talk.send(http2.frame(http2.CONTINUATION, 0, 1, bytes(50)))
    assert talk.session.pending_bytes == 151


def test_messages_of_a_kept_call_that_wait_are_counted_and_bounded() -> None:
    """The window of a call whose answers do not leave is not renewed, and no more than it has is held."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)))
    body = message(bytes(45_000))
    pieces = [data(1, body[at : at + 15_000], ends=False) for at in range(0, len(body), 15_000)]
    (first,) = talk.send(head(1, TALKED), *pieces)
    assert talk.said() == frames(http2.window_update(1, len(body)))
    talk.session.admit(first, grpc_replies.begun(1) + grpc_replies.messages(1, b"not allowed to leave"))
    talk.send(*pieces, *pieces)
    assert talk.session.held_bytes >= 2 * len(body)
    assert talk.said() == []
    talk.send(*pieces)
    assert talk.said()[-1] == frames(http2.rst_stream(1, ErrorCode.INTERNAL_ERROR))[0]
    assert talk.session.held_bytes == 0


def test_frames_that_come_with_work_or_time_are_no_flood() -> None:
    """A client with four frames a call, and one with 900 a second, are served for ever. Without calls one PING a second
    is allowed."""
    talk = Talk()
    ping = http2.frame(http2.PING, 0, 0, bytes(8))
    for stream in range(1, 6001, 2):
        (request,) = talk.send(call(stream) + 4 * ping)
        assert talk.reply(request, b"")
        talk.said()
    idle = Talk()
    for number in range(9000):
        idle.now_ns += 10**9 // 900
        idle.send(http2.frame(77, 0, 0) if number % 900 else ping)
        idle.said()
    assert talk.broken_by is idle.broken_by is None


def fail(talk: Talk, stream: int) -> None:
    """A call that is answered with a fault."""
    (request,) = talk.send(call(stream))
    assert talk.session.admit(request, grpc_replies.fault_reply(stream, FaultCode.NOT_FOUND, "planted"))


CARRYING_NOTHING = {"unknown frames": http2.frame(77, 0, 0), "resets": http2.rst_stream(1, ErrorCode.CANCEL)}
"""Frames that cost a credit each."""


@pytest.mark.parametrize("kind", CARRYING_NOTHING)
def test_a_fault_earns_as_much_as_any_answer(kind: str) -> None:
    """After 21 faults as many useless frames are allowed as after 21 answers, and no more."""
    taken = []
    for answers in (1, 21):
        talk, count = Talk(), 0
        for stream in range(1, 2 * answers, 2):
            fail(talk, stream)
        while talk.broken_by is None and count < 2 * CREDITS_FIRST:
            talk.send(CARRYING_NOTHING[kind])
            count += 1
        assert talk.broken_by is ErrorCode.ENHANCE_YOUR_CALM
        taken.append(count)
    assert taken[1] - taken[0] == 20 * CREDITS_PER_ANSWER


def test_faults_let_a_client_ping_as_any_answer_does() -> None:
    """Faults reset the count of PINGs as answers do, and the client is read with all others from the first on."""
    talk, ping = Talk(), http2.frame(http2.PING, 0, 0, bytes(8))
    fail(talk, 1)
    talk.send(ping)
    assert not talk.session.toils
    for stream in (3, 5):
        talk.send(*[ping] * (PINGS_MAX - 1))
        fail(talk, stream)
        talk.send(ping)
    assert talk.broken_by is None
    talk.send(*[ping] * PINGS_MAX)
    assert talk.broken_by is ErrorCode.ENHANCE_YOUR_CALM


def test_keeping_alive_too_often_ends_a_connection() -> None:
    """Four PINGs a second without a call are too many after some seconds, and end the connection with words that gRPC's
    clients know."""
    talk = Talk()
    for number in range(40):
        assert talk.broken_by is None or number > 16
        talk.now_ns += 10**9 // 4
        talk.send(http2.frame(http2.PING, 0, 0, bytes(8)))
    assert talk.broken_by is ErrorCode.ENHANCE_YOUR_CALM
    assert b"too_many_pings" in talk.goaway


def test_a_length_that_is_said_must_be_true() -> None:
    """content-length that is not what came is malformed, also in a block that was true of another call."""
    talk = Talk()
    assert len(talk.send(call(1, b"12", content_length="7"))) == 1
    for stream, payload, length in ((3, b"12", "8"), (5, b"123", "7"), (7, b"1", "7")):
        assert not talk.send(call(stream, payload, content_length=length))
        assert talk.said() == frames(http2.rst_stream(stream, ErrorCode.PROTOCOL_ERROR))
    assert len(talk.send(call(9, b"12", content_length="7"))) == 1


SESSIONS = [MIXED, HELLO + b"".join(call(stream, bytes(stream)) for stream in range(1, 40, 2))]


@given(
    st.sampled_from(SESSIONS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.lists(st.integers(1, 300), max_size=20),
)
def test_a_mutated_session_is_bounded_and_breaks_nothing(
    session: bytes, changes: list[tuple[float, int]], sizes: list[int]
) -> None:
    """Bytes changed anywhere: requests, refusals or GOAWAY, and never an error of ours, or more held than came."""
    sent = bytearray(session)
    for place, value in changes:
        sent[int(place * (len(sent) - 1))] = value
    answer_all(bytes(sent), sizes)


def answer_all(sent: bytes, sizes: list[int]) -> None:
    """Feeds a session in chunks and answers each request."""
    talk = Talk(hello=b"")
    for piece in cut(sent, sizes):
        for request in talk.send(piece):
            talk.reply(request, bytes(100))
        talk.said()
        assert talk.session.pending_bytes <= len(sent) + STREAMS_MAX
        assert talk.session.held_bytes <= STREAMS_MAX * 105


def test_refusals_that_are_held_count_as_calls() -> None:
    """A request that is not a call of gRPC gets a text. A client that holds the texts back has few of them."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=3)
    block = encode_block({**dict(fields()), b":method": b"GET"}.items())
    assert not talk.send(b"".join(http2.headers(stream, block, True) for stream in (1, 3, 5, 7)))
    assert frames(http2.rst_stream(7, ErrorCode.REFUSED_STREAM))[0] in talk.said()


def test_who_only_watches_yields_to_who_asks() -> None:
    """A connection whose calls are all watches counts as one without activity, so that it may be closed for a new one.
    It is not idle: a server that stops has a reply for it."""
    session = Talk().session
    stream = ServedStream(session, lambda _: b"", 64, 1, session)
    assert stream.take(call(1, path=WATCHED), 5, 5) is not None
    assert stream.idle_since_ns == 0
    session.admit((Head(kind=Kind.STREAMED_REPLY), 1, b"", 0, {}, None), grpc_replies.begun(1))
    stream.replied(False)
    assert (stream.idle, stream.idle_since_ns, stream.owes) == (False, 5, True)


def test_half_a_message_of_a_call_that_was_ended_is_waited_for_no_more() -> None:
    """Half a message of a call that was ended is waited for no more, and the connection stays."""
    talk = Talk()
    stream = ServedStream(talk.session, lambda _: b"", 100, 5, talk.session)
    request = stream.take(head(1, TALKED) + data(1, message(b"1"), ends=False), 5, 5)
    assert request is not None
    stream.take(data(1, message(b"22")[:6], ends=False), 5, 5)
    assert talk.session.admit(request, grpc_replies.fault_reply(1, FaultCode.INTERNAL, "planted"))
    stream.replied(False)
    stream.release(1)
    stream.settle(5)
    assert stream.overdue(7, 1000, 1) is Overdue.NOTHING


def test_a_reply_that_may_not_leave_is_owed() -> None:
    """The reply to a request with an effect is kept until it may leave, also while the connection is cut."""
    session = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0))).session
    stream = ServedStream(session, lambda _: b"", 64, 1, session)
    owed = [stream.owes]
    request = stream.take(call(1), 5, 5)
    assert request is not None
    owed.append(stream.owes)
    session.admit(request, grpc_replies.begun(1) + grpc_replies.messages(1, b"done") + grpc_replies.ended(1))
    stream.replied(False)
    assert stream.in_flight == 0
    owed.append(stream.owes)
    stream.take(http2.window_update(1, 100), 5, 5)
    assert [*owed, stream.owes] == [False, True, True, False]


def test_a_call_is_reset_after_the_last_of_its_reply() -> None:
    """A call is reset after the last byte of its reply, since bytes after a reset would be dropped."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)))
    (request,) = talk.send(head(1, TALKED), data(1, message(b"1"), ends=False))
    reply = grpc_replies.begun(1) + grpc_replies.messages(1, b"last") + grpc_replies.ended(1)
    said = frames(talk.session.admit(request, reply)) + talk.said()
    talk.send(http2.window_update(1, 100))
    said += talk.said()
    kinds = [frame.kind for frame in said if frame.kind != http2.WINDOW_UPDATE]
    assert kinds == [http2.HEADERS, http2.DATA, http2.HEADERS, http2.RST_STREAM]
