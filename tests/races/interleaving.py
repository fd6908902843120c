"""Catalogs taken apart, so that a bad interleaving can be forced instead of hoped for.

``Handoff`` stops a thread at the point where another one would do harm, until another did something. ``PlantedCatalog``
is a catalog whose three methods can be replaced one by one. ``field_catalog`` stores price, volume and number apart and
hands over between them. So it is right only under a lock that excludes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, Lock
from typing import Protocol

from stock_service.trading.catalog import Catalog, Step, Version
from stock_service.trading.locking import Held, Locking
from stock_service.trading.model import Status, Stock
from stock_service.trading.once import Changed, Once

KnownStep = Callable[[Stock], tuple[Stock, Status]]
"""A step on a stock that is there."""

Lockings = Callable[[Iterable[str]], Locking]


class Handoff:
    """A place where threads wait for one another. ``wait_s`` bounds a wait.

    Events are words. A stock's name is a commit to it. ``read NAME`` is a Lookup of it that has ended, and ``reading
    NAME`` a Lookup half-way.
    """

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._told = Condition()  # guards _counts and _waiting
        self._counts: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()

    def tell(self, event: str) -> None:
        """Wakes the threads that wait for the event."""
        with self._told:
            self._count(event)

    def wait(self, event: str, share: float = 1.0) -> None:
        """Stands at the point where another thread does harm until one tells of the event, or a share of the bound."""
        with self._told:
            self._wait_for(event, self._counts[event], share)

    def meet(self, event: str) -> None:
        """Waits for another thread that comes here, or tells of the event; two that meet go on together."""
        with self._told:
            seen = self._count(event)
            if not self._waiting[event]:
                self._waiting[event] += 1
                self._wait_for(event, seen, 1.0)
                self._waiting[event] -= 1

    def _count(self, event: str) -> int:
        self._counts[event] += 1
        self._told.notify_all()
        return self._counts[event]

    def _wait_for(self, event: str, seen: int, share: float) -> None:
        self._told.wait_for(lambda: self._counts[event] > seen, self._wait_s * share)


class Stepping:
    """A catalog whose steps hand over half-way, under the lock of the catalog inside."""

    def __init__(self, catalog: Catalog, handoff: Handoff) -> None:
        self._catalog = catalog
        self._handoff = handoff

    def names(self) -> Iterable[str]:
        return self._catalog.names()

    def read(self, name: str) -> Version | None:
        return self._catalog.read(name)

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        def slowly(stock: Stock | None) -> tuple[Stock | None, Status]:
            changed = step(stock)
            if stock is not None:
                self._handoff.meet(name)
            return changed

        return _told(self._handoff, name, self._catalog.change(name, slowly, once))


@dataclass(slots=True)
class Store:
    """The parts of a catalog in memory."""

    versions: dict[str, Version]
    handoff: Handoff
    lock: Lock = field(default_factory=Lock)
    commits: Iterable[int] = field(default_factory=lambda: count(1))
    last_commit: int = 0
    cache: dict[str, Version] = field(default_factory=dict)
    replies: dict[str, Changed] = field(default_factory=dict)
    replies_lock: Lock = field(default_factory=Lock)

    def number(self) -> int:
        """The next commit's number; atomic."""
        return next(iter(self.commits))


class Read(Protocol):
    """A catalog's way to read a stock that it has."""

    def __call__(self, store: Store, name: str) -> Version: ...


class Change(Protocol):
    """A catalog's way to change a stock that it has."""

    def __call__(self, store: Store, name: str, step: KnownStep) -> tuple[Version, Status]: ...


class Replay(Protocol):
    """A catalog's way to answer a request that has an id."""

    def __call__(self, store: Store, request_id: str, answer: Callable[[], Changed]) -> Changed: ...


def read(store: Store, name: str) -> Version:
    """See ``Catalog``."""
    with store.lock:
        return store.versions[name]


def change(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """See ``Catalog``."""
    with store.lock:
        return change_unlocked(store, name, step)


def change_unlocked(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
    """Reads, changes and stores. The caller holds the lock."""
    version = store.versions[name]
    stock, status = step(version[0])
    if stock is not version[0]:
        version = store.versions[name] = (stock, store.number())
    return version, status


def replay(store: Store, request_id: str, answer: Callable[[], Changed]) -> Changed:
    """See ``Catalog``. One id at a time, without a window."""
    with store.replies_lock:
        if request_id not in store.replies:
            store.replies[request_id] = answer()
        return store.replies[request_id]


def known(step: Step) -> KnownStep:
    """A step as one on a stock that is there."""

    def on(stock: Stock) -> tuple[Stock, Status]:
        after, status = step(stock)
        assert after is not None
        return after, status

    return on


class PlantedCatalog:
    """A catalog of three functions over a store; each may be a wrong one."""

    def __init__(
        self,
        stocks: Iterable[Stock],
        handoff: Handoff,
        *,
        read: Read = read,
        change: Change = change,
        replay: Replay = replay,
    ) -> None:
        self._store = Store({stock.name: (stock, 0) for stock in stocks}, handoff)
        self._read = read
        self._change = change
        self._replay = replay

    def names(self) -> Iterable[str]:
        return self._store.versions.keys()

    def read(self, name: str) -> Version | None:
        if name not in self._store.versions:
            return None
        version = self._read(self._store, name)
        self._store.handoff.tell(f"read {name}")
        return version

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        if once is not None:
            return self._replay(self._store, once.request_id, lambda: self.change(name, step))
        if name not in self._store.versions:
            return step(None)[1], 0, 0
        (stock, sequence), status = self._change(self._store, name, known(step))
        changed = (status, stock.volume, sequence if status is Status.OK else 0)
        return _told(self._store.handoff, name, changed)


def field_catalog(
    stocks: Iterable[Stock], locking: Lockings, handoff: Handoff, *, writer_waits: bool = False
) -> PlantedCatalog:
    """A catalog that stores a stock field by field, and reads the fields in an order that shows it.

    For strategies that keep readers out while a writer writes, and writers while a reader reads. A reader half-way
    waits for a writer to come, or, where ``writer_waits``, a writer half-way for a reader.
    """
    reader_share, writer_share = (0.0, 1.0) if writer_waits else (1.0, 0.0)
    first = {stock.name: stock for stock in stocks}
    prices = {name: stock.price_cents for name, stock in first.items()}
    volumes = {name: stock.volume for name, stock in first.items()}
    sequences = dict.fromkeys(first, 0)
    locks = locking(first)

    def read_fields(store: Store, name: str) -> Version:
        with locks.reading[name] or nullcontext():
            volume = volumes[name]
            store.handoff.tell(f"reading {name}")
            store.handoff.wait(name, reader_share)
            return Stock(name, prices[name], first[name].volume_limit, volume), sequences[name]

    def change_fields(store: Store, name: str, step: KnownStep) -> tuple[Version, Status]:
        with locks.writing[name]:
            before = Stock(name, prices[name], first[name].volume_limit, volumes[name])
            stock, status = step(before)
            if stock is not before:
                sequences[name] = store.number()
                store.handoff.wait(f"reading {name}", writer_share)
                prices[name], volumes[name] = stock.price_cents, stock.volume
            return (stock, sequences[name]), status

    return PlantedCatalog(first.values(), handoff, read=read_fields, change=change_fields)


def _told(handoff: Handoff, name: str, changed: Changed) -> Changed:
    """The result of a change, after waking the threads that wait for a commit."""
    if changed[0] is Status.OK:
        handoff.tell(name)
    return changed


class OneLock:
    """A locking strategy with one lock for readers and one for writers, for all stocks."""

    def __init__(self, reader: Held | None, writer: Held) -> None:
        self.reading: Mapping[str, Held | None] = defaultdict(lambda: reader)
        self.writing: Mapping[str, Held] = defaultdict(lambda: writer)
