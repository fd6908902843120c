"""Ends of an old gRPC connection, and changes that watches hear of, without I/O."""

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, GZIPPED, LATER, MORE
from stock_service.rpc.wire.http2 import ErrorCode
from stock_service.rpc.wire.http2_endpoint import PROBE
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import (
    LISTED,
    PATH,
    TALKED,
    WATCHED,
    Talk,
    call,
    data,
    head,
    message,
)

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
