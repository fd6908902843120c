"""Locking strategies: the lock that a thread must hold to read, or to write, a stock of a catalog in memory.

The catalog's entries are immutable values, and a change replaces a whole entry. A strategy decides which threads
exclude each other when they read or change entries. Under a lock no thread does I/O, encodes or logs.

A strategy has two tables with a lock for each stock: one table for reading, and one table for writing. So a request
finds its lock by one dictionary look-up, and then calls only the functions of this lock. The locks are not re-entrant.
A thread waits for a lock without a timeout, since the work under a lock takes microseconds.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import count
from threading import Lock
from types import TracebackType
from typing import Protocol, TypeVar

from stock_service.rpc.metrics import SKIPPED, Observe, now_ns
from stock_service.rpc.timeline import Timeline

Held = AbstractContextManager[object]
"""Lock that a thread holds within a ``with`` statement."""

SomeHeld = TypeVar("SomeHeld", bound=Held | None)

Note = Callable[[int, int], object]
"""Function that records an acquisition of a lock: the time when the thread asked for the lock, and the time when it had
the lock, in nanoseconds on the same clock. Called while the thread holds the lock.
"""


class Locking(Protocol):
    """Locking strategy. The constructor takes the names of all stocks. No stock can be added later."""

    @property
    def reading(self) -> Mapping[str, Held | None]:
        """Locks that a thread must hold while it reads a stock, by the stock's name; None for a stock that is read
        without a lock.
        """

    @property
    def writing(self) -> Mapping[str, Held]:
        """Locks that a thread must hold while it reads, changes and stores a stock, by the stock's name."""


class Mutex:
    """Locking by one lock for the whole catalog. The lock guards every entry."""

    def __init__(self, names: Iterable[str]) -> None:
        self.reading = self.writing = dict.fromkeys(names, Lock())


class PerStock:
    """Locking by one lock for each stock. A stock's lock guards the stock's entry."""

    def __init__(self, names: Iterable[str]) -> None:
        self.reading = self.writing = {name: Lock() for name in names}


class ReadWrite:
    """Locking by one reader-writer lock for the whole catalog. The lock guards every entry."""

    def __init__(self, names: Iterable[str]) -> None:
        lock = ReadWriteLock()
        self.reading = dict.fromkeys(names, lock.reader)
        self.writing = dict.fromkeys(names, lock.writer)


class TwoLevel:
    """Locking by a reader-writer lock on the map of stocks, and a reader-writer lock on each entry.

    The map's lock guards the set of stocks. Every request first acquires the map's lock. Requests acquire this lock
    only for reading, since no stock is added or removed while the service runs. An entry's lock guards the entry.
    """

    def __init__(self, names: Iterable[str]) -> None:
        map_lock = ReadWriteLock()
        entry_locks = {name: ReadWriteLock() for name in names}
        self.reading = {name: _Both(map_lock.reader, lock.reader) for name, lock in entry_locks.items()}
        self.writing = {name: _Both(map_lock.reader, lock.writer) for name, lock in entry_locks.items()}


class Snapshot:
    """Locking of writers only. Readers read the current, immutable entry without a lock. One lock guards all writes.

    Readers need no lock because reading and writing a dictionary's value are both atomic in CPython.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.reading = dict.fromkeys(names)
        self.writing = dict.fromkeys(names, Lock())


class ReadWriteLock:
    """Reader-writer lock: readers share the lock, and a writer excludes all other threads. Neither readers nor writers
    starve, since readers that come after a waiting writer must wait for this writer.

    The algorithm is the no-starve solution of A. Downey, *The Little Book of Semaphores*, 4.2.5. A writer holds the
    lock ``turnstile`` while it waits and works; readers only acquire and release ``turnstile``. One writer, or all
    readers together, hold the lock ``room``: the first reader acquires ``room``, and the last reader releases it.
    """

    def __init__(self) -> None:
        self._turnstile = Lock()
        self._room = Lock()
        self._count_lock = Lock()  # guards _count
        self._count = 0
        self.reader: Held = _Half(self._acquire_reading, self._release_reading)
        """Lock that a thread holds while it reads. Several threads may hold this lock at a time."""
        self.writer: Held = _Half(self._acquire_writing, self._release_writing)
        """Lock that a thread holds while it writes. No other thread then holds ``reader`` or ``writer``."""

    def _acquire_reading(self) -> None:
        with self._turnstile, self._count_lock:
            if self._count == 0:
                self._room.acquire()
            self._count += 1

    def _release_reading(self) -> None:
        with self._count_lock:
            self._count -= 1
            if self._count == 0:
                self._room.release()

    def _acquire_writing(self) -> None:
        self._turnstile.acquire()
        self._room.acquire()

    def _release_writing(self) -> None:
        self._room.release()
        self._turnstile.release()


class _Half:
    """Lock of the readers, or of the writers, of a reader-writer lock. Used in a ``with`` statement."""

    __slots__ = ("_acquire", "_release")

    def __init__(self, acquire: Callable[[], None], release: Callable[[], None]) -> None:
        self._acquire = acquire
        self._release = release

    def __enter__(self) -> None:
        self._acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._release()


class _Both:
    """Two locks that a thread holds together. The thread acquires them in the given order, and releases them in the
    opposite order.
    """

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


class Timed:
    """Wrapper of a locking strategy that calls ``note`` for each acquisition of a lock.

    A read without a lock does not count as an acquisition. Two locks that a thread acquires together, as in
    ``TwoLevel``, count as one acquisition.
    """

    def __init__(self, locking: Locking, note: Note, clock_ns: Callable[[], int] = now_ns) -> None:
        self.reading = {
            name: None if lock is None else _TimedLock(lock, note, clock_ns) for name, lock in locking.reading.items()
        }
        self.writing = {name: _TimedLock(lock, note, clock_ns) for name, lock in locking.writing.items()}


class _TimedLock:
    """Wrapper of a lock. Calls ``note`` with the two times of every acquisition."""

    __slots__ = ("_enter", "_exit", "_note", "_now_ns")

    def __init__(self, lock: Held, note: Note, clock_ns: Callable[[], int]) -> None:
        self._enter, self._exit = lock.__enter__, lock.__exit__
        self._note, self._now_ns = note, clock_ns

    def __enter__(self) -> None:
        asked_ns = self._now_ns()
        self._enter()
        self._note(asked_ns, self._now_ns())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exit(kind, error, at)


def stamped(locking: Locking, timeline: Timeline) -> Locking:
    """Wraps a locking strategy. The result records each acquisition of a lock in the timeline, for the request that the
    thread runs.
    """
    local = timeline.local
    return Timed(locking, lambda asked_ns, had_ns: local.stamper.acquired(asked_ns, had_ns), timeline.now_ns)


class Sampled:
    """Wrapper of a locking strategy. Passes the time that a thread waited for a lock, in seconds, to ``observe``: for
    one of ``metrics.ONE_IN`` acquisitions.
    """

    def __init__(self, locking: Locking, observe: Observe) -> None:
        timed = Timed(
            locking, lambda asked_ns, had_ns: observe((had_ns - asked_ns) / 1e9)
        )  # keeps the lock 1 µs longer
        number = count().__next__
        self.reading = _Some(locking.reading, timed.reading, number)
        self.writing = _Some(locking.writing, timed.writing, number)


class _Some(dict[str, SomeHeld]):
    """Table of locks. One of ``metrics.ONE_IN`` look-ups returns a lock that measures the wait. The other look-ups
    return the plain lock.
    """

    def __init__(self, plain: Mapping[str, SomeHeld], timed: Mapping[str, SomeHeld], number: Callable[[], int]) -> None:
        super().__init__(plain)
        self._plain, self._timed, self._number = plain, timed, number

    def __getitem__(self, name: str) -> SomeHeld:
        return self._plain[name] if self._number() & SKIPPED else self._timed[name]


LOCKINGS: dict[str, Callable[[Iterable[str]], Locking]] = {
    "mutex": Mutex,
    "per-stock": PerStock,
    "read-write": ReadWrite,
    "two-level": TwoLevel,
    "snapshot": Snapshot,
}
"""Constructor of every strategy, by the strategy's name on the command line (``--locking``)."""
