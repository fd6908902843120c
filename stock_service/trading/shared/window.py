"""The window of request ids in shared memory: the last so many first uses, found by id and forgotten oldest first.

A use is a record: who asks for what, the reply once there is one, and what the answer has committed so far. Records
with the same hash are in a chain, and all are in a row by age. An id is kept as its digest of 128 bits. So two ids
that nobody has made alike on purpose never meet: finding two that do takes 2^64 tries.

Everything here is for who has the memory to itself.
"""

import struct
from dataclasses import dataclass
from hashlib import blake2b

from stock_service.trading.shared.memory import WORD_BYTES, Memory

CONTENT_BYTES_MAX = 352
"""What a request may take, pickled: a name of 64 characters of 4 bytes, with a quantity and a side, takes 323."""

REPLY_BYTES_MAX = 160
"""What a reply may take, pickled: that to a trade takes 104."""

# Words of the window itself, from where it begins.
_USES = 0  # first uses so far, which number them
_KEPT = 1  # records in use
_OLDEST, _NEWEST = 2, 3
_FREE = 4  # a record that was in use, the first of a chain by _NEXT
_FRESH = 5  # records that were ever in use
_BUCKETS = 6  # the first of the words that say where a chain begins

# Words of a record; 0 in place of another record is none.
_KEY, _KEY_MORE = 0, 1
USE = 2
"""The number of the use; 0 of a record that is not in use."""
_NEXT = 3
_OLDER, _NEWER = 4, 5
_CONTENT_BYTES = 6
_REPLY_BYTES = 7  # 0: there is none yet
CHANGED = 8
"""The place of the stock that the answer has changed; 0: none so far. The three words behind it are what it read there
before (price and volume), and the number of its commit."""
_BYTES = 12  # from here on the content, then the reply

_RECORD_WORDS = _BYTES + (CONTENT_BYTES_MAX + REPLY_BYTES_MAX) // WORD_BYTES

_KEYS = struct.Struct("qq")

Key = tuple[int, int]
"""The digest of an id."""


def key_of(request_id: str) -> Key:
    """What an id is known by."""
    digest = blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=_KEYS.size).digest()
    first, second = _KEYS.unpack(digest)
    return first, second


def window_words(retry_window: int) -> int:
    """The words that a window for so many ids takes."""
    return _BUCKETS + _buckets(retry_window) + retry_window * _RECORD_WORDS


def _buckets(retry_window: int) -> int:
    return 1 << retry_window.bit_length()  # at least as many as ids, so that chains are short


@dataclass(frozen=True, slots=True)
class Found:
    """A record as it stands."""

    record: int
    use: int
    content: bytes
    reply: bytes | None
    """None: the first use has not ended."""


class RetryWindow:
    """The window that begins at a word of the memory."""

    def __init__(self, memory: Memory, begin: int, retry_window: int) -> None:
        self._memory = memory
        self._words = memory.words
        self._at = begin
        self._most = retry_window
        self._mask = _buckets(retry_window) - 1
        self._records = begin + _BUCKETS + self._mask + 1

    def find(self, key: Key) -> Found | None:
        """The record of an id."""
        words = self._words
        record = words[self._bucket(key)]
        while record and (words[record + _KEY], words[record + _KEY_MORE]) != key:
            record = words[record + _NEXT]
        if not record:
            return None
        begin = (record + _BYTES) * WORD_BYTES
        content = bytes(self._memory.bytes[begin : begin + words[record + _CONTENT_BYTES]])
        begin += CONTENT_BYTES_MAX
        reply = bytes(self._memory.bytes[begin : begin + words[record + _REPLY_BYTES]])
        return Found(record, words[record + USE], content, reply or None)

    def next_use(self) -> int:
        """The number that ``add`` or ``take_over`` will give next: none was given before."""
        return self._words[self._at + _USES] + 1

    def add(self, key: Key, content: bytes) -> int:
        """A record for the first use of an id, which has none; forgets the oldest id where there is no room."""
        words, at = self._words, self._at
        if words[at + _KEPT] == self._most:
            self.remove(words[at + _OLDEST])
        record = words[at + _FREE]
        if record:
            changes = [at + _FREE, words[record + _NEXT]]
        else:
            record = self._records + words[at + _FRESH] * _RECORD_WORDS
            changes = [at + _FRESH, words[at + _FRESH] + 1]
        begin = (record + _BYTES) * WORD_BYTES
        self._memory.bytes[begin : begin + len(content)] = content
        bucket, newest, use = self._bucket(key), words[at + _NEWEST], self.next_use()
        changes += [record + _KEY, key[0], record + _KEY_MORE, key[1], record + USE, use, at + _USES, use]
        changes += [record + _NEXT, words[bucket], bucket, record]
        changes += [record + _OLDER, newest, record + _NEWER, 0, at + _NEWEST, record]
        changes += [newest + _NEWER if newest else at + _OLDEST, record, at + _KEPT, words[at + _KEPT] + 1]
        changes += [record + _CONTENT_BYTES, len(content), record + _REPLY_BYTES, 0, record + CHANGED, 0]
        self._memory.commit(changes)
        return record

    def take_over(self, record: int) -> None:
        """Numbers a use anew whose process was killed in it."""
        use = self.next_use()
        self._memory.commit([record + USE, use, self._at + _USES, use])

    def set_reply(self, record: int, reply: bytes) -> None:
        """The reply of a first use, which has ended."""
        begin = (record + _BYTES) * WORD_BYTES + CONTENT_BYTES_MAX
        self._memory.bytes[begin : begin + len(reply)] = reply
        self._memory.commit([record + _REPLY_BYTES, len(reply)])

    def remove(self, record: int) -> None:
        """Forgets an id."""
        words, at = self._words, self._at
        older, newer = words[record + _OLDER], words[record + _NEWER]
        link = self._bucket((words[record + _KEY], words[record + _KEY_MORE]))
        while words[link] != record:
            link = words[link] + _NEXT
        changes = [link, words[record + _NEXT], record + _NEXT, words[at + _FREE], at + _FREE, record]
        changes += [older + _NEWER if older else at + _OLDEST, newer]
        changes += [newer + _OLDER if newer else at + _NEWEST, older]
        changes += [record + USE, 0, at + _KEPT, words[at + _KEPT] - 1]
        self._memory.commit(changes)

    def _bucket(self, key: Key) -> int:
        return self._at + _BUCKETS + (key[0] & self._mask)
