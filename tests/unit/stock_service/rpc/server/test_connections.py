"""A session of a server of servicers: what a call's client may send, and what may leave before the call's end."""

import pytest

from stock_service.rpc.server.connections import HandlerSession, Inbox
from stock_service.rpc.wire import grpc_replies, http2
from stock_service.rpc.wire.grpc_calls import END, PLAIN, GrpcRequest
from stock_service.rpc.wire.grpc_heads import Kind
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, PATH, call, data, frames, head, message

MESSAGE_BYTES_MAX, WINDOW = 100_000, 65_535


def session(kind: Kind, data: bytes) -> tuple[HandlerSession, list[GrpcRequest]]:
    """A session that was sent these bytes behind the greeting, and the requests in them."""
    made = HandlerSession({PATH: kind}, MESSAGE_BYTES_MAX, 10)
    requests = made.feed(HELLO + data)
    made.take_outgoing()
    return made, requests


def body_bytes(said: bytes) -> int:
    """Number of bytes of DATA, which flow control counts."""
    return sum(len(frame.payload) for frame in frames(said) if frame.kind == http2.DATA)


@pytest.mark.parametrize("step", [1_000, 30_000, 200_000])
def test_replies_before_the_end_keep_to_the_windows(step: int) -> None:
    """Each leaves once the client's window lets it, and what the client adds meanwhile counts for the next one."""
    made, _ = session(Kind.REPLIES, call(1, b"asked"))
    allowed, left = WINDOW, 0
    for number in range(4):
        left += body_bytes(made.push(1, grpc_replies.messages(1, bytes(90_000)), not number))
        while 1 in made.held:
            assert left == allowed
            made.feed(http2.window_update(1, step) + http2.window_update(0, step))
            allowed += step
            left += body_bytes(made.take_outgoing())
            assert left <= allowed
    assert left == 4 * 90_005


def test_a_call_of_several_requests_begins_at_its_headers() -> None:
    """Its messages and its end go to its handler's inbox, and what is taken lets the client send as much again."""
    made, (request,) = session(Kind.STREAMED, head(1) + data(1, message(b"one") + message(b"two")[:4], ends=False))
    inbox = request[5]
    assert isinstance(inbox, Inbox)
    assert inbox.messages.get_nowait() == (b"one", PLAIN)
    assert made.grant(1, 8)
    assert http2.window_update(1, 8) == made.take_outgoing()
    assert made.feed(data(1, message(b"two")[4:])) == []
    assert [inbox.messages.get_nowait() for _ in range(2)] == [(b"two", PLAIN), (b"", END)]
    assert not made.grant(1, 8)
    assert inbox.messages.empty()


def test_messages_that_wait_count_as_held() -> None:
    """Empty ones too, of which any number fits into a window."""
    made, _ = session(Kind.STREAMED, head(1))
    made.feed(data(1, message(b"") * 1000, ends=False))
    assert made.held_bytes > 50_000


def test_a_client_that_asks_much_in_one_call_is_no_flood() -> None:
    """Each message is work, however short; it is one that toils without them."""
    made, _ = session(Kind.STREAMED, head(1))
    for _ in range(5000):
        assert made.feed(data(1, message(b"a"), ends=False)) == []
    assert not made.toils


def test_a_call_s_end_is_told_once() -> None:
    """By the client's reset, by its loss, by the reply; nobody may listen behind it."""
    for ends in ("reset", "loss", "reply"):
        made, (request,) = session(Kind.UNARY, call(1, b"asked"))
        assert made.calls.listen(1, lambda: None)
        assert not made.calls.due
        if ends == "reset":
            made.feed(http2.rst_stream(1, http2.ErrorCode.CANCEL))
        elif ends == "loss":
            made.lose()
        else:
            made.admit(request, grpc_replies.usual_reply(1, b"reply"))
        assert len(made.calls.due) == 1
        assert not made.calls.listen(1, lambda: None)
        made.lose()
        assert len(made.calls.due) == 1


def test_a_token_is_metadata_like_any_other() -> None:
    """In its place among the others."""
    _, (request,) = session(Kind.UNARY, call(1, b"asked", a="1", authorization="Bearer of-a-token", b="2"))
    assert request[0].metadata == (("a", "1"), ("authorization", "Bearer of-a-token"), ("b", "2"))
