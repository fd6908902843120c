"""Framing: any chunking gives the same frames, a bad length is refused with its fourth byte, memory is bounded."""

import tracemalloc
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.wire.framing import (
    CALL_MAX,
    FRAME_BYTES_MAX,
    METHOD_BYTES_MAX,
    FrameDecoder,
    FramingError,
    ReplyFrame,
    RequestFrame,
    encode_reply,
    encode_request,
    reply_decoder,
    request_decoder,
)
from tests.unit.stock_service.rpc.wire.streams import cut

U32 = st.integers(0, CALL_MAX)

REQUESTS = st.builds(
    RequestFrame, st.integers(1, CALL_MAX), U32, st.binary(max_size=METHOD_BYTES_MAX), st.binary(max_size=300)
)


Decoder = FrameDecoder[RequestFrame] | FrameDecoder[ReplyFrame]


SIZES = st.lists(st.integers(0, 40) | st.integers(0, 5), max_size=60)


@given(st.lists(REQUESTS, max_size=6), SIZES)
def test_any_chunking_gives_the_same_requests(frames: list[RequestFrame], sizes: list[int]) -> None:
    """Requests come out as they went in, in order, each with its last byte: not before, and not with the next one. The
    bytes behind it are pending."""
    decoder, came_out, fed = request_decoder(), list[RequestFrame](), 0
    ends = [0, *accumulate(len(encode_request(*frame)) for frame in frames)]
    for chunk in cut(b"".join(encode_request(*frame) for frame in frames), sizes):
        came_out += decoder.feed(chunk)
        fed += len(chunk)
        whole = bisect_right(ends, fed) - 1
        assert (came_out, decoder.pending_bytes) == (frames[:whole], fed - ends[whole])


def test_the_bytes_are_those_that_are_documented() -> None:
    """The bytes are those of the module's text, so that a client in another language can be written from it."""
    assert encode_request(1, 2, b"/m", b"pay") == bytes.fromhex("0000000e 00000001 00000002 02") + b"/mpay"
    assert encode_reply(1, 13, b"why") == bytes.fromhex("00000008 00000001 0d") + b"why"
    assert encode_request(CALL_MAX, CALL_MAX, b"", b"") == bytes.fromhex("00000009 ffffffff ffffffff 00")


BAD_LENGTHS = [FRAME_BYTES_MAX + 1, 2**31 - 1, 2**31, 2**32 - 1]


@pytest.mark.parametrize(
    ("length", "least"),
    [*((each, 9) for each in (0, 1, 8, *BAD_LENGTHS)), *((each, 5) for each in (0, 4, *BAD_LENGTHS))],
)
@pytest.mark.parametrize("size", [1, 3, 4])
def test_a_bad_length_is_refused_with_its_fourth_byte(length: int, least: int, size: int) -> None:
    """A wrong length is refused before a further byte, with both bounds. A request has nine bytes at least, a reply has
    five bytes, and both are within the limit."""
    *chunks, last = [chunk for chunk in cut(length.to_bytes(4, "big"), [size] * 4) if chunk]
    decoder: Decoder = request_decoder() if least == 9 else reply_decoder()
    assert not any(map(decoder.feed, chunks))
    with pytest.raises(FramingError, match=f"{length} bytes, allowed: {least} to {FRAME_BYTES_MAX}"):
        decoder.feed(last)


BAD_TAILS = [(0).to_bytes(4, "big"), b"GET / HTTP/1.1", (9).to_bytes(4, "big") + bytes(8) + b"\xff"]


@given(st.lists(REQUESTS, max_size=4), st.sampled_from(BAD_TAILS), SIZES)
def test_frames_before_a_refusal_come_out(frames: list[RequestFrame], bad: bytes, sizes: list[int]) -> None:
    """Whole frames before a refusal come out with any chunking, at the latest with the error."""
    decoder = request_decoder()
    came_out: list[RequestFrame] = []
    refused = False
    for chunk in cut(b"".join(encode_request(*frame) for frame in frames) + bad, sizes):
        try:
            came_out += decoder.feed(chunk)
        except FramingError as error:
            came_out += error.frames
            refused = True
            break
    assert refused
    assert came_out == frames


@pytest.mark.parametrize("limit", [64, 1000])
def test_the_limit_is_the_largest_frame(limit: int) -> None:
    """A frame of exactly the limit passes, one of a byte more does not."""
    payload = b"x" * (limit - 9)
    assert request_decoder(limit).feed(encode_request(1, 0, b"", payload)) == [RequestFrame(1, 0, b"", payload)]
    with pytest.raises(FramingError, match=f"a frame of {limit + 1} bytes, allowed: 9 to {limit}"):
        request_decoder(limit).feed(encode_request(1, 0, b"", payload + b"x"))


@pytest.mark.parametrize("method_length", [1, 255])
def test_a_method_longer_than_its_frame_is_refused(method_length: int) -> None:
    """A method's length cannot reach past the frame, into the next."""
    frame = (9).to_bytes(4, "big") + bytes(8) + bytes([method_length])
    with pytest.raises(FramingError, match=f"a method of {method_length} bytes in a frame of 9"):
        request_decoder().feed(frame + b"x" * 300)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_frames_or_refused(chunks: list[bytes]) -> None:
    """Any bytes give frames that encode to the same bytes, some rest, or a refusal."""
    decoder = request_decoder(256)
    data = b""
    encoded = b""
    refused = False
    for chunk in chunks:
        data += chunk
        try:
            encoded += b"".join(encode_request(*frame) for frame in decoder.feed(chunk))
        except FramingError:
            refused = True
            break
    assert data.startswith(encoded)
    assert refused or len(data) - len(encoded) == decoder.pending_bytes <= 256 + 4


@contextmanager
def holding_at_most(count: int) -> Iterator[None]:
    """Fails if more bytes of memory are held after the block than before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= count


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 50])
def test_memory_is_bounded_by_the_frame(size: int) -> None:
    """A large frame that comes in tiny pieces takes no more memory than a few times its own bytes."""
    begun = encode_request(1, 0, b"/a.B/C", bytes(32_768))[:-1]
    decoder = request_decoder()
    with holding_at_most(3 * len(begun)):
        for chunk in cut(begun, [size] * (len(begun) // size)):
            assert decoder.feed(bytes(bytearray(chunk))) == []  # a copy of its own, as from a socket
    assert decoder.pending_bytes == len(begun)


def test_a_large_chunk_is_not_kept_for_its_end() -> None:
    """Many frames in one chunk and the beginning of another: only the beginning is kept."""
    chunk = encode_reply(1, 0, bytes(1000)) * 1000 + b"\0\0"
    decoder = reply_decoder()
    with holding_at_most(10_000):
        count = len(decoder.feed(bytes(bytearray(chunk))))
    assert (count, decoder.pending_bytes) == (1000, 2)
