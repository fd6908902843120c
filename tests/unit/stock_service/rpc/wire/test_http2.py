"""HTTP/2: frames cut anywhere give the same events, windows are kept, and every fault of a peer has its code."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.wire import http2
from stock_service.rpc.wire.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES_MAX,
    PADDED,
    PRIORITISED,
    WINDOW_DEFAULT,
    WINDOW_MAX,
    ErrorCode,
    Http2Error,
    frame,
    headers,
    settings,
    window_update,
)
from stock_service.rpc.wire.http2_endpoint import ANSWERS_MAX, Endpoint, Event
from tests.unit.stock_service.rpc.wire.streams import cut, frames_of

WINDOW = 1000
BLOCK_BYTES_MAX = 20_000
GREETING = settings()
ACK = bytes.fromhex("000000 04 01 00000000")


def endpoint(*greeting: tuple[int, int]) -> Endpoint:
    """An endpoint whose peer has sent its settings, and got the acknowledgement."""
    tried = Endpoint(WINDOW, BLOCK_BYTES_MAX)
    assert take(tried, settings(*greeting)) == []
    assert tried.take_outgoing() == ACK
    return tried


def take(tried: Endpoint, *chunks: bytes) -> list[Event]:
    """The events of some bytes, in chunks; nothing may be left over."""
    pending, events = b"", []
    for chunk in chunks:
        pending += chunk
        at = 0
        while True:
            following, event = tried.take(pending, at)
            if following == at:
                break
            at = following
            if event is not None:
                events.append(event)
        pending = pending[at:]
    assert pending == b""
    return events


# ---- what is sent


def test_frames_are_those_of_the_specification() -> None:
    """Byte for byte, so that the module is not only its own witness."""
    assert settings((3, 100), (4, 65536)) == bytes.fromhex("00000c 04 00 00000000 0003 00000064 0004 00010000")
    assert window_update(5, 1000) == bytes.fromhex("000004 08 00 00000005 000003e8")
    assert http2.rst_stream(7, ErrorCode.CANCEL) == bytes.fromhex("000004 03 00 00000007 00000008")
    goaway = bytes.fromhex("00000a 07 00 00000000 00000009 00000001") + b"no"
    assert http2.goaway(9, ErrorCode.PROTOCOL_ERROR, "no") == goaway
    assert http2.parse_goaway(goaway[9:]) == (9, 1, b"no")
    assert headers(3, b"block", False) == bytes.fromhex("000005 01 04 00000003") + b"block"
    assert headers(3, b"block", True) == bytes.fromhex("000005 01 05 00000003") + b"block"


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1, 2 * FRAME_BYTES_MAX, 50_000])
def test_a_block_of_any_length_arrives(size: int) -> None:
    """A block of any length arrives in as many frames as it needs, none too long."""
    block = bytes(size)
    tried = Endpoint(WINDOW, 50_000)
    assert all(len(payload) <= FRAME_BYTES_MAX for *_, payload in frames_of(headers(1, block, True)))
    assert take(tried, GREETING, headers(1, block, True)) == [(http2.HEADERS, 1, True, block)]


# ---- what is received


@dataclass(frozen=True)
class Piece:
    """Some frames, and the events that they must give."""

    data: bytes
    events: list[Event] = field(default_factory=list)


def _data(flags: int, sent: bytes, payload: bytes = b"payload") -> Piece:
    return Piece(frame(DATA, flags, 5, sent), [(DATA, 5, bool(flags & END_STREAM), payload)])


def _head(flags: int, *sent: bytes) -> Piece:
    """HEADERS and CONTINUATION of a stream with the largest number, and their event."""
    first, *rest = sent
    frames = [frame(http2.HEADERS, flags | (0 if rest else END_HEADERS), http2.STREAM_MAX, first)]
    frames += [frame(http2.CONTINUATION, 0, http2.STREAM_MAX, each) for each in rest[:-1]]
    frames += [frame(http2.CONTINUATION, END_HEADERS, http2.STREAM_MAX, each) for each in rest[-1:]]
    return Piece(b"".join(frames), [(http2.HEADERS, http2.STREAM_MAX, bool(flags & END_STREAM), b"block")])


PIECES = (
    _data(0, b"payload"),
    _data(END_STREAM, b"payload"),
    _data(END_STREAM, b"", b""),
    _data(PADDED, b"\x00payload"),
    _data(PADDED | END_STREAM, b"\xffpayload" + bytes(255)),
    _head(END_STREAM, b"block"),
    _head(0, b"blo", b"c", b"k"),
    _head(PRIORITISED, b"\x80\0\0\1!block"),
    _head(PRIORITISED | PADDED | END_STREAM, b"\x07\0\0\0\1!" + bytes(7), b"block"),
    Piece(http2.rst_stream(7, ErrorCode.CANCEL), [(http2.RST_STREAM, 7, True, b"\0\0\0\x08")]),
    Piece(window_update(7, 9), [(http2.WINDOW_UPDATE, 7, False, b"\0\0\0\x09")]),
    Piece(http2.goaway(9, ErrorCode.NO_ERROR), [(http2.GOAWAY, 0, False, b"\0\0\0\x09\0\0\0\0")]),
    Piece(frame(http2.PRIORITY, 0, 7, bytes(5))),
    Piece(frame(99, 0xFF, 7, b"whatever")),
    Piece(frame(http2.PING, 0xFE, 1 << 31, b"12345678")),
    Piece(frame(http2.WINDOW_UPDATE, 0xFF, 1 << 31, b"\0\0\0\5")),
    Piece(frame(http2.SETTINGS, 0xFE, 0, b"\x00\x99\0\0\0\5")),
    Piece(frame(http2.PING, http2.ACK, 0, b"12345678")),
    Piece(frame(http2.SETTINGS, http2.ACK, 0)),
)
"""DATA, padded or not; HEADERS with a priority or not, in one frame or many; what streams' owners see besides; and what
is ignored: unknown kinds and flags, priorities, the reserved bit."""


@given(
    st.lists(st.sampled_from(PIECES), max_size=8),
    st.lists(st.integers(0, 300) | st.integers(0, 12), max_size=40),
)
def test_frames_cut_anywhere_give_the_same_events(pieces: list[Piece], sizes: list[int]) -> None:
    """A stream of frames with any chunking gives the frames' events, in order, and no rest."""
    data = GREETING + b"".join(piece.data for piece in pieces)
    events = [event for piece in pieces for event in piece.events]
    assert take(Endpoint(WINDOW, BLOCK_BYTES_MAX), *cut(data, sizes)) == events


def test_a_ping_is_answered_and_an_answer_is_not() -> None:
    """A PING is answered with its own eight bytes, and an answer is not."""
    tried = endpoint()
    take(tried, frame(http2.PING, 0, 0, b"question"), frame(http2.PING, http2.ACK, 0, b"answer !"))
    assert frames_of(tried.take_outgoing()) == [(http2.PING, http2.ACK, 0, b"question")]
    assert tried.take_outgoing() == b""


def test_answers_that_are_taken_do_not_add_up() -> None:
    """A peer may ping for ever, as long as it reads."""
    tried = endpoint()
    for _ in range(3):
        take(tried, frame(http2.PING, 0, 0, bytes(8)) * (ANSWERS_MAX - 1))
        assert len(frames_of(tried.take_outgoing())) == ANSWERS_MAX - 1


def test_settings_are_applied_and_acknowledged_each_time() -> None:
    """The peer sets the limit; without a word of it, streams are not limited, but to one until it has spoken."""
    tried = Endpoint(WINDOW, BLOCK_BYTES_MAX)
    assert tried.streams_max == 1
    take(tried, settings((http2.INITIAL_WINDOW_SIZE, 5), (http2.MAX_FRAME_SIZE, FRAME_BYTES_MAX)))
    assert (tried.stream_window, tried.streams_max) == (5, http2.STREAM_MAX)
    take(tried, settings((http2.MAX_CONCURRENT_STREAMS, 0)), settings((http2.MAX_CONCURRENT_STREAMS, 7)))
    assert (tried.stream_window, tried.streams_max) == (5, 7)
    assert tried.take_outgoing() == 3 * ACK


def test_the_connections_window_is_renewed_in_batches() -> None:
    """Padding counts. Half of the window is used before the peer hears of it, and then it gets all of it back."""
    tried = endpoint()
    take(tried, frame(DATA, 0, 1, bytes(WINDOW // 2 - 1)))
    assert tried.take_outgoing() == b""
    take(tried, frame(DATA, PADDED, 3, b"\x05" + bytes(5)))
    assert tried.take_outgoing() == window_update(0, WINDOW // 2 + 5)
    take(tried, frame(DATA, 0, 1, b"x"))
    assert tried.take_outgoing() == b""


SOUND = frame(http2.HEADERS, 0, 1, b"block")
"""HEADERS that a CONTINUATION must follow."""

FAULTS = [
    ("frame too long", (FRAME_BYTES_MAX + 1).to_bytes(3, "big") + bytes(6), ErrorCode.FRAME_SIZE_ERROR),
    ("DATA on no stream", frame(DATA, 0, 0, b"x"), ErrorCode.PROTOCOL_ERROR),
    ("HEADERS on no stream", frame(http2.HEADERS, END_HEADERS, 0), ErrorCode.PROTOCOL_ERROR),
    ("padding alone", frame(DATA, PADDED, 1), ErrorCode.PROTOCOL_ERROR),
    ("padding too long", frame(DATA, PADDED, 1, b"\x04abc"), ErrorCode.PROTOCOL_ERROR),
    ("no room for a priority", frame(http2.HEADERS, PRIORITISED | END_HEADERS, 1, b"1234"), ErrorCode.FRAME_SIZE_ERROR),
    ("PRIORITY on no stream", frame(http2.PRIORITY, 0, 0, bytes(5)), ErrorCode.PROTOCOL_ERROR),
    ("PRIORITY behind itself", frame(http2.PRIORITY, 0, 3, b"\0\0\0\x03\x10"), ErrorCode.PROTOCOL_ERROR),
    ("HEADERS behind themselves", frame(http2.HEADERS, PRIORITISED, 1, b"\x80\0\0\1!"), ErrorCode.PROTOCOL_ERROR),
    ("short PRIORITY", frame(http2.PRIORITY, 0, 1, bytes(4)), ErrorCode.FRAME_SIZE_ERROR),
    ("RST_STREAM on no stream", frame(http2.RST_STREAM, 0, 0, bytes(4)), ErrorCode.PROTOCOL_ERROR),
    ("long RST_STREAM", frame(http2.RST_STREAM, 0, 1, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
    ("SETTINGS on a stream", frame(http2.SETTINGS, 0, 1), ErrorCode.PROTOCOL_ERROR),
    ("SETTINGS cut", frame(http2.SETTINGS, 0, 0, bytes(5)), ErrorCode.FRAME_SIZE_ERROR),
    ("acknowledgement with settings", frame(http2.SETTINGS, http2.ACK, 0, bytes(6)), ErrorCode.FRAME_SIZE_ERROR),
    ("window too large", settings((http2.INITIAL_WINDOW_SIZE, 1 << 31)), ErrorCode.FLOW_CONTROL_ERROR),
    ("frames too short", settings((http2.MAX_FRAME_SIZE, FRAME_BYTES_MAX - 1)), ErrorCode.PROTOCOL_ERROR),
    ("frames too long", settings((http2.MAX_FRAME_SIZE, 1 << 24)), ErrorCode.PROTOCOL_ERROR),
    ("ENABLE_PUSH of 2", settings((http2.ENABLE_PUSH, 2)), ErrorCode.PROTOCOL_ERROR),
    ("PUSH_PROMISE", frame(http2.PUSH_PROMISE, END_HEADERS, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
    ("PING on a stream", frame(http2.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    ("short PING", frame(http2.PING, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
    ("GOAWAY on a stream", http2.goaway(1, ErrorCode.NO_ERROR)[:8] + b"\x01" + bytes(8), ErrorCode.PROTOCOL_ERROR),
    ("short GOAWAY", frame(http2.GOAWAY, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
    ("WINDOW_UPDATE of 0", window_update(0, 0), ErrorCode.PROTOCOL_ERROR),
    ("WINDOW_UPDATE of 0 on a stream", window_update(1, 0), ErrorCode.PROTOCOL_ERROR),
    ("short WINDOW_UPDATE", frame(http2.WINDOW_UPDATE, 0, 0, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
    ("connection's window overflows", window_update(0, WINDOW_MAX - 65_534), ErrorCode.FLOW_CONTROL_ERROR),
    ("CONTINUATION of nothing", frame(http2.CONTINUATION, END_HEADERS, 1), ErrorCode.PROTOCOL_ERROR),
    ("DATA inside a block", SOUND + frame(DATA, 0, 1), ErrorCode.PROTOCOL_ERROR),
    ("WINDOW_UPDATE inside a block", SOUND + window_update(0, 1), ErrorCode.PROTOCOL_ERROR),
    ("unknown frame inside a block", SOUND + frame(99, 0, 0), ErrorCode.PROTOCOL_ERROR),
    ("another's CONTINUATION", SOUND + frame(http2.CONTINUATION, 0, 3, b"x"), ErrorCode.PROTOCOL_ERROR),
    ("CONTINUATION without end", SOUND + frame(http2.CONTINUATION, 0, 1), ErrorCode.ENHANCE_YOUR_CALM),
    ("long block", SOUND + 2 * frame(http2.CONTINUATION, 0, 1, bytes(10_000)), ErrorCode.ENHANCE_YOUR_CALM),
    ("PING without end", frame(http2.PING, 0, 0, bytes(8)) * (ANSWERS_MAX + 1), ErrorCode.ENHANCE_YOUR_CALM),
    ("SETTINGS without end", settings() * (ANSWERS_MAX + 1), ErrorCode.ENHANCE_YOUR_CALM),
]


@pytest.mark.parametrize(("data", "code"), [pytest.param(*rest, id=name) for name, *rest in FAULTS])
def test_every_fault_has_its_code(data: bytes, code: ErrorCode) -> None:
    """A fault against the protocol, or over a limit, ends the connection, with the RFC's code for it."""
    with pytest.raises(Http2Error) as caught:
        take(endpoint(), data)
    assert (caught.value.code, bool(str(caught.value))) == (code, True)


def test_settings_come_first() -> None:
    """A peer whose first frame is not SETTINGS gets no answer: HTTP/1, TLS, an acknowledgement, and other frames."""
    begins = b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x46\x00\x00"
    for data in (*begins, ACK, window_update(0, 1), frame(99, 0, 0)):
        with pytest.raises(Http2Error, match="SETTINGS") as caught:
            take(Endpoint(WINDOW, BLOCK_BYTES_MAX), data)
        assert caught.value.code == ErrorCode.PROTOCOL_ERROR


@given(st.binary(max_size=60) | st.lists(st.tuples(st.integers(0, 11), st.integers(0, 63), st.binary(max_size=9))))
def test_any_bytes_are_taken_or_refused(junk: bytes | list[tuple[int, int, bytes]]) -> None:
    """Any bytes are taken, or refused with the error for them. No other error comes out."""
    frames = (
        junk if isinstance(junk, bytes) else b"".join(frame(kind, flags, flags & 3, data) for kind, flags, data in junk)
    )
    tried, at = endpoint(), 0
    try:
        while (following := tried.take(frames, at)[0]) != at:
            at = following
    except Http2Error:
        pass


# ---- flow control of what is sent


def body_of(data: bytes) -> tuple[bytes, bool]:
    """The bytes of DATA frames, and whether the last one, and no other, ends the stream."""
    frames = [each for each in frames_of(data) if each[0] == DATA]
    ends = [bool(flags & END_STREAM) for _, flags, *_ in frames]
    assert not any(ends[:-1])
    assert all(len(payload) <= FRAME_BYTES_MAX for *_, payload in frames)
    return b"".join(payload for *_, payload in frames), bool(ends) and ends[-1]


GROW = st.lists(st.tuples(st.sampled_from(["connection", "stream", "initial"]), st.integers(1, 40_000)), max_size=30)


@given(st.integers(1, 200_000), st.integers(0, 100_000), GROW)
def test_a_body_is_never_sent_past_a_window(size: int, initial: int, changes: list[tuple[str, int]]) -> None:
    """At any time both windows allow the sent bytes, and no more leave. At the end the whole body has left, in
    order."""
    body = bytes(number % 251 for number in range(size))
    tried = endpoint((http2.INITIAL_WINDOW_SIZE, initial))
    connection, credit = WINDOW_DEFAULT, 0
    sent = tried.send_body(1, body, True, after=http2.rst_stream(1, ErrorCode.NO_ERROR))
    so_far = 0
    for kind, count in [*changes, ("connection", size), ("initial", 1 << 30)]:
        so_far = max(so_far, min(size, connection, initial + credit))
        assert body_of(sent) == (body[:so_far], so_far == size)
        if kind == "connection":
            connection += count
            take(tried, window_update(0, count))
        elif kind == "initial":
            initial = count
            take(tried, settings((http2.INITIAL_WINDOW_SIZE, count)))
        else:
            credit += count
            take(tried, window_update(1, count))
        sent += tried.take_outgoing()
    assert body_of(sent) == (body, True)
    assert not tried.held
    kinds = [kind for kind, *_ in frames_of(sent) if kind != http2.SETTINGS]
    assert kinds[-1] == http2.RST_STREAM
    assert kinds.count(http2.RST_STREAM) == 1
    assert tried.send_window == connection - size


def test_bodies_share_the_connections_window() -> None:
    """The older body goes first. A dropped body takes nothing of the window."""
    tried = endpoint((http2.INITIAL_WINDOW_SIZE, 1 << 20))
    assert body_of(tried.send_body(1, bytes(WINDOW_DEFAULT + 10), True)) == (bytes(WINDOW_DEFAULT), False)
    assert [tried.send_body(stream, bytes(10), True) for stream in (3, 5)] == [b"", b""]
    assert tried.drop(3)
    assert not tried.drop(3)
    take(tried, window_update(0, 15))
    frames = frames_of(tried.take_outgoing())
    assert [(stream, flags, len(payload)) for _, flags, stream, payload in frames] == [(1, END_STREAM, 10), (5, 0, 5)]


def test_a_streams_window_that_overflows_is_a_fault() -> None:
    """A window that overflows is a fault of a waiting body's stream. Windows of other streams belong to their owner."""
    tried = endpoint((http2.INITIAL_WINDOW_SIZE, WINDOW_MAX))
    tried.send_body(1, bytes(WINDOW_DEFAULT + 10), True)
    with pytest.raises(Http2Error) as caught:
        take(tried, window_update(1, WINDOW_DEFAULT + 1))
    assert caught.value.code == ErrorCode.FLOW_CONTROL_ERROR
