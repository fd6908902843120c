"""The lean gRPC codec: replies of every form, cut anywhere; windows and limits are kept; shapes."""

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.errors import InvalidRequest, Overloaded, Unavailable
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.codec import Reply
from stock_service.rpc.wire.grpc_codec import REQUEST_BYTES_MAX, GrpcCodec
from stock_service.rpc.wire.http2 import DATA, END_STREAM, FRAME_BYTES_MAX, ErrorCode, frame, settings, window_update
from tests.unit.stock_service.rpc.wire.grpc_server_bytes import (
    AUTHORITY,
    BEGIN,
    PATH,
    SETTINGS_ACK,
    Client,
    GrpcServerBytes,
    prefixed,
)
from tests.unit.stock_service.rpc.wire.streams import cut, frames_of

# ---- what is sent


def test_the_greeting_is_http2s() -> None:
    """The preface, settings that keep blocks stateless and windows open, and the connection's window at its largest."""
    hello = GrpcCodec(AUTHORITY).hello
    assert hello.startswith(http2.PREFACE)
    (kind, _, _, payload), update = frames_of(hello.removeprefix(http2.PREFACE))
    assert kind == http2.SETTINGS
    said = {payload[at + 1]: int.from_bytes(payload[at + 2 : at + 6], "big") for at in range(0, len(payload), 6)}
    assert said == {1: 0, 2: 0, 4: 2**31 - 1, 6: 16_384}
    assert update == (http2.WINDOW_UPDATE, 0, 0, (2**31 - 1 - 65_535).to_bytes(4, "big"))


def test_a_request_is_grpcs() -> None:
    """An independent decoder reads the headers that gRPC asks for, in its order, and the message behind its prefix."""
    codec = GrpcCodec("host:1")
    decoder = hpack.Decoder()
    for number in (1, 3):
        call, data = codec.start(codec.prepare("/a.B/Ç", b"request", 1.5))
        assert call == number
        first, second = frames_of(data)
        assert first[:3] == (http2.HEADERS, http2.END_HEADERS, number)
        assert second == (DATA, END_STREAM, number, b"\0\0\0\0\x07request")
        assert list(decoder.decode(first[3], raw=True)) == [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", "/a.B/Ç".encode()),
            (b":authority", b"host:1"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            (b"user-agent", b"stock-service-load"),
            (b"grpc-timeout", b"1500m"),
        ]


def test_prepared_by_one_is_started_by_all() -> None:
    """Codecs of the same authority give the same bytes, so that all may start a prepared request."""
    first, second = GrpcCodec(AUTHORITY), GrpcCodec(AUTHORITY)
    assert first.start(second.prepare(PATH, b"x", 1.5)) == second.start(first.prepare(PATH, b"x", 1.5))


def test_a_long_request_keeps_to_the_servers_windows() -> None:
    """The request is sent as far as the server allows, and the rest when it allows more; meanwhile no room is left."""
    client = Client()
    codec, payload = client.codec, bytes(range(256)) * 400
    number, data = codec.start(codec.prepare(PATH, payload, 1.5))
    assert not codec.room()
    head, *pieces = frames_of(data)
    assert head[:3] == (http2.HEADERS, http2.END_HEADERS, number)
    assert all(flags == 0 and len(piece) <= FRAME_BYTES_MAX for _, flags, _, piece in pieces)
    assert sum(len(piece) for *_, piece in pieces) == 65_535
    assert codec.feed(window_update(0, 100_000)) == []
    pieces += frames_of(codec.take_outgoing())
    assert codec.room()
    assert b"".join(piece for *_, piece in pieces) == prefixed(payload)
    assert [flags for _, flags, *_ in pieces][-2:] == [0, END_STREAM]
    assert codec.feed(client.server.reply(number, b"done")) == [(number, b"done")]


def test_short_requests_use_the_connections_window_up() -> None:
    """Each short request takes its bytes off the connection's window. The first that does not fit waits for the
    server."""
    client = Client()
    codec, prepared = client.codec, client.codec.prepare(PATH, bytes(9995), 1.5)
    sent = [codec.start(prepared)[1] for _ in range(6)]
    assert all(len(frames_of(data)[-1][3]) == 10_000 for data in sent)
    last = frames_of(codec.start(prepared)[1])[-1]
    assert (last[1], len(last[3])) == (0, 5535)
    assert not codec.room()
    codec.feed(window_update(0, 4465))
    assert frames_of(codec.take_outgoing()) == [(DATA, END_STREAM, 13, bytes(4465))]


def test_a_short_request_keeps_to_its_streams_window() -> None:
    """Be it of three bytes."""
    client = Client(greeting=settings((http2.INITIAL_WINDOW_SIZE, 3)))
    number, data = client.codec.start(client.prepared)
    assert frames_of(data)[1] == (DATA, 0, number, b"\0\0\0")
    client.codec.feed(window_update(number, 100))
    assert frames_of(client.codec.take_outgoing()) == [(DATA, END_STREAM, number, b"\0\x07request")]


def test_a_request_that_was_given_up_is_sent_no_further() -> None:
    """A request that was given up is sent no further. There is room again, and a wider window sends nothing more of
    it."""
    client = Client()
    number, _ = client.codec.start(client.codec.prepare(PATH, bytes(100_000), 1.5))
    assert client.codec.abandon(number) == http2.rst_stream(number, ErrorCode.CANCEL)
    assert client.codec.room()
    client.codec.feed(window_update(0, 100_000) + window_update(number, 100_000))
    assert client.codec.take_outgoing() == b""


def test_a_call_that_ends_before_its_request_is_sent_is_cancelled() -> None:
    """The server is told that no more of it comes, and there is room again."""
    client = Client()
    number, _ = client.codec.start(client.codec.prepare(PATH, bytes(100_000), 1.5))
    fault = client.fault(client.server.headers(number, [*BEGIN[:2], (b"grpc-status", b"8")], ends=True))
    assert isinstance(fault, Overloaded)
    assert client.codec.take_outgoing() == http2.rst_stream(number, ErrorCode.CANCEL)
    assert client.codec.room()


def test_what_the_protocol_cannot_carry_is_refused() -> None:
    """A request that the protocol cannot carry is refused before a byte is sent, with the allowed values."""
    codec = GrpcCodec(AUTHORITY)
    with pytest.raises(InvalidRequest, match=f"{REQUEST_BYTES_MAX + 1} bytes, allowed: {REQUEST_BYTES_MAX}"):
        codec.prepare(PATH, bytes(REQUEST_BYTES_MAX + 1), 1.5)
    with pytest.raises(InvalidRequest, match="8193 bytes, allowed: 8192"):
        codec.prepare("/" * 8193, b"", 1.5)


# ---- replies

MESSAGES = st.lists(st.tuples(st.binary(max_size=40), st.booleans()), min_size=1, max_size=8)
SIZES = st.lists(st.integers(0, 200) | st.integers(0, 12), max_size=40)


@given(MESSAGES, SIZES, st.sampled_from([0, 64, 4096]), st.booleans())
def test_replies_cut_anywhere(messages: list[tuple[bytes, bool]], sizes: list[int], table: int, warm: bool) -> None:
    """Replies of the usual form and of an odd one, with a header table or none, come out whole and in order."""
    client = Client(table)
    if warm and not table:
        client.warm()
    calls = [client.start() for _ in messages]
    server = client.server
    data, expected = b"", []
    for call, (message, odd) in zip(calls, messages, strict=True):
        data += (server.odd_reply if odd else server.reply)(call, message)
        expected.append((call, message))
    assert [reply for chunk in cut(data, sizes) for reply in client.codec.feed(chunk)] == expected
    pings = sum(kind == http2.PING for kind, *_ in frames_of(client.codec.take_outgoing()))
    assert pings == sum(odd for _, odd in messages)
    assert client.codec._endpoint.send_window == 65_535 - 12 * (client.codec._next // 2) + 7 * pings


def test_a_shape_is_forgotten_with_the_table_that_it_was_learnt_with() -> None:
    """The bytes of a usual reply put fields into a table that has become larger, and the next reply refers to them."""
    client = Client()
    client.warm()
    client.server.encoder.header_table_size = 4096
    for before in ([(b":status", b"103")], []):
        call = client.start()
        interim = client.server.headers(call, before) if before else b""
        assert client.codec.feed(interim + client.server.reply(call, b"warm")) == [(call, b"warm")]


def test_interleaved_replies() -> None:
    """Frames of many calls, in any order, are put together each on its own."""
    client = Client()
    client.warm()
    calls = [client.start() for _ in range(3)]
    parts = [
        [client.server.headers(call, BEGIN), frame(DATA, 0, call, prefixed(b"%d" % call)), client.server.trailers(call)]
        for call in calls
    ]
    data = b"".join(
        parts[place][step] for step, place in zip((0, 0, 1, 0, 1, 1, 2, 2, 2), (1, 0, 0, 2, 2, 1, 2, 1, 0), strict=True)
    )
    assert client.codec.feed(data) == [(call, b"%d" % call) for call in reversed(calls)]


def test_the_short_way_counts_what_it_receives() -> None:
    """A window that was never renewed would end a long run; it is, once half of it is used."""
    client = Client()
    client.warm()
    before = client.codec._endpoint.received
    call = client.start()
    assert client.codec.feed(client.server.reply(call, b"warm")) == [(call, b"warm")]
    assert client.codec._endpoint.received == before + len(prefixed(b"warm"))
    client.codec._endpoint.received = 2**30
    call = client.start()
    client.codec.feed(client.server.reply(call, b"warm"))
    assert client.codec.take_outgoing() == window_update(0, 2**30 + len(prefixed(b"warm")))


def test_what_stands_before_a_reply_is_told() -> None:
    """A PING, the acknowledgement of our SETTINGS, or a first piece; not what follows it, which grpcio always sends."""
    client, ping = Client(), frame(http2.PING, 0, 0, bytes(8))
    client.warm()
    for before, after, sizes in (
        (b"", b"", []),
        (b"", window_update(0, 7), []),
        (ping, b"", []),
        (SETTINGS_ACK, b"", []),
        (b"", b"", [20]),
    ):
        client.codec.preceded = False
        call = client.start()
        pieces = cut(before + client.server.reply(call, b"warm") + after, sizes)
        assert [reply for piece in pieces for reply in client.codec.feed(piece)] == [(call, b"warm")]
        assert client.codec.preceded == bool(before or sizes)


def test_shapes_are_bounded() -> None:
    """Messages of ever other lengths do not add up, and arrive."""
    client = Client()
    for size in range(200):
        call = client.start()
        assert client.codec.feed(client.server.reply(call, bytes(size))) == [(call, bytes(size))]
    assert len(client.codec._shapes) <= 64


def test_a_reply_of_a_known_shape_to_nobody_is_a_fault() -> None:
    """The short way takes no reply to a call that was never made, and no second reply to a call."""
    client = Client()
    client.warm()
    call = client.start()
    data = client.server.reply(call, b"warm")
    assert client.codec.feed(data + data) == [(call, b"warm")]
    with pytest.raises(Unavailable, match="stream 7, which no call has"):
        client.codec.feed(client.server.reply(7, b"warm"))


def outcome(flipped: int, place: int, pieces: int) -> dict[int, str]:
    """The ends of two calls with one byte of the first's reply, of a known shape, changed, and cut in pieces."""
    client = Client()
    client.warm()
    calls = [client.start(), client.start()]
    data = bytearray(client.server.reply(calls[0], b"warm"))
    data[place] ^= flipped
    ended: dict[int, str] = {}
    try:
        for chunk in cut(bytes(data), [len(data) // pieces] * pieces):
            ended |= {call: str(reply) for call, reply in client.codec.feed(chunk)}
    except Unavailable as lost:
        ended = dict.fromkeys(calls, str(lost)) | ended
    return ended


@pytest.mark.slow
def test_the_short_way_gives_what_the_long_way_gives() -> None:
    """Whichever byte of a usual reply is another one, and in whichever bit."""
    server = GrpcServerBytes()
    server.reply(1, b"")  # which also says how large its table is
    whole = len(server.reply(5, b"warm"))
    for place in range(whole):
        for bit in (1, 2, 4, 128):
            assert outcome(bit, place, 1) == outcome(bit, place, whole), f"bit {bit} of byte {place}"


def test_a_known_shape_does_not_hide_an_unfinished_block() -> None:
    """Nothing may come inside another call's header block, not even a usual reply."""
    client = Client()
    client.warm()
    first, second = client.start(), client.start()
    assert client.codec.feed(frame(http2.HEADERS, 0, first, b"\x88")) == []
    with pytest.raises(Unavailable, match="inside a header block"):
        client.codec.feed(client.server.reply(second, b"warm"))


def test_a_known_shape_does_not_hide_a_call_that_has_begun() -> None:
    """Headers that come twice are a fault, though what follows looks like a whole reply."""
    client = Client()
    client.warm()
    call = client.start()
    assert client.codec.feed(client.server.headers(call, BEGIN)) == []
    assert "headers twice" in client.fault(client.server.reply(call, b"warm")).detail
    assert client.codec.take_outgoing() == http2.rst_stream(call, ErrorCode.CANCEL)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4), SIZES)
def test_any_bytes_are_replies_or_a_fault(changes: list[tuple[int, int]], sizes: list[int]) -> None:
    """Replies with changed bytes give each call at most one outcome, or end the connection. No other error is
    raised."""
    client = Client()
    client.warm()
    calls = [client.start() for _ in range(3)]
    data = bytearray(b"".join(client.server.reply(call, b"message") for call in calls[:2]))
    data += client.server.odd_reply(calls[2], b"message")
    for place, value in changes:
        data[place % len(data)] = value
    given: list[Reply] = []
    try:
        for chunk in cut(bytes(data), sizes):
            given += client.codec.feed(chunk)
    except Unavailable:
        assert not client.codec.room()
    numbers = [call for call, _ in given]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) <= set(calls)
