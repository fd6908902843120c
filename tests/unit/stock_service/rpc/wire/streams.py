"""Streams of bytes for tests: cut anywhere, and HTTP/2 taken apart with no code of ours."""

from collections.abc import Iterable, Iterator


def cut(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    """A stream in chunks of these sizes, and the rest of it in one."""
    start = 0
    for size in sizes:
        yield data[start : start + size]
        start += size
    yield data[start:]


def frames_of(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of HTTP/2 frames, all of them whole."""
    frames = []
    while data:
        length = int.from_bytes(data[:3], "big")
        assert len(data) >= 9 + length, "half a frame"
        frames.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + length]))
        data = data[9 + length :]
    return frames
