"""Races of the entity store: its histories have a sequential order, and planted bugs are caught.

A put stores a number that no other put stores, as its value and in its description. So a get shows which put it saw.
"""

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import cast

import pytest

from experiments.services.entity import Entity, EntityStore, Entry
from stock_service.trading.locking import ReadWriteLock
from tests.races.interleaving import Handoff
from tests.races.planted import LeakyReadWriteLock

THREADS, ROUNDS, REQUESTS, IDS = 4, 4, 20, 2
"""Requests of each thread in each round, about ids that are new then."""


@dataclass(frozen=True, slots=True)
class Done:
    """One request, its begin and end (by one counter), and its result."""

    id: int
    began: int
    ended: int
    value: float | None
    """Value that was put, or read; None for a get that found nothing."""
    created: bool | None
    """Reply of a put; None for a get."""
    torn: bool = False


def record(store: EntityStore, rng: random.Random) -> list[Done]:
    """The requests of several threads at once to a store, and their answers."""
    clock, values, history = count(), count(1), list[Done]()
    seeds = [rng.random() for _ in range(THREADS)]
    together = threading.Barrier(THREADS)

    def client(seed: float) -> None:
        drawn = random.Random(seed)
        for request in range(ROUNDS * REQUESTS):
            if request % REQUESTS == 0:
                together.wait()  # each round about ids that no round before had: so that there are new ones
            number = request // REQUESTS * IDS + drawn.randrange(IDS)
            began = next(clock)
            if drawn.random() < 0.6:
                value = float(next(values))
                created = store.put(Entity(number, str(value), value))
                history.append(Done(number, began, next(clock), value, created))
            else:
                seen = store.get(number)
                torn = seen is not None and seen.description != str(seen.value)
                history.append(Done(number, began, next(clock), seen.value if seen else None, None, torn))

    threads = [threading.Thread(target=client, args=(seed,), name="client") for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return history


def violations(history: list[Done]) -> list[str]:
    """Replies that no sequential order of the requests explains."""
    found = [f"a get saw half a put: {done}" for done in history if done.torn]
    for number in {done.id for done in history}:
        puts = [done for done in history if done.id == number and done.created is not None]
        gets = [done for done in history if done.id == number and done.created is None]
        if puts and sum(bool(put.created) for put in puts) != 1:
            found.append(f"not one put alone created {number}")
        if any(put.created and other.ended < put.began for put in puts for other in puts):
            found.append(f"an id that was there was new: {number}")
        wrong = [get for get in gets if not get.torn and stale(get, puts)]
        found += [f"a get saw what nobody had put, or what was replaced before: {get}" for get in wrong]
    return found


def stale(get: Done, puts: list[Done]) -> bool:
    """Tell whether a get saw a value that it could not have seen at any moment between its beginning and its end."""
    if get.value is None:
        return any(put.ended < get.began for put in puts)
    seen = [put for put in puts if put.value == get.value and put.began < get.ended]
    return not seen or any(seen[0].ended < put.began and put.ended < get.began for put in puts)


class SlowEntry(Entry):
    """An entry whose second field is written a while after the first, unless a thread reads meanwhile."""

    handoff = Handoff(0.002)

    @property
    def value(self) -> float:
        seen = self._value
        self.handoff.tell("read")
        return seen

    @value.setter
    def value(self, value: float) -> None:
        self.handoff.wait("read")
        self._value = value


class NoMapLock(EntityStore):
    """Adds an id under the map's shared lock: two puts at a time may both find that it is new."""

    handoff = Handoff(0.002)

    def put(self, entity: Entity) -> bool:
        with self._map_lock.reader:
            known = entity.id in self._entries
            self.handoff.meet(f"looked {entity.id}")
            if known:
                return super().put(entity)
            self._entries[entity.id] = Entry(entity.description, entity.value)
            return True


class Unchecked(EntityStore):
    """Does not look again once it has the map alone: the second of two puts of a new id says that it created it."""

    handoff = Handoff(0.002)

    def put(self, entity: Entity) -> bool:
        with self._map_lock.reader:
            known = entity.id in self._entries
            self.handoff.meet(f"looked {entity.id}")
        if known:
            return super().put(entity)
        with self._map_lock.writer:
            self._entries[entity.id] = Entry(entity.description, entity.value)
            return True


def leaky_entries() -> Callable[[], ReadWriteLock]:
    """A right lock for the map, which is made first; for entries a lock that admits readers beside a writer."""
    made: Iterator[object] = chain(
        [ReadWriteLock()], iter(lambda: LeakyReadWriteLock(writers_wait=True, readers_wait=False), None)
    )
    return lambda: cast(ReadWriteLock, next(made))


PLANTED: dict[str, Callable[[], EntityStore]] = {
    "an entry is read while it is written": lambda: EntityStore(new_lock=leaky_entries(), new_entry=SlowEntry),
    "an id is added under the shared lock": NoMapLock,
    "an id that was added meanwhile is added again": Unchecked,
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught_every_time(bug: str, rng: random.Random) -> None:
    """The check finds the bug in each of several histories."""
    for _ in range(3):
        assert violations(record(PLANTED[bug](), rng))


@pytest.mark.slow
@pytest.mark.parametrize("entry", [Entry, SlowEntry])
def test_the_stores_histories_are_explained(entry: type[Entry], rng: random.Random) -> None:
    """Histories of the store have a sequential order, also where every write of an entry hands over half-way."""
    for _ in range(3):
        history = record(EntityStore(new_entry=entry), rng)
        assert violations(history) == []
        assert len(history) == THREADS * ROUNDS * REQUESTS
