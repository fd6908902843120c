"""Exactly-once requests: a request with an id has one effect, even if a client sends it several times.

A catalog remembers the reply to the first use of an id, in the same atomic step that has the effect. For this reply the
catalog stores a record under a key. Records and keys are small, and have the same format in every store:

    key      the id if it is ASCII, otherwise a digest of the id: 64 characters at most
    record   status u8, volume i64, sequence i64, big-endian; then a length u8 and 24 bytes, with the request's content,
             or with a digest of longer content

The number of remembered ids is limited. The *window* contains the last ``RETRY_WINDOW`` ids, in the order in which the
first uses of the ids ended. An id that is no longer in the window counts as new.
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
"""Default number of request ids that a catalog remembers: the ids of ten seconds at 10,000 trades a second. Their
records and keys take at most 25 MiB.
"""

Changed = tuple[Status, int, int]
"""Result of a change: status, volume of the stock after the change (0 for an unknown stock), and number of the commit
(0 without a commit).
"""

_CONTENT_BYTES = 24
"""Largest size, in bytes, of a request's content that a record stores unchanged. Instead of longer content, the record
stores a digest of this size. Two different contents practically never have the same digest.
"""

_RECORD = struct.Struct(f">Bqq{1 + _CONTENT_BYTES}p")

RECORD_BYTES = _RECORD.size

_STATUSES = {int(status): status for status in Status}  # three times as fast as Status(number)


class Once(NamedTuple):
    """Identity of a request that a client may send again: the request id, of at most 64 characters, and a text with the
    whole content of the request.
    """

    request_id: str
    content: str


def key_of(once: Once) -> str:
    """Returns the key under which a catalog stores the record of a request."""
    request_id = once.request_id
    if request_id.isascii():
        return request_id
    return (
        "é" + blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    )  # no ASCII id contains é


def record_of(once: Once, changed: Changed) -> bytes:
    """Encodes the record that a catalog stores for a request: the result ``changed``, and the request's content."""
    return _RECORD.pack(*changed, _content(once))


def reply_of(record: bytes, once: Once) -> Changed:
    """Decodes the result of the request that first used the id. Raises InvalidRequest if that request had other content
    than ``once``.
    """
    status, volume, sequence, content = _RECORD.unpack(record)
    if content != _content(once):
        raise InvalidRequest(f"request_id {once.request_id!r} was used for another trade: a new one needs a new id")
    return _STATUSES[status], volume, sequence


def _content(once: Once) -> bytes:
    content = once.content.encode("utf-8", "surrogatepass")
    return content if len(content) <= _CONTENT_BYTES else blake2b(content, digest_size=_CONTENT_BYTES).digest()


class Remembered:
    """The records of the last ``window`` ids, by key. Any thread may call ``get``; only one thread at a time may call
    ``keep``.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._records: dict[str, bytes] = {}
        self._oldest_first: deque[str] = deque()
        self._until_packed = window // 2

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> bytes | None:
        """Returns the record under a key; None if no record is in the window."""
        return self._records.get(key)

    def keep(self, key: str, record: bytes) -> None:
        """Adds a record under a key that has no record. If the window is full, removes the oldest record."""
        self._records[key] = record
        self._oldest_first.append(key)
        if len(self._oldest_first) > self._window:
            del self._records[self._oldest_first.popleft()]
            self._until_packed -= 1
            if self._until_packed < 0:  # a copy lacks the places of removed keys, which would double the memory
                self._records = dict(self._records)
                self._until_packed = self._window // 2


class OnceInMemory:
    """Exactly-once answers for a catalog in memory: if an id is remembered, the request gets the first reply.
    Thread-safe.
    """

    def __init__(self, window: int) -> None:
        self._remembered = Remembered(window)
        self._keeping = Lock()  # guards ``_remembered.keep``
        self._running: dict[str, Lock] = {}  # a lock for each running use, by key; held until the use ends

    def answer(self, once: Once, change: Callable[[], Changed]) -> Changed:
        """Returns the result of the first use of an id. Calls ``change`` only for the first use within the window.

        Blocks while another use of the id runs. Raises InvalidRequest if the first use had other content. If ``change``
        raises an exception, the id stays unused, and another use that waits calls its own ``change``.
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
