"""Locks: mutual exclusion, and that neither readers nor writers starve."""

from contextlib import ExitStack, nullcontext
from threading import Condition, Event, Lock, Thread

import pytest

from stock_service.rpc.timeline import Timeline
from stock_service.trading.locking import LOCKINGS, Held, Locking, ReadWriteLock, stamped

WAIT_S = 10.0
"""A bound for what must not take long; only reached when something hangs."""

BARELY_S = 0.02
"""Long enough for a thread that is not held back to be seen going on."""

NAMES = ("A", "B")

APART = {(f"{one} A", f"{other} B") for one in ("read", "write") for other in ("read", "write")}
"""Accesses of two stocks."""

TOGETHER: dict[str, set[tuple[str, str]]] = {
    "mutex": set(),
    "per-stock": APART,
    "read-write": {("read A", "read A"), ("read A", "read B")},
    "two-level": {("read A", "read A"), *APART},
    "snapshot": {("read A", "read A"), ("read A", "write A"), ("write A", "read A"), *APART} - {("write A", "write B")},
}
"""Accesses that may be together, by strategy. All others are excluded."""

EVERY = ("write A", "write A")
"""Accesses that every strategy excludes. For a strategy without a row nothing else is known."""


def held(locking: Locking, what: str) -> Held | None:
    """``read A`` as the lock to hold."""
    kind, name = what.split()
    return locking.reading[name] if kind == "read" else locking.writing[name]


def enters(lock: Held | None, while_holding: Held | None) -> bool:
    """Tell whether another thread gets a lock while this one holds one; it gets it afterwards in any case."""
    inside = Event()

    def other() -> None:
        with ExitStack() as stack:
            if lock is not None:
                stack.enter_context(lock)
            inside.set()

    thread = Thread(target=other)
    with ExitStack() as stack:
        if while_holding is not None:
            stack.enter_context(while_holding)
        thread.start()
        together = inside.wait(BARELY_S)
    thread.join(WAIT_S)
    assert inside.is_set()
    return together


@pytest.mark.parametrize("second", ["read A", "write A", "read B", "write B"])
@pytest.mark.parametrize("first", ["read A", "write A"])
@pytest.mark.parametrize("name", LOCKINGS)
def test_who_excludes_whom(name: str, first: str, second: str) -> None:
    """Every strategy admits exactly the accesses that it states together, stamped or not. A waiting one gets in
    afterwards."""
    if name not in TOGETHER and (first, second) != EVERY:
        pytest.skip(f"TOGETHER has no row of {name}")
    for locking in (LOCKINGS[name](NAMES), stamped(LOCKINGS[name](NAMES), Timeline(1))):
        assert enters(held(locking, second), held(locking, first)) is ((first, second) in TOGETHER.get(name, ()))


@pytest.mark.parametrize("name", LOCKINGS)
def test_a_lock_is_let_go_by_an_error(name: str) -> None:
    """An error under a lock comes out, and the lock can be had again."""
    locking = LOCKINGS[name](NAMES)
    for what in ("read A", "write A") * 2:
        lock = held(locking, what)
        if lock is not None:
            with pytest.raises(ZeroDivisionError), lock:
                raise ZeroDivisionError


def test_a_writer_waits_for_the_last_reader() -> None:
    """A writer waits for the last reader, and not for the first to leave."""
    lock = ReadWriteLock()
    lock.reader.__enter__()
    lock.reader.__enter__()
    written = Event()

    def write() -> None:
        with lock.writer:
            written.set()

    writer = Thread(target=write)
    writer.start()
    lock.reader.__exit__(None, None, None)
    assert not written.wait(BARELY_S)
    lock.reader.__exit__(None, None, None)
    writer.join(WAIT_S)
    assert written.is_set()


class Relay:
    """Two threads that keep a lock wanted: each leaves it only when the other is there, as far as the lock allows it.

    A thread is there once it has the lock or, with ``when_asking``, once it asks for it. ``patience_s`` is the longest
    wait for the other thread, which the lock may keep out.
    """

    def __init__(self, *, when_asking: bool, patience_s: float) -> None:
        self._when_asking = when_asking
        self._patience_s = patience_s
        self._changed = Condition()  # guards _there and _ended
        self._there = 0
        self._ended = False

    def none_there(self) -> None:
        """Blocks until neither of the two is there."""
        with self._changed:
            self._changed.wait_for(lambda: self._there == 0)

    def lets_in(self, occupied: Held, wanted: Held, wait_s: float) -> bool:
        """Tell whether a third thread gets ``wanted`` with the two at ``occupied``; it gets it afterwards anyway."""
        inside = Event()

        def third() -> None:
            with wanted:
                inside.set()

        two = [Thread(target=self._occupy, args=(occupied,)) for _ in range(2)]
        for thread in two:
            thread.start()
        with self._changed:
            assert self._changed.wait_for(lambda: self._there > 0, WAIT_S)
        asking = Thread(target=third)
        asking.start()
        got_in = inside.wait(wait_s)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for thread in (*two, asking):
            thread.join(WAIT_S)
        assert inside.is_set()
        return got_in

    def _occupy(self, lock: Held) -> None:
        """One of the two threads: takes the lock again and again."""
        while not self._ended:
            if self._when_asking:
                self._count(1)
                with lock:
                    self._wait_for_the_other(leave=False)
                self._count(-1)
            else:
                with lock:
                    self._count(1)
                    self._wait_for_the_other(leave=True)

    def _wait_for_the_other(self, *, leave: bool) -> None:
        """Blocks until both are there. Leaves in the same moment, so that the other thread then waits in its turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._there == 2 or self._ended, self._patience_s)
            self._there -= leave
            self._changed.notify_all()

    def _count(self, by: int) -> None:
        with self._changed:
            self._there += by
            self._changed.notify_all()


class StarvedBy:
    """A lock that its holder gets only once no thread of a relay is there, as a lock that starves."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def __enter__(self) -> None:
        self._relay.none_there()

    def __exit__(self, *_error: object) -> None:
        pass


def test_a_writer_gets_in_between_readers() -> None:
    """Two readers, one of whom is always inside as far as the lock allows it, cannot keep a writer out."""
    lock = ReadWriteLock()
    assert Relay(when_asking=False, patience_s=BARELY_S / 4).lets_in(lock.reader, lock.writer, WAIT_S)


def test_a_reader_gets_in_between_writers() -> None:
    """Two writers, one of whom always waits while the other is inside, cannot keep a reader out."""
    lock = ReadWriteLock()
    assert Relay(when_asking=True, patience_s=BARELY_S / 4).lets_in(lock.writer, lock.reader, WAIT_S)


def test_a_lock_that_starves_is_found_out() -> None:
    """The relay keeps out writers of a lock that prefers readers, and readers of a lock that prefers writers."""
    relay = Relay(when_asking=False, patience_s=WAIT_S)
    assert not relay.lets_in(nullcontext(), StarvedBy(relay), BARELY_S)
    relay = Relay(when_asking=True, patience_s=WAIT_S)
    assert not relay.lets_in(Lock(), StarvedBy(relay), BARELY_S)
