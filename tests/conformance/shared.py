"""Catalogs on shared memory, as tests make them: closed when the test is over. ``InTurns`` is several as if one."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from typing import TypeVar

from stock_service.trading.catalog import Catalog, Outcome, Step, Version
from stock_service.trading.model import Stock
from stock_service.trading.shared.catalog import SharedCatalog, allot
from stock_service.trading.shared.memory import Memory

Reply = TypeVar("Reply")

MakeMemory = Callable[[int], Memory]


class InTurns:
    """Catalogs of one memory, each as a process of its own has it: every call goes to the next of them."""

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self._next = cycle(catalogs)

    def names(self) -> Iterable[str]:
        return next(self._next).names()

    def read(self, name: str) -> Version | None:
        return next(self._next).read(name)

    def change(self, name: str, step: Step[Outcome]) -> tuple[Version, Outcome] | None:
        return next(self._next).change(name, step)

    def once(self, request_id: str, content: object, answer: Callable[[], Reply]) -> Reply:
        return next(self._next).once(request_id, content, answer)


class Shared(ExitStack):
    """Makes memories and catalogs, and closes them when left."""

    def memory(self, stocks: Sequence[Stock], retry_window: int = 100) -> int:
        """A memory's descriptor."""
        descriptor = allot(stocks, retry_window)
        self.callback(os.close, descriptor)
        return descriptor

    def catalog(self, descriptor: int, make: MakeMemory = Memory) -> SharedCatalog:
        """A catalog on it, as a process of its own has it."""
        memory = make(descriptor)
        self.callback(memory.close)
        return SharedCatalog(memory)

    def alone(self, stocks: Sequence[Stock], retry_window: int) -> Catalog:
        """A catalog that nobody else has."""
        return self.catalog(self.memory(stocks, retry_window))

    def in_turns(self, stocks: Sequence[Stock], retry_window: int) -> Catalog:
        """Three catalogs of one memory, by turns."""
        descriptor = self.memory(stocks, retry_window)
        return InTurns([self.catalog(descriptor) for _ in range(3)])


def check_window(catalog: SharedCatalog) -> None:
    """That the window of request ids is whole: every record in use is in the row and in its chain, all others free."""
    window, words = catalog._window, catalog._words
    with catalog._memory.alone:
        kept, oldest, newest, free, fresh = (words[window._at + place] for place in (1, 2, 3, 4, 5))
        row = list(_followed(words, oldest, 5))
        assert row == list(_followed(words, newest, 4))[::-1], "the row by age, forwards and back"
        assert len(row) == kept <= window._most
        buckets = range(window._at + 6, window._at + 6 + window._mask + 1)
        chains = {record: bucket for bucket in buckets for record in _followed(words, words[bucket], 3)}
        assert sorted(chains) == sorted(row), "a record in use is in a chain, once"
        assert all(window._bucket((words[record], words[record + 1])) == chains[record] for record in row)
        spare = list(_followed(words, free, 3))
        assert len(spare) + len(row) == fresh, "a record is in use or free"
        assert not set(spare) & set(row)
        assert all(words[record + 2] > 0 for record in row)


def _followed(words: memoryview, record: int, link: int) -> Iterator[int]:
    """Records one after the other, by a word of each."""
    seen: set[int] = set()
    while record:
        assert record not in seen, "a circle"
        seen.add(record)
        yield record
        record = words[record + link]
