"""Catalogs with a race planted in each, the ``unlocked`` one first: the check must catch every one, every time.

Each hands over to another thread at the point where the mistake does harm, so that catching it takes no luck.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import Condition, Lock
from types import TracebackType

from stock_service.trading.catalog import Catalog, MemoryCatalog, Version
from stock_service.trading.locking import Held, Locking, ReadWriteLock
from stock_service.trading.model import Status, Stock
from stock_service.trading.once import Changed
from tests.races.interleaving import (
    Change,
    Handoff,
    KnownStep,
    OneLock,
    PlantedCatalog,
    Read,
    Replay,
    Stepping,
    Store,
    change,
    change_unlocked,
    field_catalog,
    read,
    replay,
)

MakeCatalog = Callable[[Iterable[Stock], Handoff], Catalog]


# ---- changes


def let_go_before_the_write(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """The lock guards reading and deciding, not storing."""
    with store.lock:
        version = store.versions[name]
        stock, status = step(version[0])
        if stock is version[0]:
            return version, status
        version = (stock, store.number())
    store.handoff.meet(name)
    store.versions[name] = version
    return version, status


def check_then_act(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """The limit is checked under a lock, and the volume added under a lock, but in two steps."""
    with store.lock:
        before = store.versions[name]
        stock, status = step(before[0])
    if stock is before[0]:
        return before, status
    store.handoff.meet(name)
    with store.lock:
        now = store.versions[name][0]
        volume = now.volume + stock.volume - before[0].volume
        price_cents = now.price_cents if volume > now.volume else stock.price_cents
        version = store.versions[name] = (Stock(name, price_cents, now.volume_limit, volume), store.number())
    return version, status


def volume_in_two_steps(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """``volume += quantity`` without a lock: read, added and stored apart; the price is kept as it should be."""
    before = store.versions[name]
    stock, status = step(before[0])
    if stock is before[0]:
        return before, status
    traded = stock.volume > before[0].volume
    if traded:
        store.handoff.meet(name)
    with store.lock:
        now = store.versions[name][0]
        price_cents, volume = (now.price_cents, stock.volume) if traded else (stock.price_cents, now.volume)
        version = store.versions[name] = (Stock(name, price_cents, now.volume_limit, volume), store.number())
    return version, status


def update_lost_under_a_trade(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """A trade writes back the price that it read before it had the lock."""
    price_cents = store.versions[name][0].price_cents
    store.handoff.meet(name)
    with store.lock:
        version = store.versions[name]
        stock, status = step(version[0])
        if stock.volume > version[0].volume:
            stock = Stock(name, price_cents, stock.volume_limit, stock.volume)
        if stock is not version[0]:
            version = store.versions[name] = (stock, store.number())
        return version, status


def number_from_two_steps(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """The number of a commit is read and raised apart, after the lock."""
    with store.lock:
        version = store.versions[name]
        stock, status = step(version[0])
        if stock is version[0]:
            return version, status
        store.versions[name] = (stock, store.last_commit + 1)
    sequence = store.last_commit + 1
    store.handoff.meet("commits")
    store.last_commit = sequence
    return (stock, sequence), status


def number_before_the_lock(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """Commits are numbered in the order in which they asked for the lock, not in which they got it."""
    with store.lock:
        stock, status = step(store.versions[name][0])
        if stock is store.versions[name][0]:
            return store.versions[name], status
    if stock.volume_limit < 10**9:  # no room may be lost meanwhile: not the fault here
        return change(store, name, step)
    sequence = store.number()
    store.handoff.meet(name)
    with store.lock:
        stock, status = step(store.versions[name][0])
        version = store.versions[name] = (stock, sequence)
        return version, status


def refusal_takes_a_number(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """A number is taken before it is known whether there will be a commit."""
    with store.lock:
        sequence = store.number()
        version = store.versions[name]
        stock, status = step(version[0])
        if stock is not version[0]:
            version = store.versions[name] = (stock, sequence)
        return version, status


def published_before_its_number(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """Readers, who take no lock, see the new stock with the old number first."""
    with store.lock:
        version = store.versions[name]
        stock, status = step(version[0])
        if stock is not version[0]:
            store.versions[name] = (stock, version[1])
            store.handoff.wait(f"read {name}")
            version = store.versions[name] = (stock, store.number())
        return version, status


def reply_before_the_commit(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """Writers see the commit at once, readers when the next write of any stock makes it theirs."""
    with store.lock:
        store.cache.update(store.versions)
        return change_unlocked(store, name, step)


def forgets_the_cache_late(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """A right change; what readers keep is thrown away after it, when one may be about to keep the old again."""
    done = change(store, name, step)
    store.cache.pop(name, None)
    return done


# ---- reads


def torn(store: Store, name: str) -> Version:
    """The price of one moment, the volume and the number of another."""
    with store.lock:
        price_cents = store.versions[name][0].price_cents
    store.handoff.wait(name)
    with store.lock:
        stock, sequence = store.versions[name]
    return Stock(name, price_cents, stock.volume_limit, stock.volume), sequence


def cached(store: Store, name: str) -> Version:
    """Keeps the read value, which may be old by then."""
    version = store.cache.get(name)
    if version is None:
        version = read(store, name)
        store.handoff.wait(name)
        store.cache[name] = version
    return version


def committed_later(store: Store, name: str) -> Version:
    """The stock as readers of ``reply_before_the_commit`` see it."""
    with store.lock:
        return store.cache.get(name) or store.versions[name]


def without_a_lock(store: Store, name: str) -> Version:
    """Reads without a lock, as the snapshot strategy does. Right only while stored values are whole."""
    return store.versions[name]


# ---- retries


def executed_twice(store: Store, request_id: str, answer: Callable[[], Changed]) -> Changed:
    """Looks for a first use, and notes its own only at the end."""
    if request_id in store.replies:
        return store.replies[request_id]
    store.handoff.meet(request_id)
    reply = answer()
    store.replies[request_id] = reply
    return reply


def executed_twice_in_silence(store: Store, request_id: str, answer: Callable[[], Changed]) -> Changed:
    """The same, but the second use gets the reply of the first."""
    known = request_id in store.replies
    if not known:
        store.handoff.meet(request_id)
        store.replies.setdefault(request_id, answer())
    return store.replies[request_id]


def refusals_forgotten(store: Store, request_id: str, answer: Callable[[], Changed]) -> Changed:
    """Only a trade that was done is replayed. A refused one is tried again."""
    with store.replies_lock:
        if request_id in store.replies:
            return store.replies[request_id]
        reply = answer()
        if reply[0] is Status.OK:
            store.replies[request_id] = reply
        return reply


# ---- locks


class TwoLocksForOneName(dict[str, Held]):
    """Table of writers' locks that makes a lock when it is needed and drops it afterwards, though other threads may
    wait for it."""

    def __init__(self, handoff: Handoff) -> None:
        super().__init__()
        self._handoff = handoff
        self._locks: dict[str, Lock] = {}
        self.reading: Mapping[str, Held | None] = defaultdict(lambda: None)
        self.writing = self

    def __missing__(self, name: str) -> Held:
        lock = self._locks.get(name)
        if lock is None:
            lock = Lock()
            self._handoff.meet(f"lock {name}")
            self._locks[name] = lock
        return _Between(lock.acquire, partial(self._drop, name, lock))

    def _drop(self, name: str, lock: Lock) -> None:
        self._locks.pop(name, None)
        lock.release()


class LeakyReadWriteLock:
    """A reader-writer lock that forgets one of its two rules."""

    def __init__(self, *, writers_wait: bool, readers_wait: bool) -> None:
        self._writers_wait = writers_wait
        self._readers_wait = readers_wait
        self._changed = Condition()  # guards _readers and _writers
        self._readers = 0
        self._writers = 0
        self.reader: Held = _Between(self._reader_in, self._reader_out)
        self.writer: Held = _Between(self._writer_in, self._writer_out)

    def _reader_in(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not (self._readers_wait and self._writers))
            self._readers += 1

    def _reader_out(self) -> None:
        with self._changed:
            self._readers -= 1
            self._changed.notify_all()

    def _writer_in(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._writers and not (self._writers_wait and self._readers))
            self._writers += 1

    def _writer_out(self) -> None:
        with self._changed:
            self._writers -= 1
            self._changed.notify_all()


class _Between(AbstractContextManager[object]):
    """Calls one function at the start of a block and another at its end."""

    def __init__(self, enter: Callable[[], object], leave: Callable[[], object]) -> None:
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()


# ---- the table


def _stepping(make: Callable[[Handoff], Locking]) -> MakeCatalog:
    """The real catalog under a bad strategy."""
    return lambda stocks, handoff: Stepping(MemoryCatalog(stocks, lambda _: make(handoff)), handoff)


def _fields(make: Callable[[], Locking], *, writer_waits: bool = False) -> MakeCatalog:
    """A catalog that needs its readers kept out, under a strategy that does not."""
    return lambda stocks, handoff: field_catalog(stocks, lambda _: make(), handoff, writer_waits=writer_waits)


def _planted(read: Read = read, change: Change = change, replay: Replay = replay) -> MakeCatalog:
    """A right catalog with one faulty method."""
    return lambda stocks, handoff: PlantedCatalog(stocks, handoff, read=read, change=change, replay=replay)


def _read_lock_alone(_handoff: Handoff) -> Locking:
    lock = ReadWriteLock()
    return OneLock(lock.reader, lock.reader)


def _leaky(*, writers_wait: bool, readers_wait: bool) -> Locking:
    lock = LeakyReadWriteLock(writers_wait=writers_wait, readers_wait=readers_wait)
    return OneLock(lock.reader, lock.writer)


PLANTED: dict[str, MakeCatalog] = {
    "unlocked": _stepping(lambda _: OneLock(None, nullcontext())),
    "lock let go before the write": _planted(change=let_go_before_the_write),
    "check-then-act at the limit": _planted(change=check_then_act),
    "volume += n in two steps": _planted(change=volume_in_two_steps),
    "torn lookup": _planted(read=torn),
    "torn lookup: readers without a lock": _fields(lambda: OneLock(None, Lock())),
    "stale read: cached": _planted(read=cached, change=forgets_the_cache_late),
    "reply before the commit": _planted(read=committed_later, change=reply_before_the_commit),
    "update lost under a trade": _planted(change=update_lost_under_a_trade),
    "write under a read lock": _stepping(_read_lock_alone),
    "two locks for one name": _stepping(TwoLocksForOneName),
    "writer admitted with readers": _fields(lambda: _leaky(writers_wait=False, readers_wait=True)),
    "reader admitted with a writer": _fields(lambda: _leaky(writers_wait=True, readers_wait=False), writer_waits=True),
    "number from a counter of two steps": _planted(change=number_from_two_steps),
    "number taken before the lock": _planted(change=number_before_the_lock),
    "number taken by a refusal": _planted(change=refusal_takes_a_number),
    "published before its number": _planted(read=without_a_lock, change=published_before_its_number),
    "retry executed twice": _planted(replay=executed_twice),
    "retry executed twice, in silence": _planted(replay=executed_twice_in_silence),
    "refusal not replayed": _planted(replay=refusals_forgotten),
}
"""Every planted bug by its name."""
