"""One connection of a gRPC server, without I/O: calls, their replies under flow control, and its end."""

from itertools import pairwise

from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, GZIPPED, LATER, PLAIN
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import (
    HELLO,
    MESSAGE_BYTES_MAX,
    MIXED,
    PATH,
    STREAMS_MAX,
    TALKED,
    WATCHED,
    Frame,
    Talk,
    call,
    data,
    fields,
    frames,
    head,
    message,
)
from tests.unit.stock_service.rpc.wire.streams import cut


def test_the_first_words_are_settings() -> None:
    """The first bytes are settings: no header table, the number of open calls, and a stream's window."""
    talk = Talk(hello=b"")
    assert not talk.send(HELLO)
    first, window, acknowledged = talk.said()
    assert (first.kind, window.kind) == (http2.SETTINGS, http2.WINDOW_UPDATE)
    pairs = {first.payload[at + 1]: int.from_bytes(first.payload[at + 2 : at + 6]) for at in range(0, 24, 6)}
    assert pairs[http2.HEADER_TABLE_SIZE] == 0
    assert pairs[http2.MAX_CONCURRENT_STREAMS] == STREAMS_MAX
    assert pairs[http2.INITIAL_WINDOW_SIZE] == MESSAGE_BYTES_MAX + 5
    assert acknowledged == Frame(http2.SETTINGS, http2.ACK, 0, b"")


def test_a_usual_call() -> None:
    """A usual call has its method, stream and message, and its reply is three frames. The second call takes the short
    way."""
    talk = Talk()
    for stream in (1, 3):
        (request,) = talk.send(call(stream, b"hello", grpc_timeout="5S"))
        its_head, its_stream, payload, carries, open_calls, _ = request
        assert (its_head.path, its_head.timeout_ms, its_stream, payload, carries) == (
            PATH,
            5000,
            stream,
            b"hello",
            PLAIN,
        )
        begin, body, end = talk.reply(request, b"world")
        assert talk.fields(begin) == {b":status": b"200", b"content-type": b"application/grpc"}
        assert body == Frame(http2.DATA, 0, stream, message(b"world"))
        assert (end.flags, talk.status([end])) == (http2.END_HEADERS | http2.END_STREAM, (0, ""))
        assert not open_calls


@given(st.lists(st.integers(1, 400), max_size=60))
def test_any_chunking_gives_the_same(sizes: list[int]) -> None:
    """Any chunking gives the same requests and replies, and no rest."""
    talk = Talk(hello=b"")
    requests = talk.send(*cut(MIXED, sizes))
    assert [(request[1], len(request[2])) for request in requests] == [
        (1, 3),
        (3, 5),
        (7, 5),
        (5, 9000),
        (9, 4),
        (11, 6),
    ]
    assert [frame.kind for frame in talk.said()] == [
        http2.SETTINGS,
        http2.WINDOW_UPDATE,
        http2.SETTINGS,
        http2.PING,
        http2.SETTINGS,
    ]
    assert talk.broken_by is None
    assert talk.session.pending_bytes == 0


@given(
    sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=6),
    grants=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 20_000)), max_size=40),
    first_window=st.integers(0, 70_000),
)
def test_replies_leave_as_the_windows_allow(sizes: list[int], grants: list[tuple[int, int]], first_window: int) -> None:
    """Replies never exceed the windows. With wide windows all leave, each whole, in order, with its trailers."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, first_window)))
    streams = [2 * number + 1 for number in range(len(sizes))]
    requests = talk.send(*(call(stream) for stream in streams))
    payloads = {stream: bytes([stream]) * size for stream, size in zip(streams, sizes, strict=True)}
    windows = {0: http2.WINDOW_DEFAULT, **dict.fromkeys(streams, first_window)}
    got = dict.fromkeys(streams, b"")
    ended = set()

    def take(said: list[Frame]) -> None:
        for frame in said:
            if frame.kind == http2.DATA:
                assert frame.stream not in ended
                got[frame.stream] += frame.payload
                for window in (0, frame.stream):
                    windows[window] -= len(frame.payload)
                    assert windows[window] >= 0
            if frame.flags & http2.END_STREAM:
                ended.add(frame.stream)

    for request in requests:
        take(talk.reply(request, payloads[request[1]]))
    wide = [(number, 400_000) for number in range(len(sizes) + 1)]
    for number, count in grants + wide:
        stream = 0 if number >= len(sizes) else streams[number]
        windows[stream] += count
        assert not talk.send(http2.window_update(stream, count))
        take(talk.said())
    for stream in streams:
        windows[stream] += 400_000
        talk.send(http2.window_update(stream, 400_000))
        take(talk.said())
    assert got == {stream: message(payload) for stream, payload in payloads.items()}
    assert ended == set(streams)
    assert not talk.session.held_bytes


def test_a_wider_window_that_came_before_the_reply_counts() -> None:
    """A stream's WINDOW_UPDATE is remembered while its call is not whole, and while a worker has it."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)))
    talk.send(head(1), http2.window_update(1, 6))
    (request,) = talk.send(data(1, message(b"")))
    talk.send(http2.window_update(1, 4))
    assert [frame.kind for frame in talk.reply(request, b"12345")] == [http2.HEADERS, http2.DATA, http2.HEADERS]


def test_what_is_held_is_forgotten_with_its_call() -> None:
    """A client that resets a call whose reply it did not allow to leave frees it."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 3)))
    (request,) = talk.send(call(1))
    assert [len(frame.payload) for frame in talk.reply(request, b"123")[1:]] == [3]
    assert talk.session.held_bytes == 5
    talk.send(http2.rst_stream(1, ErrorCode.CANCEL), http2.window_update(1, 100))
    assert (talk.session.held_bytes, talk.said()) == (0, [])


def test_a_cancelled_call_is_not_begun() -> None:
    """The stream of a cancelled call is not open, so that its request is not begun, and its reply is dropped."""
    talk = Talk()
    (request,) = talk.send(call(1))
    assert 1 in request[4]
    talk.send(http2.rst_stream(1, ErrorCode.CANCEL))
    assert 1 not in request[4]
    assert talk.reply(request, b"late") == []


def test_no_more_calls_than_allowed() -> None:
    """One call over the limit is REFUSED_STREAM, with the others half there, with a worker, or held."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=3)
    (held,) = talk.send(call(1))
    talk.reply(held, b"held")
    talk.send(head(3), call(5))
    assert not talk.send(call(7))
    assert frames(http2.rst_stream(7, ErrorCode.REFUSED_STREAM)) == talk.said()
    talk.send(http2.window_update(1, 100))
    talk.said()
    assert len(talk.send(call(9))) == 1


def test_a_kept_call_has_one_message_answered_at_a_time() -> None:
    """Messages and the end of a kept call are requests in order, each once the one before it is answered and has
    left."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 5)))
    (first,) = talk.send(head(1, TALKED), data(1, message(b"1") + message(b"2"), ends=False))
    assert (first[2], first[3]) == (b"1", PLAIN)
    assert not talk.send(data(1, message(b"3")))
    reply = grpc_replies.begun(1) + grpc_replies.messages(1, b"one")
    assert [frame.kind for frame in frames(talk.session.admit(first, reply))] == [http2.HEADERS, http2.DATA]
    assert not talk.session.ready, "of its answer three bytes are held"
    (second,) = talk.send(http2.window_update(1, 3 + 8))
    assert [len(frame.payload) for frame in talk.said() if frame.kind == http2.DATA] == [3]
    assert (second[2], second[3]) == (b"2", LATER)
    assert len(frames(talk.session.admit(second, grpc_replies.messages(1, b"two")))) == 1
    talk.send(http2.window_update(1, 100))
    (third,) = talk.session.take_ready()
    talk.session.admit(third, grpc_replies.messages(1, b"three"))
    (end,) = talk.session.take_ready()
    assert (third[2], end[3]) == (b"3", END | LATER)
    talk.session.admit(end, grpc_replies.ended(1))
    assert not talk.session.occupied
    assert talk.said() == []


def test_a_watch_ends_with_the_server() -> None:
    """A watch stays until the drain, though its client has ended it, and is then asked for its last reply with its
    message."""
    talk = Talk()
    (watch,) = talk.send(call(1, b"name", path=WATCHED))
    talk.session.admit(watch, grpc_replies.begun(1) + grpc_replies.messages(1, b"SERVING"))
    assert talk.session.occupied
    talk.session.drain()
    assert [frame.kind for frame in talk.said()] == [http2.GOAWAY]
    (last,) = talk.session.take_ready()
    assert (last[2], last[3]) == (b"name", END | LATER)
    assert talk.session.admit(last, grpc_replies.messages(1, b"NOT_SERVING") + grpc_replies.ended(1))
    assert not talk.session.occupied


def test_a_drain_finishes_what_is_whole_and_takes_nothing_more() -> None:
    """In a drain GOAWAY names the last call, half calls are UNAVAILABLE, later ones are ignored, and held replies
    leave."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)))
    (whole,) = talk.send(call(1))
    talk.send(head(3))
    talk.session.drain()
    goaway, refused, _ = talk.said()
    assert http2.parse_goaway(goaway.payload)[:2] == (3, ErrorCode.NO_ERROR)
    assert talk.status([refused])[0] == FaultCode.UNAVAILABLE
    assert not talk.send(call(5), data(5, b"more"), http2.window_update(5, 1), data(3, b"late"))
    assert talk.broken_by is None
    assert [frame.kind for frame in talk.reply(whole, b"reply")] == [http2.HEADERS]
    assert talk.session.held_bytes
    talk.send(http2.window_update(1, 100))
    assert [frame.kind for frame in talk.said()] == [http2.DATA, http2.HEADERS]
    assert not talk.session.held_bytes


def test_a_client_that_has_ended_is_answered_what_its_windows_allow() -> None:
    """A client that has ended gets the replies that its windows allow, and no further ones are waited for."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 10)))
    short, long = talk.send(call(1), call(3))
    talk.session.lose()
    assert len(talk.reply(short, b"short")) == 3
    talk.reply(long, b"too long")
    assert not talk.session.held_bytes


@given(st.lists(st.sampled_from(["GameStart", "x" * 30, "a" * 300]), min_size=1, max_size=8), st.booleans())
def test_header_tables_are_kept_for_clients_that_use_them(values: list[str], huffman: bool) -> None:
    """A client may use its table until it has read our SETTINGS; then it says that there is none."""
    talk, encoder = Talk(), Encoder()
    stream = 1
    for number, value in enumerate(values):
        if number == len(values) // 2:
            encoder.header_table_size = 0
        block = encoder.encode(fields(name=value), huffman=huffman)
        (request,) = talk.send(http2.headers(stream, block, False) + data(stream, message(b"")))
        assert request[0].metadata == (("name", value),)
        talk.reply(request, b"")
        stream += 2


def test_metadata() -> None:
    """Binary metadata is bytes, with padding or without. Text that is not ASCII is escaped. gRPC's own fields are left
    out."""
    talk = Talk()
    block = encode_block(
        [*fields(grpc_timeout="3H"), (b"a-bin", b"AAE"), (b"a-bin", b"AAE=, /w"), (b"b", b"\xff\xfe"), (b"b", b"c d")]
    )
    (request,) = talk.send(http2.headers(1, block, False) + data(1, message(b"")))
    assert request[0].timeout_ms == 3 * 3_600_000
    assert request[0].metadata == (
        ("a-bin", b"\x00\x01"),
        ("a-bin", b"\x00\x01"),
        ("a-bin", b"\xff"),
        ("b", "\\xff\\xfe"),
        ("b", "c d"),
    )


def test_a_compressed_message_says_so() -> None:
    """A compressed message is marked for decompression. The reply may be compressed if the client accepts this."""
    talk = Talk()
    sent = head(1, grpc_encoding="gzip", grpc_accept_encoding="identity, gzip") + data(1, message(b"zipped", GZIPPED))
    (request,) = talk.send(sent)
    assert (request[2], request[3], request[0].takes_gzip) == (b"zipped", GZIPPED, True)


def test_trailers_end_a_call() -> None:
    """A client may end its call with them; any other second HEADERS is a fault of that call alone."""
    talk = Talk()
    talk.send(head(1), data(1, message(b"1"), ends=False))
    (request,) = talk.send(http2.headers(1, encode_block([(b"name", b"value")]), True))
    assert request[2] == b"1"
    talk.send(head(3), head(3))
    assert talk.said() == frames(http2.rst_stream(3, ErrorCode.PROTOCOL_ERROR))


def test_requests_come_in_order() -> None:
    """Requests come in the order of their calls."""
    talk = Talk(streams_max=100)
    requests = talk.send(b"".join(call(stream) for stream in range(1, 100, 2)))
    assert all(before[1] < after[1] for before, after in pairwise(requests))
    assert len(requests) == 50


def test_replies_that_are_held_count_as_calls() -> None:
    """Held replies count as calls, so that a client that lets none leave has no more calls than allowed."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=3)
    for stream in range(1, 21, 2):
        for request in talk.send(call(stream)):
            talk.reply(request, b"reply")
    assert talk.session.held_bytes == 3 * len(message(b"reply"))


def test_a_known_call_is_looked_at_all_the_same() -> None:
    """A known header block does not skip the check: a compressed message is refused as the first time."""
    talk = Talk()
    assert len(talk.send(call(1))) == 1
    assert not talk.send(head(3) + data(3, message(b"1", 1)))
    assert talk.status(talk.said())[0] == FaultCode.INTERNAL


def test_a_kept_call_takes_one_place() -> None:
    """A kept call with a worker, held or idle, is one call, so that the last call of a client is accepted."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=3)
    (first,) = talk.send(head(1, TALKED), data(1, message(b"1"), ends=False))
    assert len(talk.send(call(3), call(5))) == 2
    talk.send(http2.rst_stream(3, ErrorCode.CANCEL), http2.rst_stream(5, ErrorCode.CANCEL))
    talk.session.admit(first, grpc_replies.begun(1) + grpc_replies.messages(1, b"held"))
    assert len(talk.send(call(7), call(9))) == 2
    talk.send(http2.rst_stream(7, ErrorCode.CANCEL), http2.rst_stream(9, ErrorCode.CANCEL))
    talk.send(http2.window_update(1, 100))
    assert len(talk.send(call(11), call(13), call(15))) == 2


def test_a_kept_calls_message_may_have_no_answer() -> None:
    """After a message without an answer the next one is asked for, and the call goes on until its end is answered."""
    talk = Talk()
    (first,) = talk.send(head(1, TALKED), data(1, message(b"1") + message(b"2"), ends=False))
    assert talk.session.admit(first, grpc_replies.begun(1)) == grpc_replies.begun(1)
    (second,) = talk.session.take_ready()
    assert talk.session.admit(second, b"") == b""
    assert talk.session.occupied
    (end,) = talk.send(data(1, b""))
    assert end[3] == END | LATER


def test_every_call_that_is_allowed_is_taken() -> None:
    """However the frames of the most calls that may be open are mixed, in one read, none is refused."""
    talk = Talk(streams_max=6)
    streams = range(1, 12, 2)
    heads, bodies = (head(stream) for stream in streams), (data(stream, message(b"")) for stream in streams)
    assert len(talk.send(b"".join((*heads, *bodies)))) == 6
    assert talk.said() == []


def test_a_client_that_pings_and_updates_windows_beside_its_calls_does_not_toil() -> None:
    """A client that sends PINGs and updates windows beside calls, as gRPC's clients do, is read with all others. One
    without calls is read at low priority, until its next call."""
    talk = Talk()
    update = http2.frame(http2.WINDOW_UPDATE, 0, 0, (1).to_bytes(4))
    assert talk.session.toils  # nothing was answered yet
    for number in range(20):
        (request,) = talk.send(call(2 * number + 1, b"hello"))
        talk.reply(request, b"world")
        talk.send(update)
        talk.send(update)
        assert not talk.session.toils
    for _ in range(20):
        talk.send(update)
    assert talk.session.toils
    for number in range(20, 26):
        (request,) = talk.send(call(2 * number + 1, b"hello"))
        talk.reply(request, b"world")
    assert not talk.session.toils
