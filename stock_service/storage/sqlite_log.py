"""Check of the write-ahead log (WAL) of a killed server: finds damage that would hide commits from SQLite.

A log is a sequence of frames: each frame is a header and a page of the file. SQLite reads the commits of a log up to
the first damaged frame, and does not report that commits follow this frame. A crash can leave a half-written frame only
in the last commit, since each commit is on the disk before the next commit begins. Such a last commit was not
acknowledged. So a bad frame before the last commit shows damage of the disk.

The check can find neither damage to the last commit nor a missing end of the log.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. The checksum of a frame continues the checksum
of the frame before. So a frame's checksum also shows whether the earlier frames are unchanged.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from struct import Struct

Sums = tuple[int, int]

_HEAD = Struct(">8I")
"""Header of a log: magic number, format, page size, number of checkpoints, two salts, and a checksum (two numbers) of
these fields. Each frame repeats the salts.
"""

_FRAME = Struct(">6I")
"""Header of a frame: number of the page; number of pages of the file if the frame ends a commit, otherwise 0; two
salts; a checksum (two numbers). The checksum covers the first two fields and the page, and continues the checksum of
the frame before.
"""

_SALTS = slice(16, 24)
"""Offsets of the salts in the log's header."""

_MAGIC = 0x377F0682
"""Magic number of a log with little-endian checksums. With big-endian checksums its last bit is 1."""

_PAGE_SIZES = [1 << power for power in range(9, 17)]

_SECTOR = 512
"""Number of bytes of a sector, which a disk writes either whole or not at all."""


def damage(log: Path, was_written: bool = False) -> str | None:
    """Returns a text on damage that would lose acknowledged commits. Returns None if no damage is found, or no log
    exists.

    ``was_written`` is True if a server had begun to write to the log. Such a log is damaged if it has no header, unless
    the log is empty. Computes the checksums of this log's frames, in some 30 ms for a MiB. After these frames the log's
    file may have frames of an earlier log, of which the function reads only the salts. Raises OSError.
    """
    if not log.exists():
        return None
    with log.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not any(head):
            return "its head" if was_written and head else None  # None: the log is not written yet
        magic, _, page_size, _ = _HEAD.unpack(head)[:4]
        sums: Sums = _HEAD.unpack(head)[6:]
        words = ">" if magic & 1 else "<"
        if magic | 1 != _MAGIC | 1 or page_size not in _PAGE_SIZES or _sums(words, head[:24], (0, 0)) != sums:
            return "its head"
        count = _frames(file.fileno(), head[_SALTS], _FRAME.size + page_size)
        return _damage(words, head[_SALTS], sums, (file.read(_FRAME.size + page_size) for _ in range(count)))


def _frames(log: int, salts: bytes, size: int) -> int:
    """Returns the number of frames up to the last frame with these salts, which is the end of this log. ``size`` is the
    size of a frame, in bytes.

    A frame with other salts before this end belongs to the log: its salts may be damaged.
    """
    last = (os.fstat(log).st_size - _HEAD.size) // size
    own = (number for number in range(last, 0, -1) if os.pread(log, 8, _HEAD.size + (number - 1) * size + 8) == salts)
    return next(own, 0)


def _damage(words: str, salts: bytes, sums: Sums, frames: Iterable[bytes]) -> str | None:
    """Returns a text on the first bad frame if a further commit was begun after this frame; otherwise None.

    A further commit was begun if a frame ends a commit, and the checksum of the next frame continues the checksum of
    the ending frame. The continued checksum is either stored in the ending frame, or is the correct checksum of this
    frame. A frame that continues no checksum belongs to a failed commit or to an earlier log.
    """
    bad, at = 0, _HEAD.size
    before, meant = sums, sums  # checksum of the previous frame: as stored, and as computed
    pages_before, ended = 0, False
    size = 0  # number of pages of the file after the last good commit; 0 before the first
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
        else:  # the disk writes whole sectors, so the number of pages was written if a salt in its sector was written
            says_so = pages > 0 or (number == bad and _had_pages(words, frame, before, _grown(size, number)))
            ended = is_this_log and says_so and (at + 8) % _SECTOR > 0
        before, meant, pages_before = found, computed, pages
        at += len(frame)
    return None


def _grown(size: int, frames: int) -> range:
    """Returns the possible sizes, in pages, of a store file after ``frames`` frames of its log. ``size`` is the file's
    size before these frames; 0 if unknown. A file never shrinks, and a frame adds one page at most.
    """
    return range(size, size + frames + 1) if size else range(1, 1 << 16)


def _had_pages(words: str, frame: bytes, before: Sums, sizes: range) -> bool:
    """Returns True if the loss of one bit hides that the frame ended a commit.

    The last frame of a commit holds the file's number of pages, and other frames hold 0. A lost bit can turn a number
    into 0 only if the number was a power of two. So the function puts each power of two in place of the 0. If the
    frame's checksum is right with one of these powers, the frame had this power as its number.

    Only powers among the possible ``sizes`` are tried. With many more tries, a checksum would be right by chance.
    """
    found, page = _FRAME.unpack_from(frame)[4:], frame[_FRAME.size :]
    powers = [1 << bit for bit in range(32) if 1 << bit in sizes]
    return any(_sums(words, frame[:4] + power.to_bytes(4) + page, before) == found for power in powers)


def _sums(words: str, data: bytes, sums: Sums) -> Sums:
    """Computes SQLite's checksum of ``data``. The computation continues from the earlier checksum ``sums``. ``words``
    is the byte order of the words: ``<`` or ``>``.
    """
    first, second = sums
    numbers = iter(Struct(f"{words}{len(data) // 4}I").unpack(data))
    for one, other in zip(numbers, numbers, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
