"""The window of request ids in shared memory: the last ``retry_window`` ids with their records, found by id.

``once.py`` describes a record. Records are numbered from 1, and are in a ring: a new one takes the place of the oldest.
Records with the same hash are in a chain, the newest first. A chain ends with the first number that is forgotten, or 0:
so nothing is taken out of a chain. An id is kept as its digest of 128 bits. So two ids never have the same digest by
accident; finding two such ids takes 2^64 tries.

Only the holder of the memory may call these functions and methods.
"""

import struct
from hashlib import blake2b

from stock_service.trading.once import RECORD_BYTES
from stock_service.trading.shared.memory import WORD_BYTES, Memory

# Words of the window itself, from its beginning.
_IDS = 0  # ids so far, which number them
_BUCKETS = 1  # the first of the words that have the number with which a chain begins

# Words of a record.
_KEY = 0  # two
_NEXT = 2  # the number behind it in its chain
_RECORD = 3

_PADDED_WORDS = -(-RECORD_BYTES // WORD_BYTES)
_PADDED = struct.Struct(f"={_PADDED_WORDS}q")

_RECORD_WORDS = _RECORD + _PADDED_WORDS

_KEYS = struct.Struct("=qq")

Key = tuple[int, int]
"""The digest of an id."""


def digest_of(key: str) -> Key:
    """The digest under which an id is found in the window; ``key`` is the key of ``once.py``."""
    first, second = _KEYS.unpack(blake2b(key.encode(), digest_size=_KEYS.size).digest())
    return first, second


def window_words(retry_window: int) -> int:
    """Number of words that a window for ``retry_window`` ids takes."""
    return _BUCKETS + _buckets(retry_window) + retry_window * _RECORD_WORDS


def _buckets(retry_window: int) -> int:
    return 1 << retry_window.bit_length()  # at least as many as ids, so that chains are short


class RetryWindow:
    """The window, which begins at the word ``begin`` of the memory."""

    def __init__(self, memory: Memory, begin: int, retry_window: int) -> None:
        self._words = memory.words
        self._at = begin
        self._most = retry_window
        self._mask = _buckets(retry_window) - 1
        self._records = begin + _BUCKETS + self._mask + 1

    def find(self, key: Key) -> bytes | None:
        """The record of an id; None if the id is not remembered."""
        words = self._words
        forgotten = max(0, words[self._at + _IDS] - self._most)
        number = words[self._bucket(key)]
        while number > forgotten:
            place = self._place(number)
            if (words[place], words[place + 1]) == key:
                begin = place + _RECORD
                return _PADDED.pack(*words[begin : begin + _PADDED_WORDS])[:RECORD_BYTES]
            number = words[place + _NEXT]
        return None

    def adding(self, key: Key, record: bytes) -> list[int]:
        """The words to commit so that a new id is remembered. If the window is full, the oldest id is forgotten."""
        words = self._words
        number, bucket = words[self._at + _IDS] + 1, self._bucket(key)
        place = self._place(number)
        changes = [place + _KEY, key[0], place + _KEY + 1, key[1], place + _NEXT, words[bucket], bucket, number]
        padded = _PADDED.unpack(record.ljust(_PADDED.size, b"\0"))
        changes += [word for pair in enumerate(padded, place + _RECORD) for word in pair]
        return [*changes, self._at + _IDS, number]

    def _place(self, number: int) -> int:
        """Offset of the record of that number, unless the record is forgotten."""
        return self._records + (number - 1) % self._most * _RECORD_WORDS

    def _bucket(self, key: Key) -> int:
        return self._at + _BUCKETS + (key[0] & self._mask)
