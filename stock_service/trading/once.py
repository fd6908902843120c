"""Exactly once: a request with an id has one effect, even if it is sent several times.

A catalog remembers the reply to the first use of an id, in the same atomic step that has the effect. It keeps a record
under a key. Both are small, and a store keeps both unchanged:

    key      the id where it is ASCII, else its digest: 64 characters at most
    record   status u8, volume i64, sequence i64, big-endian; the length u8 and 24 bytes of the request's content, or
             of the content's digest where the content is longer

The number of ids is limited. The *window* is the last ``RETRY_WINDOW`` ids, in the order in which their first uses
ended. An older id counts as new.
"""

import struct
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import NamedTuple

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading.model import Status

RETRY_WINDOW = 100_000
"""Number of request ids that a catalog remembers: at most 25 MiB; ten seconds of retries at 10,000 trades a second."""

Changed = tuple[Status, int, int]
"""Result of a change: its status, the stock's volume afterwards (0: no stock), its commit's number (0: none)."""

_CONTENT_BYTES = 24
"""Largest content that is kept as it is. Longer content is kept as a digest of this size, long enough that two texts
do not have the same digest by accident."""

_RECORD = struct.Struct(f">Bqq{1 + _CONTENT_BYTES}p")

RECORD_BYTES = _RECORD.size

_STATUSES = {int(status): status for status in Status}  # three times as fast as Status(number)


class Once(NamedTuple):
    """A request that may be sent again: the request's id, of at most 64 characters, and a text of the request's whole
    content.
    """

    request_id: str
    content: str


def key_of(once: Once) -> str:
    """The key under which a request is remembered."""
    request_id = once.request_id
    if request_id.isascii():
        return request_id
    return "é" + blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()  # unlike an ASCII id


def record_of(once: Once, changed: Changed) -> bytes:
    """The record of a request: its result and its content."""
    return _RECORD.pack(*changed, _content(once))


def reply_of(record: bytes, once: Once) -> Changed:
    """The result of the first use. Raises InvalidRequest if the first use had other content."""
    status, volume, sequence, content = _RECORD.unpack(record)
    if content != _content(once):
        raise InvalidRequest(f"request_id {once.request_id!r} was used for another trade: a new one needs a new id")
    return _STATUSES[status], volume, sequence


def _content(once: Once) -> bytes:
    content = once.content.encode("utf-8", "surrogatepass")
    return content if len(content) <= _CONTENT_BYTES else blake2b(content, digest_size=_CONTENT_BYTES).digest()


class Remembered:
    """The records of the last ``window`` ids, by key. Any thread may read; one thread at a time may keep."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._records: dict[str, bytes] = {}
        self._oldest_first: deque[str] = deque()
        self._until_packed = window // 2

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> bytes | None:
        """The record under a key; None if there is no record, or it was forgotten."""
        return self._records.get(key)

    def keep(self, key: str, record: bytes) -> None:
        """Remembers a record under a new key. If there are too many records, forgets the oldest record."""
        self._records[key] = record
        self._oldest_first.append(key)
        if len(self._oldest_first) > self._window:
            del self._records[self._oldest_first.popleft()]
            self._until_packed -= 1
            if self._until_packed < 0:  # a copy drops the forgotten ids' places: else the dictionary doubles its memory
                self._records = dict(self._records)
                self._until_packed = self._window // 2


class OnceInMemory:
    """Answers each request once, for a catalog in memory. Any number of threads may call ``answer`` at once."""

    def __init__(self, window: int) -> None:
        self._remembered = Remembered(window)
        self._keeping = Lock()  # guards keeping in _remembered
        self._running: dict[str, Lock] = {}  # a first use's lock is held until it ends; setdefault and del are atomic

    def answer(self, once: Once, change: Callable[[], Changed]) -> Changed:
        """The result of the first use of an id. Calls ``change`` at the first use, and not again within the window.

        Waits for the end of a first use that still runs. Raises InvalidRequest if the first use had other content. If
        ``change`` raises, the use is forgotten, and a waiting use may try.
        """
        key = key_of(once)
        ended = Lock()
        ended.acquire()
        while (running := self._running.setdefault(key, ended)) is not ended:
            with running:
                pass
        try:
            record = self._remembered.get(key)
            if record is not None:
                return reply_of(record, once)
            changed = change()
            record = record_of(once, changed)
            with self._keeping:
                self._remembered.keep(key, record)
            return changed
        finally:
            del self._running[key]
            ended.release()
