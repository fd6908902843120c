"""Check of the log (WAL) of a killed server: it finds damage that hides commits from SQLite.

SQLite reads a log's commits up to the first damaged frame, and does not report the commits behind this frame. A frame
that a crash left half written belongs to the last commit, which was not acknowledged, since each commit is on the disk
before the next commit begins. So a bad frame before the last commit is damage.

The check cannot find damage to the last commit, and cannot find that the end of a log is missing.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. Each frame's checksum continues the checksum of
the frame before it. So a frame shows if the earlier frames are unchanged.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from struct import Struct

Sums = tuple[int, int]

_HEAD = Struct(">8I")
"""Head of a log: magic, format, page size, number of checkpoints, two salts, and the checksum of all these. Each frame
repeats the salts.
"""

_FRAME = Struct(">6I")
"""Head of a frame: number of the page; number of pages of the file after a commit, otherwise 0; two salts; the
checksum. The checksum covers the first two fields and the page, and continues the checksum of the frame before.
"""

_SALTS = slice(16, 24)
"""Offsets of the salts in the log's head."""

_MAGIC = 0x377F0682
"""Magic number of a log. The last bit is 1 if the words of the checksums are big-endian."""

_PAGE_SIZES = [1 << power for power in range(9, 17)]

_SECTOR = 512
"""Number of bytes that a disk writes whole or not at all."""


def damage(log: Path, was_written: bool = False) -> str | None:
    """Text on the damaged part of a log, which loses acknowledged commits. None if no damage is found, or there is no
    log.

    With ``was_written``, a log without a head is damaged, unless the log is empty. Computes the checksums of this log's
    frames, in some 30 ms a MiB. Behind them there may be frames of an earlier log, of which only the salts are read.
    Raises OSError.
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
    """Number of frames up to the last frame with these salts, which is the end of this log.

    A frame with other salts does not end the log: its salts may be damaged.
    """
    last = (os.fstat(log).st_size - _HEAD.size) // size
    own = (number for number in range(last, 0, -1) if os.pread(log, 8, _HEAD.size + (number - 1) * size + 8) == salts)
    return next(own, 0)


def _damage(words: str, salts: bytes, sums: Sums, frames: Iterable[bytes]) -> str | None:
    """Text on the first bad frame, if another commit was begun behind this frame.

    A commit was begun if a frame continues a frame that ends a commit: the stored checksum of the ending frame, or its
    correct checksum. Frames that continue no frame belong to a failed commit or to an earlier log.
    """
    bad, at = 0, _HEAD.size
    before, meant = sums, sums  # checksum of the frame before: as stored, and as it should be
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
    """Possible sizes, in pages, of a file of ``size`` pages after ``frames`` frames: a file never shrinks."""
    return range(size, size + frames + 1) if size else range(1, 1 << 16)


def _had_pages(words: str, frame: bytes, before: Sums, sizes: range) -> bool:
    """True if a frame, whose number of pages is 0, had one of these sizes as the number, a power of two, and is
    otherwise as it was written.

    Only possible sizes are tried: among many other sizes, one would have the right checksum by chance.
    """
    found, page = _FRAME.unpack_from(frame)[4:], frame[_FRAME.size :]
    powers = [1 << bit for bit in range(32) if 1 << bit in sizes]
    return any(_sums(words, frame[:4] + power.to_bytes(4) + page, before) == found for power in powers)


def _sums(words: str, data: bytes, sums: Sums) -> Sums:
    """SQLite's checksum of data, which continues the earlier checksum ``sums``."""
    first, second = sums
    numbers = iter(Struct(f"{words}{len(data) // 4}I").unpack(data))
    for one, other in zip(numbers, numbers, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
