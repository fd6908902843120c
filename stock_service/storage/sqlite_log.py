"""Check of the log (WAL) of a killed server: it finds damage that hides commits from SQLite.

SQLite reads a log's commits up to the first frame that is not as it was written, and does not report what is behind it.
A frame that a crash left half written belongs to the last commit, which was not acknowledged: each commit is on the
disk before the next commit begins. So a bad frame is damage if another commit was begun after the frame's commit.

The check cannot find damage to the last commit, or a log that was cut short.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. Each frame's checksum goes on from that of the
frame before it, so a frame shows what stood there.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from struct import Struct

Sums = tuple[int, int]

_HEAD = Struct(">8I")
"""Head of a log: magic, format, page size, checkpoints, two salts, which each frame has too, and the checksum of all
these."""

_FRAME = Struct(">6I")
"""Head of a frame: page, pages of the file after a commit, else 0, two salts, and the checksum of the first two fields
and the page, which goes on from the frame before."""

_SALTS = slice(16, 24)
"""Place of the salts in the log's head."""

_MAGIC = 0x377F0682
"""Magic number of a log. Its last bit is set where the words of the checksums are big-endian."""

_PAGE_SIZES = [1 << power for power in range(9, 17)]

_SECTOR = 512
"""Number of bytes that a disk writes as a whole."""


def damage(log: Path, was_written: bool = False) -> str | None:
    """The damaged part of a log, which loses acknowledged commits; None: no damage that can be found, or no log.

    A log that ``was_written`` has a head, unless somebody made it anew: then it is empty. Computes the checksums of
    this log's frames, in some 30 ms a MiB; of an earlier log behind it only salts are read. Raises OSError.
    """
    if not log.exists():
        return None
    with log.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not any(head):
            return "its head" if was_written and head else None  # None: not written yet
        magic, _, page_size, _ = _HEAD.unpack(head)[:4]
        sums: Sums = _HEAD.unpack(head)[6:]
        words = ">" if magic & 1 else "<"
        if magic | 1 != _MAGIC | 1 or page_size not in _PAGE_SIZES or _sums(words, head[:24], (0, 0)) != sums:
            return "its head"
        count = _frames(file.fileno(), head[_SALTS], _FRAME.size + page_size)
        return _damage(words, head[_SALTS], sums, (file.read(_FRAME.size + page_size) for _ in range(count)))


def _frames(log: int, salts: bytes, size: int) -> int:
    """Number of frames up to the last one with these salts: behind it is nothing of this log.

    A frame with other salts does not end the log: its salts may be damaged.
    """
    last = (os.fstat(log).st_size - _HEAD.size) // size
    own = (number for number in range(last, 0, -1) if os.pread(log, 8, _HEAD.size + (number - 1) * size + 8) == salts)
    return next(own, 0)


def _damage(words: str, salts: bytes, sums: Sums, frames: Iterable[bytes]) -> str | None:
    """The first bad frame, if another commit was begun behind it.

    A commit was begun where a frame goes on from one that ends a commit: from the checksum that this one has, or from
    the one that it should have. Frames that go on from no frame are of a commit that failed, or of an earlier log.
    """
    bad, at = 0, _HEAD.size
    before, meant = sums, sums  # the checksum of the frame before, as it is and as it should be
    pages_before, ended = 0, False
    size = 0  # pages of the file, as the last good commit says; 0: none does
    for number, frame in enumerate(frames, start=1):
        _, pages, _, _, first, second = _FRAME.unpack_from(frame)
        content, is_this_log = frame[:8] + frame[_FRAME.size :], frame[8:16] == salts
        computed, found = _sums(words, content, before), (first, second)
        goes_on = is_this_log and computed == found
        if bad and goes_on and ended:
            return f"frame {bad}"
        if bad and pages_before and is_this_log and _sums(words, content, meant) == found:
            return f"frame {bad}"
        if not goes_on and not bad:
            bad = number
        if computed == found:
            ended = pages > 0
            size = max(size, pages)
        else:  # a crash writes whole sectors: the number of pages was written if a salt in its sector was
            says_so = pages > 0 or (number == bad and _had_pages(words, frame, before, _grown(size, number)))
            ended = is_this_log and says_so and (at + 8) % _SECTOR > 0
        before, meant, pages_before = found, computed, pages
        at += len(frame)
    return None


def _grown(size: int, frames: int) -> range:
    """Sizes, in pages, that a file of ``size`` pages may have after ``frames`` frames: it never shrinks."""
    return range(size, size + frames + 1) if size else range(1, 1 << 16)


def _had_pages(words: str, frame: bytes, before: Sums, sizes: range) -> bool:
    """True where a frame without a number of pages had one with a single bit set, and is else as it was written.

    Only sizes that the file can have had are tried: among many others a checksum is soon right by chance.
    """
    found, page = _FRAME.unpack_from(frame)[4:], frame[_FRAME.size :]
    powers = [1 << bit for bit in range(32) if 1 << bit in sizes]
    return any(_sums(words, frame[:4] + power.to_bytes(4) + page, before) == found for power in powers)


def _sums(words: str, data: bytes, sums: Sums) -> Sums:
    """The checksum of SQLite, which goes on from an earlier one, ``sums``."""
    first, second = sums
    numbers = iter(Struct(f"{words}{len(data) // 4}I").unpack(data))
    for one, other in zip(numbers, numbers, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
