"""Framing: any chunking gives the same frames, a bad length is refused with its fourth byte, memory is bounded."""

import tracemalloc

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
    """Requests come out as they went in, in order. All bytes that came are in decoded frames, or are pending."""
    decoder, came_out = request_decoder(), list[RequestFrame]()
    fed = whole = 0
    for chunk in cut(b"".join(encode_request(*frame) for frame in frames), sizes):
        found = decoder.feed(chunk)
        came_out += found
        fed, whole = fed + len(chunk), whole + sum(len(encode_request(*frame)) for frame in found)
        assert decoder.pending_bytes == fed - whole
    assert (came_out, decoder.pending_bytes) == (frames, 0)


def test_a_frame_comes_out_with_its_last_byte() -> None:
    """A frame comes out with its last byte: not before, and not with the next frame."""
    data = encode_request(7, 1500, b"/a.B/C", b"payload")
    decoder = request_decoder()
    for number in range(len(data) - 1):
        assert decoder.feed(data[number : number + 1]) == []
    assert decoder.feed(data[-1:]) == [RequestFrame(7, 1500, b"/a.B/C", b"payload")]


def test_the_bytes_are_those_that_are_documented() -> None:
    """The bytes are those of the module's text, so that a client in another language can be written from it."""
    assert encode_request(1, 2, b"/m", b"pay") == bytes.fromhex("0000000e 00000001 00000002 02") + b"/mpay"
    assert encode_reply(1, 13, b"why") == bytes.fromhex("00000008 00000001 0d") + b"why"
    assert encode_request(CALL_MAX, CALL_MAX, b"", b"") == bytes.fromhex("00000009 ffffffff ffffffff 00")


BAD_LENGTHS = [0, 1, 8, FRAME_BYTES_MAX + 1, 2**31 - 1, 2**31, 2**32 - 1]


@pytest.mark.parametrize("length", BAD_LENGTHS)
@pytest.mark.parametrize("size", [1, 3, 4])
def test_a_bad_length_is_refused_with_its_fourth_byte(length: int, size: int) -> None:
    """A length that is too short for any request, or over the limit, is refused before a further byte, with both
    bounds."""
    chunks = [chunk for chunk in cut(length.to_bytes(4, "big"), [size] * 4) if chunk]
    decoder = request_decoder()
    for chunk in chunks[:-1]:
        assert decoder.feed(chunk) == []
    with pytest.raises(FramingError, match=f"{length} bytes, allowed: 9 to {FRAME_BYTES_MAX}"):
        decoder.feed(chunks[-1])


@pytest.mark.parametrize("length", [0, 4, FRAME_BYTES_MAX + 1])
def test_a_bad_length_of_a_reply_is_refused(length: int) -> None:
    """A reply has five bytes at least."""
    with pytest.raises(FramingError, match=f"{length} bytes, allowed: 5 to"):
        reply_decoder().feed(length.to_bytes(4, "big"))


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


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 50])
def test_memory_is_bounded_by_the_frame(size: int) -> None:
    """A large frame that comes in tiny pieces takes no more memory than a few times its own bytes."""
    begun = encode_request(1, 0, b"/a.B/C", bytes(32_768))[:-1]
    decoder = request_decoder()
    held = held_bytes(decoder, list(cut(begun, [size] * (len(begun) // size))))
    assert decoder.pending_bytes == len(begun)
    assert held <= 3 * len(begun)


def held_bytes(decoder: Decoder, chunks: list[bytes]) -> int:
    """Bytes that a decoder holds of chunks without any other owner."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for chunk in chunks:
            assert decoder.feed(bytes(bytearray(chunk))) == []  # a copy of its own, as from a socket
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before


def test_a_large_chunk_is_not_kept_for_its_end() -> None:
    """Many frames in one chunk and the beginning of another: only the beginning is kept."""
    chunk = encode_reply(1, 0, bytes(1000)) * 1000 + b"\0\0"
    decoder = reply_decoder()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        count = len(decoder.feed(bytes(bytearray(chunk))))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1000
    assert decoder.pending_bytes == 2
    assert after - before < 10_000
