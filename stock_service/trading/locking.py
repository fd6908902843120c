"""The locking strategies: which lock a reader and a writer of one stock must hold.

The catalog's entries are immutable values, replaced whole. A strategy decides who excludes whom while an entry is read,
and while one is read, changed and stored. Nothing else happens under a lock: no I/O, no encoding, no logging.

A strategy hands out the lock to hold as a context manager, or None where a reader needs none. All may be used from any
thread; none is re-entrant. Waits are not bounded: what happens under a lock takes microseconds.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import count
from threading import Lock
from types import TracebackType
from typing import Protocol

from stock_service.rpc.metrics import SKIPPED, Observe, now_ns
from stock_service.rpc.timeline import Timeline

Held = AbstractContextManager[object]
"""A lock, to be held with ``with``."""


class Locking(Protocol):
    """Which lock to hold; made from the names of all stocks, which are fixed from then on.

    What is handed out for a name may be kept, and held any number of times.
    """

    def reading(self, name: str) -> Held | None:
        """What to hold while this stock is read; None: nothing."""

    def writing(self, name: str) -> Held:
        """What to hold while this stock is read, changed and stored."""


class Mutex:
    """One lock for the whole catalog. Guards: every entry."""

    def __init__(self, names: Iterable[str]) -> None:
        self._lock = Lock()

    def reading(self, name: str) -> Held:
        return self._lock

    def writing(self, name: str) -> Held:
        return self._lock


class PerStock:
    """One lock for each stock. Guards: that stock's entry."""

    def __init__(self, names: Iterable[str]) -> None:
        self._locks = {name: Lock() for name in names}

    def reading(self, name: str) -> Held:
        return self._locks[name]

    def writing(self, name: str) -> Held:
        return self._locks[name]


class ReadWrite:
    """One reader-writer lock for the whole catalog. Guards: every entry."""

    def __init__(self, names: Iterable[str]) -> None:
        self._lock = ReadWriteLock()

    def reading(self, name: str) -> Held:
        return self._lock.reader

    def writing(self, name: str) -> Held:
        return self._lock.writer


class TwoLevel:
    """A reader-writer lock on the map of stocks, and one on each entry.

    The map's lock guards which stocks exist. It is taken first, and only for reading: stocks neither come nor go while
    the service runs. An entry's lock guards that entry.
    """

    def __init__(self, names: Iterable[str]) -> None:
        map_lock = ReadWriteLock()
        entry_locks = {name: ReadWriteLock() for name in names}
        self._reading = {name: _Both(map_lock.reader, lock.reader) for name, lock in entry_locks.items()}
        self._writing = {name: _Both(map_lock.reader, lock.writer) for name, lock in entry_locks.items()}

    def reading(self, name: str) -> Held:
        return self._reading[name]

    def writing(self, name: str) -> Held:
        return self._writing[name]


class Snapshot:
    """Readers take the immutable entry as it stands, without a lock; writers share one mutex. Guards: storing entries.

    Sound because reading a dictionary's value and storing one are each atomic in CPython.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._lock = Lock()

    def reading(self, name: str) -> None:
        return None

    def writing(self, name: str) -> Held:
        return self._lock


class ReadWriteLock:
    """Readers share, a writer excludes all; neither starves, since a waiting writer stops the readers behind it.

    The no-starve solution of A. Downey, *The Little Book of Semaphores*, 4.2.5. A writer holds the turnstile while it
    waits and works; readers only pass through it. The room is held by one writer, or by the readers together: the first
    takes it and the last gives it back.
    """

    def __init__(self) -> None:
        self._turnstile = Lock()
        self._room = Lock()
        self._count_lock = Lock()  # guards _count
        self._count = 0
        self.reader: Held = _Reader(self)
        self.writer: Held = _Writer(self)

    def acquire_reading(self) -> None:
        with self._turnstile, self._count_lock:
            if self._count == 0:
                self._room.acquire()
            self._count += 1

    def release_reading(self) -> None:
        with self._count_lock:
            self._count -= 1
            if self._count == 0:
                self._room.release()

    def acquire_writing(self) -> None:
        self._turnstile.acquire()
        self._room.acquire()

    def release_writing(self) -> None:
        self._room.release()
        self._turnstile.release()


class _Reader:
    """A reader-writer lock as one reader holds it."""

    __slots__ = ("_lock",)

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire_reading()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release_reading()


class _Writer:
    """A reader-writer lock as a writer holds it."""

    __slots__ = ("_lock",)

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire_writing()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release_writing()


class _Both:
    """Two locks held together: taken in the order given, let go in the other."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Held, second: Held) -> None:
        self._first = first
        self._second = second

    def __enter__(self) -> None:
        self._first.__enter__()
        self._second.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._second.__exit__(kind, error, at)
        self._first.__exit__(kind, error, at)


class Stamped:
    """Another strategy, with each acquisition noted in a timeline, for the request of the thread that acquires.

    Where a reader needs no lock, nothing is noted. Taking two locks together, as ``TwoLevel`` does, is one acquisition.
    """

    def __init__(self, locking: Locking, names: Iterable[str], timeline: Timeline) -> None:
        reading = {name: locking.reading(name) for name in names}
        self._reading = {name: None if lock is None else _StampedLock(lock, timeline) for name, lock in reading.items()}
        self._writing = {name: _StampedLock(locking.writing(name), timeline) for name in reading}

    def reading(self, name: str) -> Held | None:
        return self._reading[name]

    def writing(self, name: str) -> Held:
        return self._writing[name]


class _StampedLock:
    """A lock whose every acquisition is noted in a timeline."""

    __slots__ = ("_enter", "_exit", "_local", "_now_ns")

    def __init__(self, lock: Held, timeline: Timeline) -> None:
        self._enter = lock.__enter__
        self._exit = lock.__exit__
        self._local = timeline.local
        self._now_ns = timeline.now_ns

    def __enter__(self) -> None:
        asked_ns = self._now_ns()
        self._enter()
        acquired_ns = self._now_ns()
        self._local.stamper.acquired(asked_ns, acquired_ns)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exit(kind, error, at)


class Sampled:
    """Any strategy, of whose locks some acquisitions are timed: one in ``metrics.ONE_IN``."""

    def __init__(self, locking: Locking, names: Iterable[str], observe: Observe) -> None:
        reading = {name: locking.reading(name) for name in names}
        self._reading = reading
        self._writing = {name: locking.writing(name) for name in reading}
        self._timed_reading = {
            name: None if lock is None else _TimedLock(lock, observe) for name, lock in reading.items()
        }
        self._timed_writing = {name: _TimedLock(lock, observe) for name, lock in self._writing.items()}
        self._number = count().__next__

    def reading(self, name: str) -> Held | None:
        return self._reading[name] if self._number() & SKIPPED else self._timed_reading[name]

    def writing(self, name: str) -> Held:
        return self._writing[name] if self._number() & SKIPPED else self._timed_writing[name]


class _TimedLock:
    """A lock of which every acquisition is timed."""

    __slots__ = ("_enter", "_exit", "_observe")

    def __init__(self, lock: Held, observe: Observe) -> None:
        self._enter, self._exit = lock.__enter__, lock.__exit__
        self._observe = observe

    def __enter__(self) -> None:
        asked_ns = now_ns()
        self._enter()
        self._observe((now_ns() - asked_ns) / 1e9)  # some 1 µs under the lock

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exit(kind, error, at)


LOCKINGS: dict[str, Callable[[Iterable[str]], Locking]] = {
    "mutex": Mutex,
    "per-stock": PerStock,
    "read-write": ReadWrite,
    "two-level": TwoLevel,
    "snapshot": Snapshot,
}
"""Every strategy by the name that ``--locking`` takes."""
