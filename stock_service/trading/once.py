"""Exactly once: a request with an id has one effect, however often it is sent.

A catalog remembers the reply of the first use of an id, in the same step that has the effect. What is remembered takes
little memory, and a store can keep it as it is:

    key      the id where it is ASCII, else its digest: 64 characters at most
    record   status u8, volume i64, sequence i64, big-endian; the length u8 and 24 bytes of what was asked for, or of
             its digest where that is longer

The window is bounded: the last ``RETRY_WINDOW`` ids, by when their first use ended. An older id counts as new.
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
"""How many request ids a catalog remembers: at most 25 MiB, and at 10,000 trades a second ten seconds of retries."""

Changed = tuple[Status, int, int]
"""How a change ended, the stock's volume afterwards (0: no stock), and the number of its commit (0: none)."""

_CONTENT_BYTES = 24
"""Content of more bytes is kept as a digest of so many: two that are alike are not met by accident."""

_RECORD = struct.Struct(f">Bqq{1 + _CONTENT_BYTES}p")

RECORD_BYTES = _RECORD.size

_STATUSES = {int(status): status for status in Status}  # three times as fast as Status(number)


class Once(NamedTuple):
    """A request that may be sent again: its id, of 64 characters at most, and a text of all that it asks for."""

    request_id: str
    content: str


def key_of(once: Once) -> str:
    """By what a request is remembered."""
    request_id = once.request_id
    if request_id.isascii():
        return request_id
    return "é" + blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()  # as no ASCII id is


def record_of(once: Once, changed: Changed) -> bytes:
    """What is remembered of a request: how it ended, and what it asked for."""
    return _RECORD.pack(*changed, _content(once))


def reply_of(record: bytes, once: Once) -> Changed:
    """How the first use ended. Raises InvalidRequest where that asked for something else."""
    status, volume, sequence, content = _RECORD.unpack(record)
    if content != _content(once):
        raise InvalidRequest(f"request_id {once.request_id!r} was used for another trade: a new one needs a new id")
    return _STATUSES[status], volume, sequence


def _content(once: Once) -> bytes:
    content = once.content.encode("utf-8", "surrogatepass")
    return content if len(content) <= _CONTENT_BYTES else blake2b(content, digest_size=_CONTENT_BYTES).digest()


class Remembered:
    """The records of the last ``window`` ids, by key. Reading is any thread's, keeping one thread's at a time."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._records: dict[str, bytes] = {}
        self._oldest_first: deque[str] = deque()
        self._until_packed = window // 2

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> bytes | None:
        """What is remembered under a key; None: nothing, or no longer."""
        return self._records.get(key)

    def keep(self, key: str, record: bytes) -> None:
        """Remembers a record under a key that has none, and forgets the oldest where there are too many."""
        self._records[key] = record
        self._oldest_first.append(key)
        if len(self._oldest_first) > self._window:
            del self._records[self._oldest_first.popleft()]
            self._until_packed -= 1
            if self._until_packed < 0:  # the places of those forgotten: a dictionary would double its memory for more
                self._records = dict(self._records)
                self._until_packed = self._window // 2


class OnceInMemory:
    """Answers each request once, for a catalog whose effects are in memory. Any thread's, several at once."""

    def __init__(self, window: int) -> None:
        self._remembered = Remembered(window)
        self._keeping = Lock()  # guards keeping in _remembered
        self._running: dict[str, Lock] = {}  # a first use's lock is held until it ends; setdefault and del are atomic

    def answer(self, once: Once, change: Callable[[], Changed]) -> Changed:
        """How the first use of an id ended: calls ``change`` for it, and never again within the window.

        Waits for a first use that runs, then raises InvalidRequest where that asked for something else. A ``change``
        that raises is forgotten, and whoever waits may try.
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
