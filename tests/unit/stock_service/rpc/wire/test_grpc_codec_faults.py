"""Ends of calls and connections, as the lean gRPC codec tells them: the faults of grpcio's client, GOAWAY, breaks."""

import pytest

from stock_service.rpc.errors import (
    DeadlineExceeded,
    Fault,
    InternalFault,
    InvalidRequest,
    Overloaded,
    Unavailable,
    UnknownMethod,
)
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_codec import MESSAGE_BYTES_MAX, GrpcCodec
from stock_service.rpc.wire.http2 import DATA, END_STREAM, ErrorCode, frame, settings
from tests.unit.stock_service.rpc.wire.grpc_server_bytes import AUTHORITY, BEGIN, PATH, Client, Fields, prefixed
from tests.unit.stock_service.rpc.wire.streams import frames_of


def status(code: bytes, text: bytes = b"why") -> Fields:
    """Trailers of a call that failed."""
    return [(b"grpc-status", code), (b"grpc-message", text)]


STATUSES: list[tuple[Fields, type[Fault], str]] = [
    (status(b"3"), InvalidRequest, "why"),
    (status(b"4"), DeadlineExceeded, "no reply from host:1 in time"),
    (status(b"14"), Unavailable, "connection to host:1: why"),
    (status(b"1"), Unavailable, "call to host:1 cancelled by the server, which is stopping"),
    (status(b"2"), InternalFault, "UNKNOWN: why"),
    (status(b"17"), InternalFault, "status 17: why"),
    (status(b"x"), InternalFault, "UNKNOWN: why"),
    (status(b"3", b"100%25 %C3%9F%E2%82%AC %zz %FF%"), InvalidRequest, "100% ß€ %zz \ufffd%"),
    ([(b"grpc-status", b"3")], InvalidRequest, ""),
    ([(b"other", b"x")], InternalFault, "host:1 ended the call without a grpc-status"),
]


@pytest.mark.parametrize(("fields", "fault", "detail"), STATUSES)
@pytest.mark.parametrize("alone", [False, True], ids=["after a message", "alone"])
def test_a_status_is_the_fault_that_grpcios_client_gives(
    fields: Fields, fault: type[Fault], detail: str, alone: bool
) -> None:
    """A status gives the same fault as grpcio's client, in trailers behind a message and in headers alone, with text in
    any language."""
    client = Client()
    call = client.start()
    if alone:
        data = client.server.trailers(call, [*BEGIN, *fields])
    else:
        data = (
            client.server.headers(call, BEGIN)
            + frame(DATA, 0, call, prefixed(b"m"))
            + client.server.trailers(call, fields)
        )
    outcome = client.fault(data)
    assert (type(outcome), outcome.detail) == (fault, detail)
    assert client.codec.take_outgoing() == b""
    client.warm()


@pytest.mark.parametrize(
    ("fields", "fault", "detail"),
    [
        ([(b":status", b"404")], UnknownMethod, "HTTP status 404 from host:1"),
        ([(b":status", b"503"), (b"content-type", b"text/html")], Unavailable, "HTTP status 503 from host:1"),
        ([(b":status", b"400")], InternalFault, "HTTP status 400 from host:1"),
        ([(b":status", b"2x0")], InternalFault, "HTTP status -1 from host:1"),
        ([(b":status", b"503"), (b"grpc-status", b"8")], Overloaded, ""),
        ([(b":status", b"200"), (b"content-type", b"text/html")], InternalFault, "host:1 replied, but not with gRPC"),
        ([(b"other", b"x")], InternalFault, "host:1 ended the call without a grpc-status"),
    ],
)
@pytest.mark.parametrize("ends", [False, True])
def test_a_reply_that_is_not_grpcs(fields: Fields, fault: type[Fault], detail: str, ends: bool) -> None:
    """The answer of a proxy or a web server is a fault at once; the rest is not waited for."""
    client = Client()
    call = client.start()
    outcome = client.fault(client.server.headers(call, fields, ends))
    assert (type(outcome), outcome.detail) == (fault, detail)
    assert client.codec.take_outgoing() == (b"" if ends else http2.rst_stream(call, ErrorCode.CANCEL))
    if not ends:
        assert client.codec.feed(frame(DATA, END_STREAM, call, b"<html>")) == []
    client.warm()


@pytest.mark.parametrize("warm", [False, True])
def test_a_message_that_is_none(warm: bool) -> None:
    """Compressed, over the limit, twice, cut short, without a status, missing, or before the headers: a fault of that
    call alone."""
    whole = prefixed(b"message")
    for data, ends, fault, detail in (
        (prefixed(b"message", compressed=1), False, InternalFault, "compressed"),
        (b"\0" + (MESSAGE_BYTES_MAX + 1).to_bytes(4, "big"), False, Overloaded, f"allowed: {MESSAGE_BYTES_MAX}"),
        (whole + whole, False, InternalFault, "more than one message"),
        (whole, True, InternalFault, "without a grpc-status"),
        (whole[:-1], False, InternalFault, "half a message"),
        (whole[:4], False, InternalFault, "half a message"),
        (b"", False, InternalFault, "no message"),
    ):
        client = Client()
        if warm:
            client.warm()
        call = client.start()
        sent = client.server.headers(call, BEGIN) + frame(DATA, END_STREAM if ends else 0, call, data)
        outcome = client.fault(sent + (b"" if ends else client.server.trailers(call)))
        assert type(outcome) is fault
        assert detail in outcome.detail
        client.warm()
        assert "before its headers" in client.fault(frame(DATA, 0, client.start(), whole)).detail


def test_a_reset_is_a_fault() -> None:
    """A reset is a fault with the server's reason, and the connection goes on."""
    client = Client()
    for code, fault in (
        (ErrorCode.REFUSED_STREAM, Unavailable),
        (ErrorCode.CANCEL, Unavailable),
        (ErrorCode.ENHANCE_YOUR_CALM, Overloaded),
        (ErrorCode.NO_ERROR, InternalFault),
        (ErrorCode.INTERNAL_ERROR, InternalFault),
    ):
        call = client.start()
        outcome = client.fault(http2.rst_stream(call, code))
        assert (type(outcome), outcome.detail) == (fault, f"call to host:1 reset by the server: {code.name}")
        client.warm()
        assert client.codec.feed(http2.rst_stream(call, code)) == []


def test_a_call_that_was_given_up() -> None:
    """The server is told once of a call that was given up. Later frames of it only change the header table."""
    client = Client(4096)
    call, other = client.start(), client.start()
    assert client.codec.abandon(call) == http2.rst_stream(call, ErrorCode.CANCEL)
    assert client.codec.abandon(call) == b""
    assert client.codec.feed(client.server.reply(call, b"late") + client.server.reply(other, b"good")) == [
        (other, b"good")
    ]
    assert client.codec._endpoint.received == 2 * len(prefixed(b"late"))


# ---- the connection


def test_room_is_what_the_server_allows() -> None:
    """Half as many calls as its settings say, or the only one, the last word counting. One call until the server has
    spoken: its limit is not known before its SETTINGS."""
    codec = GrpcCodec(AUTHORITY)
    codec.start(codec.prepare(PATH, b"request", 1.5))
    assert not codec.room()
    codec.feed(settings((http2.MAX_CONCURRENT_STREAMS, 64)))
    assert codec.room()
    client = Client(greeting=settings((http2.MAX_CONCURRENT_STREAMS, 4)))
    first = client.start()
    client.start()
    assert not client.codec.room()
    client.codec.feed(client.server.reply(first, b""))
    assert client.codec.room()
    client.codec.feed(settings((http2.MAX_CONCURRENT_STREAMS, 2)))
    assert not client.codec.room()
    client = Client(greeting=settings((http2.MAX_CONCURRENT_STREAMS, 1)))
    client.start()
    assert not client.codec.room()


def test_goaway() -> None:
    """After GOAWAY calls above the server's last one fail at once, the others are answered, and no call has room."""
    client = Client()
    calls = [client.start() for _ in range(3)]
    failed = client.codec.feed(http2.goaway(calls[0], ErrorCode.NO_ERROR, "bye\n"))
    said = "call to host:1 not taken up by the server, which is stopping: bye\\n"
    assert [(call, type(fault), getattr(fault, "detail", "")) for call, fault in failed] == [
        (call, Unavailable, said) for call in calls[1:]
    ]
    assert not client.codec.room()
    with pytest.raises(Unavailable, match="takes no more calls"):
        client.codec.start(client.prepared)
    assert client.codec.feed(client.server.reply(calls[0], b"last")) == [(calls[0], b"last")]
    assert not client.codec.room()


def test_a_graceful_goaway_lets_all_calls_end() -> None:
    """A first GOAWAY with the largest stream number fails no call. Its PING is answered."""
    client = Client()
    call = client.start()
    ping = frame(http2.PING, 0, 0, b"graceful")
    assert client.codec.feed(http2.goaway(http2.STREAM_MAX, ErrorCode.NO_ERROR) + ping) == []
    assert client.codec.take_outgoing() == frame(http2.PING, http2.ACK, 0, b"graceful")
    assert client.codec.feed(client.server.reply(call, b"last")) == [(call, b"last")]


def test_stream_numbers_are_used_up() -> None:
    """After the last stream number no call has room, and a start says so."""
    client = Client()
    client.codec._next = http2.STREAM_MAX
    assert client.start() == http2.STREAM_MAX
    assert not client.codec.room()
    with pytest.raises(Unavailable, match="takes no more calls"):
        client.codec.start(client.prepared)
    assert client.codec.feed(client.server.reply(http2.STREAM_MAX, b"last")) == [(http2.STREAM_MAX, b"last")]


def test_a_broken_connection() -> None:
    """Bytes that are not HTTP/2 raise Unavailable, then and later. The server gets the reason."""
    codec = GrpcCodec(AUTHORITY)
    for data in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):
        with pytest.raises(Unavailable, match="connection to host:1 lost: the peer does not begin with SETTINGS"):
            codec.feed(data)
    assert not codec.room()
    ((kind, *_, payload),) = frames_of(codec.take_outgoing())
    assert (kind, http2.parse_goaway(payload)[:2]) == (http2.GOAWAY, (0, ErrorCode.PROTOCOL_ERROR))


def test_what_came_before_the_break_is_given() -> None:
    """A reply in the bytes of the break is given, and open calls then fail with the break's fault."""
    client = Client()
    first, second = client.start(), client.start()
    replies = client.codec.feed(client.server.reply(first, b"good") + frame(http2.PING, 0, 7, bytes(8)))
    assert replies[0] == (first, b"good")
    assert [(call, type(fault)) for call, fault in replies[1:]] == [(second, Unavailable)]
    with pytest.raises(Unavailable):
        client.codec.feed(b"")


def test_a_header_block_that_cannot_be_decoded_breaks_the_connection() -> None:
    """A header block that cannot be decoded breaks the connection, since later ones cannot be decoded either."""
    client = Client()
    with pytest.raises(Unavailable, match="table index"):
        client.codec.feed(frame(http2.HEADERS, http2.END_HEADERS, client.start(), b"\xbe"))
    ((*_, payload),) = frames_of(client.codec.take_outgoing())
    assert http2.parse_goaway(payload)[1] == ErrorCode.COMPRESSION_ERROR
