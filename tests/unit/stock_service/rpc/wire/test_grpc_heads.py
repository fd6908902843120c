"""Header fields of requests, at random: malformed or not as RFC 9113, 8.2 and 8.3, says it."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.wire.grpc_heads import Head, Heads, Kind, part
from stock_service.rpc.wire.header_blocks import Field

PATH = b"/a.Service/Method"
HEADS = Heads({PATH: Kind.UNARY})

CALL: list[Field] = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", PATH)]

NAMES = st.sampled_from(
    [b"", b":", *b":authority :path :status te content-length content-type connection upgrade".split()]
) | st.from_regex(rb"[a-zA-Z0-9:_. -]{1,8}(-bin)?", fullmatch=True)
VALUES = st.sampled_from([b"", b"trailers", b"7", b"application/grpc", b"a b", b" a", b"a\t", b"a\r", b"\0", b"YQ"]) | (
    st.binary(max_size=9)
)
FURTHER = st.sampled_from(
    [
        (b"x-b", b"1"),
        (b"x-b", b"2"),
        (b"x-c-bin", b"YQ,YQ"),
        (b"x-d-bin", b"!"),
        (b"grpc-timeout", b"5m"),
        (b"authorization", b"Bearer a"),
        (b":path", PATH),
        (b":authority", b"a"),
        (b"connection", b"close"),
    ]
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=4)


def head(fields: Sequence[Field]) -> Head:
    """Head that a block of these fields means."""
    return HEADS.head([part(name, value) for name, value in fields])


def sound(fields: Sequence[Field]) -> bool:
    """True where each field may be in a request or behind its messages, by the words of RFC 9113, 8.2 and 8.3."""
    for name, value in fields:
        if re.search(rb"[\x00\r\n]", value) or value != value.strip(b" \t"):
            return False
        if name.startswith(b":"):
            if name not in (b":method", b":scheme", b":path", b":authority"):
                return False
        elif not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9a-z-]+", name):
            return False
        if name in (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"):
            return False
        if (name == b"te" and value != b"trailers") or (
            name == b"content-length" and not re.fullmatch(rb"\d{1,18}", value)
        ):
            return False
    return True


def well_formed(fields: Sequence[Field]) -> bool:
    """True where the fields are a request's, by the specification's words."""
    begins = [name for name, _ in fields if name.startswith(b":")]
    values = dict(fields)
    whole = sound(fields) and [name for name, _ in fields[: len(begins)]] == begins and len(set(begins)) == len(begins)
    return whole and {b":method", b":scheme", b":path"} <= {*begins} and values[b":path"] != b""


@given(st.sampled_from([CALL, CALL[:2], CALL[1:], []]), FIELDS, st.booleans())
def test_what_is_malformed(begins: list[Field], others: list[Field], mixed: bool) -> None:
    """Each request is well formed or not, and may follow a message or not, as the RFC says."""
    fields = [*others, *begins] if mixed else [*begins, *others]
    found = head(fields)
    assert (not found.malformed) == well_formed(fields)
    if found.malformed:
        assert found.trails == (sound(fields) and not any(name.startswith(b":") for name, _ in fields))


@given(st.lists(st.tuples(st.lists(FURTHER, max_size=3), st.integers(0, 7), st.booleans()), min_size=2, max_size=4))
def test_a_head_means_the_same_whatever_came_before(calls: list[tuple[list[Field], int, bool]]) -> None:
    """A connection's kept head changes no meaning, with fields behind it or among its own."""
    kept = Heads({PATH: Kind.UNARY})
    for others, place, behind in calls:
        fields = [*CALL, (b"content-type", b"application/grpc"), (b"x-a-bin", b"YQ,YQ"), (b"te", b"trailers")]
        place = len(fields) if behind else place
        parts = [part(name, value) for name, value in (*fields[:place], *others, *fields[place:])]
        assert kept.head([*parts]) == Heads({PATH: Kind.UNARY}).head(parts)


@given(
    st.lists(
        st.tuples(st.from_regex(rb"x-[a-z]{1,5}(-bin)?", fullmatch=True), st.sampled_from([b"", b"YQ", b"YQ,YQ=="]))
    )
)
def test_metadata_is_what_was_sent_besides(fields: list[Field]) -> None:
    """Metadata has the order of the request, with repeated names. Values of names that end in -bin are bytes."""
    found = head([*CALL, (b"content-type", b"application/grpc"), *fields])
    expected = list[tuple[str, str | bytes]]()
    for name, value in fields:
        binary = name.endswith(b"-bin")
        expected += (
            [(name.decode(), b"a" if piece else b"") for piece in value.split(b",")]
            if binary
            else [(name.decode(), value.decode())]
        )
    assert found.metadata == tuple(expected)
    assert found.usual


def test_text_that_is_not_ascii_is_escaped() -> None:
    """Metadata may be any bytes. Binary metadata may lack its padding. gRPC's own fields are left out."""
    own = [
        (b":authority", b"a:1"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        (b"grpc-timeout", b"3H"),
    ]
    found = head([*CALL, *own, (b"b", b"\xff\xfe"), (b"a-bin", b"AAE=, /w")])
    assert found.metadata == (("b", "\\xff\\xfe"), ("a-bin", b"\x00\x01"), ("a-bin", b"\xff"))


def test_a_time_limit_is_rounded_up() -> None:
    """A time limit is rounded up to the next millisecond, and is at least one."""
    limits = {b"1n": 1, b"0S": 1, b"1000001n": 2, b"99u": 1, b"5S": 5000, b"99999999H": 99_999_999 * 3_600_000}
    fields = [*CALL, (b"content-type", b"application/grpc")]
    assert {value: head([*fields, (b"grpc-timeout", value)]).timeout_ms for value in limits} == limits


@pytest.mark.parametrize("value", [b"", b"S", b"5", b"5s", b"-5S", b"5 S", b"123456789S", "\u0665S".encode()])
def test_what_is_no_time_limit_is_refused(value: bytes) -> None:
    """A value that is not a time limit is refused by name."""
    refusal = head([*CALL, (b"content-type", b"application/grpc"), (b"grpc-timeout", value)]).refusal
    assert refusal is not None
    assert "grpc-timeout" in refusal.detail


def test_two_tokens_are_none() -> None:
    """Two tokens count as none. Of a token only the digest is kept."""
    field = (b"authorization", b"Bearer " + b"t" * 20)
    shown = [head([*CALL, (b"content-type", b"application/grpc"), *[field] * count]).shown for count in (0, 1, 2)]
    assert (shown[0], len(shown[1] or b""), shown[2]) == (None, 32, b"")
