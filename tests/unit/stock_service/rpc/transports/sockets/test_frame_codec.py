"""The sockets' protocol as the lean client speaks it."""

import pytest

from stock_service.rpc.errors import Fault, FaultCode, InternalFault, Overloaded, Unavailable
from stock_service.rpc.transports.sockets.frame_codec import CALLS_MAX, SocketCodec
from stock_service.rpc.wire.codec import Codec
from stock_service.rpc.wire.framing import RequestFrame, encode_reply, request_decoder

PATH = "/a.B/C"


def started(count: int = 1) -> SocketCodec:
    """A codec with this number of calls under way: 1, 2 and so on."""
    codec = SocketCodec(("a", 1))
    prepared = codec.prepare(PATH, b"payload", 2.5)
    for number in range(1, count + 1):
        assert codec.start(prepared)[0] == number
    return codec


def test_a_request_is_the_wires() -> None:
    """A request has the wire's number, timeout, method and message. It is encoded once and started often."""
    codec: Codec = SocketCodec(("a", 1))
    prepared = codec.prepare(PATH, b"payload", 2.5)
    sent = b"".join(codec.start(prepared)[1] for _ in range(2))
    assert request_decoder().feed(sent) == [RequestFrame(number, 2500, PATH.encode(), b"payload") for number in (1, 2)]
    assert (codec.hello, codec.take_outgoing()) == (b"", b"")


def test_replies_come_in_any_order_and_in_any_pieces() -> None:
    """Each belongs to its call."""
    replies = b"".join(encode_reply(number, 0, b"reply %d" % number) for number in (2, 1, 3))
    for size in (1, 7, len(replies)):
        codec = started(3)
        done = [reply for at in range(0, len(replies), size) for reply in codec.feed(replies[at : at + size])]
        assert done == [(2, b"reply 2"), (1, b"reply 1"), (3, b"reply 3")]


def test_a_reply_that_comes_alone_is_told_from_others() -> None:
    """A single reply is told from others: after one in pieces, or two, earlier bytes may have come before the last."""
    reply, others = encode_reply(1, 0, b"reply"), encode_reply(2, 0, b"reply")
    for data, preceded in ((reply, False), (reply[:9], True), (reply + others, True)):
        codec = started(2)
        codec.feed(data)
        assert codec.preceded == preceded


def test_a_fault_of_a_call_is_given_with_its_code() -> None:
    """A call's fault has its code, and the other calls go on. An unknown code is INTERNAL."""
    codec = started(3)
    ((call, fault),) = codec.feed(encode_reply(2, FaultCode.RESOURCE_EXHAUSTED, b"full"))
    assert (call, type(fault), str(fault)) == (2, Overloaded, "RESOURCE_EXHAUSTED: full")
    ((call, fault),) = codec.feed(encode_reply(1, 99, b"\xff"))
    assert (call, type(fault)) == (1, InternalFault)
    assert codec.feed(encode_reply(3, 0, b"")) == [(3, b"")]
    assert codec.room()


def faults(done: list[tuple[int, bytes | Fault]]) -> dict[int, tuple[type[object], str]]:
    """The class and the text of each fault, by call."""
    return {call: (type(fault), str(fault)) for call, fault in done if isinstance(fault, Fault)}


def test_a_fault_of_the_connection_is_that_of_every_call_under_way() -> None:
    """The fault ends them all with its code; replies before it stand, and the connection is of no more use."""
    codec = started(3)
    farewell = encode_reply(0, FaultCode.RESOURCE_EXHAUSTED, b"too many connections")
    done = codec.feed(encode_reply(1, 0, b"reply") + farewell)
    assert done[0] == (1, b"reply")
    said = "RESOURCE_EXHAUSTED: connection to a:1: too many connections"
    assert faults(done) == {2: (Overloaded, said), 3: (Overloaded, said)}
    assert not codec.room()
    with pytest.raises(Unavailable, match="too many connections"):
        codec.feed(b"more")


def test_a_fault_of_the_connection_with_no_call_under_way_is_raised() -> None:
    """A fault of the connection without calls under way is raised as Unavailable, and is no call's outcome."""
    with pytest.raises(Unavailable, match="stopping"):
        started(0).feed(encode_reply(0, FaultCode.UNAVAILABLE, b"stopping"))


@pytest.mark.parametrize("number", [0, 2, 7])
def test_a_reply_to_no_call_ends_the_connection(number: int) -> None:
    """A reply to no call is INTERNAL for all calls under way, since more may be wrong."""
    codec = started(1)
    assert faults(codec.feed(encode_reply(number, 0, b"reply"))) == {
        1: (InternalFault, "INTERNAL: the server sent a reply to no request")
    }
    assert not codec.room()


def test_a_second_reply_to_a_call_is_seen_though_none_is_under_way() -> None:
    """A second reply to a call is seen without calls under way: the call before it ends with the fault, so that it is
    counted."""
    codec = started(1)
    assert faults(codec.feed(encode_reply(1, 0, b"reply") * 2)).keys() == {1}
    with pytest.raises(Unavailable):
        started(0).feed(encode_reply(1, 0, b"reply"))


def test_what_is_no_frame_ends_the_connection() -> None:
    """Calls answered before it stand."""
    codec = started(2)
    done = codec.feed(encode_reply(1, 0, b"reply") + b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert done[0] == (1, b"reply")
    assert faults(done).keys() == {2}
    assert faults(done)[2][0] is Unavailable


def test_the_late_reply_to_a_call_given_up_is_not_given() -> None:
    """Whole or in pieces; the calls beside it are."""
    for size in (1, 100):
        codec = started(2)
        assert codec.abandon(1) == b""
        late = encode_reply(1, 0, b"late") + encode_reply(2, 0, b"reply")
        done = [reply for at in range(0, len(late), size) for reply in codec.feed(late[at : at + size])]
        assert done == [(2, b"reply")]
        assert codec.abandon(7) == b""
        with pytest.raises(Unavailable):  # a second one is to no request
            codec.feed(encode_reply(1, 0, b"late"))


def test_calls_not_answered_are_bounded() -> None:
    """Unanswered calls are bounded, with those given up, so that a silent server does not get calls for ever."""
    codec = started(CALLS_MAX)
    assert not codec.room()
    codec.abandon(1)
    assert not codec.room()
    codec.feed(encode_reply(1, 0, b"late"))
    assert codec.room()
