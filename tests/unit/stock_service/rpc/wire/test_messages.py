"""Requests and replies as messages: what is written is read, and what is no message is said to be none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.wire.framing import CALL_MAX, FramingError, ReplyFrame, RequestFrame
from stock_service.rpc.wire.messages import call_of, cut_reply, cut_request, encode_reply, encode_request

NUMBERS = st.integers(0, CALL_MAX)


@given(NUMBERS, NUMBERS, st.binary(max_size=255), st.binary())
def test_a_request_reads_back(call: int, timeout_ms: int, method: bytes, payload: bytes) -> None:
    """Whatever its name and payload are."""
    message = encode_request(call, timeout_ms, method, payload)
    assert cut_request(message) == RequestFrame(call, timeout_ms, method, payload)
    assert call_of(message) == call


@given(NUMBERS, st.integers(0, 255), st.binary())
def test_a_reply_reads_back(call: int, code: int, payload: bytes) -> None:
    """An outcome or a fault."""
    assert cut_reply(encode_reply(call, code, payload)) == ReplyFrame(call, code, payload)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_message_or_none(message: bytes) -> None:
    """Nothing else is raised, and nothing of a message is lost."""
    try:
        request = cut_request(message)
    except FramingError:
        assert len(message) < 9 or 9 + message[8] > len(message)
    else:
        assert encode_request(*request[:2], request.method, request.payload) == message
    assert (call_of(message) == 0) or len(message) >= 4


def test_what_is_cut_off_is_no_message() -> None:
    """Anywhere before the payload."""
    request, reply = encode_request(7, 0, b"/a.B/C", b""), encode_reply(7, 0, b"")
    for end in range(len(request)):
        with pytest.raises(FramingError):
            cut_request(request[:end])
    for end in range(len(reply)):
        with pytest.raises(FramingError):
            cut_reply(reply[:end])
