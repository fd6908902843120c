"""Catalogs on shared memory, as tests make them: closed when the test is over. ``InTurns`` is several as if one."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle

from stock_service.trading.catalog import Catalog, Step, Version
from stock_service.trading.model import Stock
from stock_service.trading.once import Changed, Once
from stock_service.trading.shared.catalog import SharedCatalog, allot
from stock_service.trading.shared.memory import Memory

MakeMemory = Callable[[int], Memory]


class InTurns:
    """Catalogs of one memory, each as a process of its own has it: every call goes to the next of them."""

    def __init__(self, catalogs: Sequence[Catalog]) -> None:
        self._next = cycle(catalogs)

    def names(self) -> Iterable[str]:
        return next(self._next).names()

    def read(self, name: str) -> Version | None:
        return next(self._next).read(name)

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        return next(self._next).change(name, step, once)


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
        """A catalog of one process."""
        return self.catalog(self.memory(stocks, retry_window))

    def in_turns(self, stocks: Sequence[Stock], retry_window: int) -> Catalog:
        """Three catalogs of one memory, by turns."""
        descriptor = self.memory(stocks, retry_window)
        return InTurns([self.catalog(descriptor) for _ in range(3)])


def check_window(catalog: SharedCatalog) -> None:
    """Check the window of request ids: each record in the ring is in its chain, once, and no other record is."""
    window, words = catalog._window, catalog._words
    with catalog._memory:
        ids = words[window._at]
        forgotten = max(0, ids - window._most)
        buckets = range(window._at + 1, window._at + 1 + window._mask + 1)
        chained = [(number, bucket) for bucket in buckets for number in _followed(catalog, words[bucket], forgotten)]
        in_use = list(range(forgotten + 1, ids + 1))
        assert sorted(number for number, _ in chained) == in_use, "a record in use is in a chain, once"
        places = [(window._place(number), bucket) for number, bucket in chained]
        assert all(window._bucket((words[place], words[place + 1])) == bucket for place, bucket in places)


def _followed(catalog: SharedCatalog, number: int, forgotten: int) -> Iterator[int]:
    """Numbers of a chain, in its order."""
    while number > forgotten:
        yield number
        after = catalog._words[catalog._window._place(number) + 2]
        assert after < number, "newest first, so that there is no circle"
        number = after
