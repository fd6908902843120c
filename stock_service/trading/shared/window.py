"""Window of request ids in shared memory: a hash table of the last ``retry_window`` ids with their records.

``once.py`` describes a record. Records are numbered from 1, and stored in a ring buffer: a new record overwrites the
oldest record. The records of one bucket are a chain, the newest record first. A chain ends at the first number that is
0, or is the number of an overwritten record. So an overwritten record need not be removed from its chain. The window
stores an id as its digest of 128 bits. Finding two ids with the same digest takes 2^64 tries, so such ids do not occur
by accident.

Only the holder of the memory may call these functions and methods.
"""

import struct
from hashlib import blake2b

from stock_service.trading.once import RECORD_BYTES
from stock_service.trading.shared.memory import WORD_BYTES, Memory

# Offsets of words in the window.
_IDS = 0  # number of ids so far, which is the number of the newest record
_BUCKETS = 1  # first bucket; a bucket is a word: the number of the first record of a chain

# Offsets of words in a record.
_KEY = 0  # two words: the digest of the id
_NEXT = 2  # number of the next record of the chain
_RECORD = 3  # first word of the record's bytes

_PADDED_WORDS = -(-RECORD_BYTES // WORD_BYTES)
_PADDED = struct.Struct(f"={_PADDED_WORDS}q")

_RECORD_WORDS = _RECORD + _PADDED_WORDS

_KEYS = struct.Struct("=qq")

Key = tuple[int, int]
"""Digest of a request id: 128 bits as two signed integers of 64 bits."""


def digest_of(key: str) -> Key:
    """Computes the digest of a request's key (``once.key_of``). The window stores the request's record under this
    digest.
    """
    first, second = _KEYS.unpack(blake2b(key.encode(), digest_size=_KEYS.size).digest())
    return first, second


def window_words(retry_window: int) -> int:
    """Returns the size, in words, of a window for ``retry_window`` ids."""
    return _BUCKETS + _buckets(retry_window) + retry_window * _RECORD_WORDS


def _buckets(retry_window: int) -> int:
    return 1 << retry_window.bit_length()  # more buckets than ids, so that chains are short


class RetryWindow:
    """Window of request ids in a ``Memory``. ``begin`` is the place of the window's first word. ``retry_window`` is the
    largest number of ids in the window.
    """

    def __init__(self, memory: Memory, begin: int, retry_window: int) -> None:
        self._words = memory.words
        self._at = begin
        self._most = retry_window
        self._mask = _buckets(retry_window) - 1
        self._records = begin + _BUCKETS + self._mask + 1

    def find(self, key: Key) -> bytes | None:
        """Returns the record of an id; None if the id is not in the window."""
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
        """Returns the changes that add a new id and its record, for ``Memory.commit``. In a full window these changes
        overwrite the record of the oldest id.
        """
        words = self._words
        number, bucket = words[self._at + _IDS] + 1, self._bucket(key)
        place = self._place(number)
        changes = [place + _KEY, key[0], place + _KEY + 1, key[1], place + _NEXT, words[bucket], bucket, number]
        padded = _PADDED.unpack(record.ljust(_PADDED.size, b"\0"))
        changes += [word for pair in enumerate(padded, place + _RECORD) for word in pair]
        return [*changes, self._at + _IDS, number]

    def _place(self, number: int) -> int:
        """Returns the place of the record with this number. A newer record may have overwritten the record."""
        return self._records + (number - 1) % self._most * _RECORD_WORDS

    def _bucket(self, key: Key) -> int:
        return self._at + _BUCKETS + (key[0] & self._mask)
