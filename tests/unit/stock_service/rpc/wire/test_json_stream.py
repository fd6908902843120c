"""A stream of JSON objects: any chunking gives the same texts, and a limit is the same in any chunks."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.wire.framing import FramingError
from stock_service.rpc.wire.json_stream import DEPTH_MAX, JsonDecoder

BYTES_MAX = 120

TEXTS = st.text(st.sampled_from('{}[]"\\a ß\n,:'), max_size=12)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3).flatmap(
    lambda value: st.sampled_from([None, 1]).map(lambda indent: json.dumps(value, indent=indent).encode())
)
SPACES = st.sampled_from([b"", b"\n", b" \r\n\t"])


def read(chunks: list[bytes]) -> tuple[list[bytes], bool]:
    """The objects of a stream in these chunks, and whether it was refused behind them."""
    decoder, found = JsonDecoder(BYTES_MAX), list[bytes]()
    for chunk in chunks:
        try:
            found += decoder.feed(chunk)
        except FramingError as error:
            return found + list(error.frames), True
    return found, False


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """A stream cut at these places."""
    return [
        data[start:stop] for start, stop in pairwise(sorted({0, len(data), *(p % (len(data) + 1) for p in places)}))
    ]


PLACES = st.lists(st.integers(0, 1000), max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(OBJECTS, SPACES), max_size=5), PLACES)
def test_objects_come_out_as_they_went_in(objects: list[tuple[bytes, bytes]], places: list[int]) -> None:
    """Whatever stands in their strings, and however they are spaced and chunked; up to one that is too long."""
    data = b"".join(text + space for text, space in objects)
    texts = [text for text, _ in objects]
    good = next((at for at, text in enumerate(texts) if len(text) > BYTES_MAX), len(texts))
    expected = texts[:good], good < len(texts)
    assert read([data]) == expected
    assert read(cut(data, places)) == expected
    assert read([data[at : at + 1] for at in range(len(data))]) == expected


@given(st.text(st.sampled_from('{}[]"\\a \n'), max_size=200).map(str.encode) | st.binary(max_size=200), PLACES)
def test_any_bytes_give_the_same_in_any_chunks(data: bytes, places: list[int]) -> None:
    """Texts whose brackets pair, and a refusal or none; nothing else is raised."""
    whole = read([data])
    assert read(cut(data, places)) == whole
    assert read([data[at : at + 1] for at in range(len(data))]) == whole


@pytest.mark.parametrize("size", [BYTES_MAX, BYTES_MAX + 1])
@pytest.mark.parametrize("escape", [b"", b'\\"'])
def test_the_limit_is_a_byte(size: int, escape: bytes) -> None:
    """In one piece and byte by byte: as many bytes as the limit says, and not one more."""
    text = b'{"a":"' + escape
    text += b"x" * (size - len(text) - 2 - len(escape)) + escape + b'"}'
    expected = ([text], False) if size == BYTES_MAX else ([], True)
    assert len(text) == size
    assert read([text]) == read([text[at : at + 1] for at in range(size)]) == expected


def test_depth_is_bounded() -> None:
    """A request of brackets alone is refused before a reader recurses into it."""
    decoder = JsonDecoder(10_000)
    deepest = b'{"a":' + b"[" * (DEPTH_MAX - 1) + b"]" * (DEPTH_MAX - 1) + b"}"
    assert list(decoder.feed(deepest)) == [deepest]
    with pytest.raises(FramingError, match="brackets over 64 deep"):
        decoder.feed(b"{" * (DEPTH_MAX + 1))


def test_what_is_pending_is_counted() -> None:
    """From an object's first byte to its last; white space is none of it."""
    decoder = JsonDecoder(100)
    seen = []
    for byte in b' {"a": 1}\n ':
        decoder.feed(bytes([byte]))
        seen.append(decoder.pending_bytes)
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0]
