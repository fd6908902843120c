"""One connection of a gRPC server, without I/O: calls, replies under flow control, its end, and what watches hear."""

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, GZIPPED, LATER, MORE, PLAIN
from stock_service.rpc.wire.http2 import ErrorCode
from stock_service.rpc.wire.http2_endpoint import PROBE
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import (
    HELLO,
    LISTED,
    MESSAGE_BYTES_MAX,
    PATH,
    STREAMS_MAX,
    TALKED,
    WATCHED,
    Frame,
    Talk,
    call,
    data,
    frames,
    head,
    message,
)


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


def test_a_wider_window_that_came_before_the_reply_counts() -> None:
    """A stream's WINDOW_UPDATE is remembered while its call is not whole, and while a worker has it."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)))
    talk.send(head(1), http2.window_update(1, 6))
    (request,) = talk.send(data(1, message(b"")))
    talk.send(http2.window_update(1, 4))
    assert [frame.kind for frame in talk.reply(request, b"12345")] == [http2.HEADERS, http2.DATA, http2.HEADERS]


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


def test_a_client_that_has_ended_is_answered_what_its_windows_allow() -> None:
    """A client that has ended gets the replies that its windows allow, and no further ones are waited for."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 10)))
    short, long = talk.send(call(1), call(3))
    talk.session.lose()
    assert len(talk.reply(short, b"short")) == 3
    talk.reply(long, b"too long")
    assert not talk.session.held_bytes


def test_a_compressed_message_says_so() -> None:
    """A compressed message is marked for decompression. The reply may be compressed if the client accepts this."""
    talk = Talk()
    sent = head(1, grpc_encoding="gzip", grpc_accept_encoding="identity, gzip") + data(1, message(b"zipped", GZIPPED))
    (request,) = talk.send(sent)
    assert (request[2], request[3], request[0].takes_gzip) == (b"zipped", GZIPPED, True)


def test_a_known_call_is_looked_at_all_the_same() -> None:
    """A known header block does not skip the check: a compressed message is refused as the first time."""
    talk = Talk()
    assert len(talk.send(call(1))) == 1
    assert not talk.send(head(3) + data(3, message(b"1", 1)))
    assert talk.status(talk.said())[0] == FaultCode.INTERNAL


def test_every_call_that_is_allowed_is_taken() -> None:
    """However the frames of the most calls that may be open are mixed, in one read, none is refused."""
    talk = Talk(streams_max=6)
    streams = range(1, 12, 2)
    heads, bodies = (head(stream) for stream in streams), (data(stream, message(b"")) for stream in streams)
    assert len(talk.send(b"".join((*heads, *bodies)))) == 6
    assert talk.said() == []


def test_calls_in_each_state_count_as_open() -> None:
    """Calls that are not whole, kept calls, calls that a worker has, and held replies count as open. A call over the
    limit is refused, also in one read with the others, and a call that ends makes room."""
    talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=4)
    (request,) = talk.send(call(1))
    talk.reply(request, b"held")
    (request,) = talk.send(head(3) + head(5, TALKED) + data(5, message(b"1"), ends=False))
    talk.session.admit(request, grpc_replies.begun(5))
    talk.said()
    assert len(talk.send(call(7))) == 1
    assert not talk.send(head(9) + call(11))
    refused = [http2.rst_stream(stream, http2.ErrorCode.REFUSED_STREAM) for stream in (9, 11)]
    assert talk.said() == frames(b"".join(refused))
    assert len(talk.send(http2.rst_stream(3, http2.ErrorCode.CANCEL) + call(13))) == 1
    for reply in (b"", grpc_replies.begun(1) + grpc_replies.messages(1, b"held")):  # a kept call counts once
        talk = Talk(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), streams_max=2)
        (request,) = talk.send(head(1, TALKED) + data(1, message(b"1"), ends=False))
        if reply:
            talk.session.admit(request, reply)
        assert len(talk.send(call(3))) == 1
    talk = Talk(streams_max=2)
    talk.send(head(1) + head(3, TALKED) + head(5))
    assert talk.said() == frames(http2.rst_stream(5, http2.ErrorCode.REFUSED_STREAM))


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


HEARD = http2.frame(http2.PING, http2.ACK, 0, PROBE)


def lasts(talk: Talk) -> list[int]:
    """The last call of each GOAWAY that was said since."""
    return [http2.parse_goaway(frame.payload)[0] for frame in talk.said() if frame.kind == http2.GOAWAY]


def has_ended(talk: Talk) -> bool:
    """Tell whether no call is to come any more."""
    return talk.session.ended


def test_an_old_connection_takes_calls_until_its_client_has_heard() -> None:
    """GOAWAY with the largest number, and a PING; once that is answered, GOAWAY with the last call that came."""
    talk = Talk()
    assert talk.session.retire()
    goaway, ping = talk.said()
    assert http2.parse_goaway(goaway.payload) == (http2.STREAM_MAX, ErrorCode.NO_ERROR, b"max_age")
    assert (ping.kind, ping.flags, ping.payload) == (http2.PING, 0, PROBE)
    (late,) = talk.send(call(1, b"late"))
    assert not has_ended(talk)
    assert not talk.send(HEARD)
    assert lasts(talk) == [1]
    assert has_ended(talk)
    assert not talk.send(call(3, b"behind it"), http2.rst_stream(3, ErrorCode.CANCEL))
    assert (talk.broken_by, lasts(talk)) == (None, []), "it is told once"
    assert len(talk.reply(late, b"reply")) == 3


def test_a_call_that_had_begun_to_come_is_taken_whole() -> None:
    """A call that had begun to come is taken whole before the connection ends. Later calls are not taken."""
    talk = Talk()
    talk.send(call(1), head(3))
    talk.session.retire()
    assert not talk.send(HEARD)
    assert lasts(talk) == [http2.STREAM_MAX, 3]
    assert not has_ended(talk)
    (whole,) = talk.send(call(5) + data(3, message(b"late")) + call(7))
    assert (whole[1], whole[2], talk.session.ended) == (3, b"late", True)


def test_an_old_connection_with_a_watch_ends_with_it() -> None:
    """An old connection with a watch ends when its client ends the watch. The server's GOAWAY does not end it."""
    talk = Talk()
    (watch,) = talk.send(call(1, b"name", path=WATCHED))
    talk.session.admit(watch, grpc_replies.begun(1) + grpc_replies.messages(1, b"SERVING"))
    talk.session.retire()
    talk.send(HEARD)
    assert not has_ended(talk)
    assert not talk.session.ready
    talk.send(http2.rst_stream(1, ErrorCode.CANCEL))
    assert has_ended(talk)


def test_an_answer_to_another_ping_is_none_to_ours() -> None:
    """An answer to another PING, or one before the server's PING, does not show that the client has heard."""
    talk = Talk()
    talk.send(HEARD)
    assert not has_ended(talk)
    talk.session.retire()
    talk.said()
    talk.send(http2.frame(http2.PING, http2.ACK, 0, b"12345678"))
    assert talk.said() == []


def test_a_stop_ends_an_old_connection_as_any_other() -> None:
    """A stop ends an old connection as any other: GOAWAY names the last call, and half ones are refused."""
    for heard in (b"", HEARD):
        talk = Talk()
        talk.send(call(1), head(3))
        talk.session.retire()
        talk.send(heard)
        talk.said()
        talk.session.drain()
        assert [frame.kind for frame in talk.said()] == [http2.GOAWAY, http2.HEADERS, http2.RST_STREAM]


@pytest.mark.parametrize("sent", [b"", message(b"half")[:-1]])
@pytest.mark.parametrize("path", [PATH, LISTED])
def test_a_stop_refuses_a_call_whose_message_is_not_whole(path: bytes, sent: bytes) -> None:
    """A stop refuses a call whose message is not whole with UNAVAILABLE, also if the method has several replies."""
    talk = Talk()
    assert not talk.send(head(1, path) + data(1, sent, ends=False))
    talk.session.drain()
    goaway, status, reset = talk.said()
    assert (goaway.kind, reset.kind) == (http2.GOAWAY, http2.RST_STREAM)
    assert talk.status([status])[0] == FaultCode.UNAVAILABLE
    assert not talk.session.occupied


def test_a_watch_is_answered_again_after_a_change() -> None:
    """A watch is answered again after a change, once for all changes before its last reply has left. Other calls, and
    half ones, are not."""
    talk = Talk()
    watch, talked = talk.send(call(1, b"name", path=WATCHED) + head(3, TALKED) + data(3, message(b"hi"), ends=False))
    talk.send(head(5, WATCHED))
    talk.session.renew()
    talk.session.renew()
    assert not talk.session.ready
    talk.session.admit(talked, grpc_replies.begun(3) + grpc_replies.messages(3, b"hi"))
    talk.session.admit(watch, grpc_replies.begun(1) + grpc_replies.messages(1, b"SERVING"))
    (again,) = talk.session.take_ready()
    assert (again[1], again[2], again[3]) == (1, b"name", MORE | LATER)
    assert talk.session.admit(again, b"") == b""
    assert not talk.session.ready
    talk.session.renew()
    assert len(talk.session.take_ready()) == 1
    talk.session.lose()
    talk.session.renew()
    assert not talk.session.ready


def test_a_watch_whose_message_is_compressed_is_answered_again_with_it() -> None:
    """A watch whose message is compressed is answered again with the same message, marked as compressed, also at the
    end."""
    talk = Talk()
    sent = head(1, WATCHED, grpc_encoding="gzip") + data(1, message(b"zipped", compressed=1))
    (watch,) = talk.send(sent)
    talk.session.admit(watch, grpc_replies.begun(1) + grpc_replies.messages(1, b"SERVING"))
    talk.session.renew()
    (again,) = talk.session.take_ready()
    assert (again[2], again[3]) == (b"zipped", GZIPPED | MORE | LATER)
    talk.session.admit(again, b"")
    talk.session.drain()
    (last,) = talk.session.take_ready()
    assert (last[2], last[3]) == (b"zipped", GZIPPED | END | LATER)
