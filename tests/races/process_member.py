"""One of several processes that run their parts of a plan at once, on a catalog in shared memory.

``python -m tests.races.process_member DESCRIPTOR KIND`` reads its part from standard input. Before each round it writes
a byte and waits for one. At the end it writes its records. Times are of one clock for all processes.
"""

import os
import pickle
import sys
from collections.abc import Callable, Iterable

from stock_service.trading.catalog import Catalog, Step, Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.once import RETRY_WINDOW, Changed, Once, OnceInMemory
from stock_service.trading.shared.catalog import SharedCatalog
from stock_service.trading.shared.memory import Memory
from tests.races.history import Plan, record
from tests.races.interleaving import Handoff, Stepping


def as_it_should_be(memory: Memory) -> Catalog:
    """No bug."""
    return SharedCatalog(memory)


def no_lock_between_processes(memory: Memory) -> Catalog:
    """Lock that excludes only the threads of one process."""
    memory._file = os.memfd_create("a file of this process alone")
    return SharedCatalog(memory)


class _WindowOfItsOwn:
    """A shared catalog, with a window of request ids of this process."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._once = OnceInMemory(RETRY_WINDOW)

    def names(self) -> Iterable[str]:
        return self._catalog.names()

    def read(self, name: str) -> Version | None:
        return self._catalog.read(name)

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        if once is None:
            return self._catalog.change(name, step)
        return self._once.answer(once, lambda: self._catalog.change(name, step))


def a_window_in_each_process(memory: Memory) -> Catalog:
    """Window in each process: an id that one process knows is new to the others."""
    return _WindowOfItsOwn(SharedCatalog(memory))


KINDS: dict[str, Callable[[Memory], Catalog]] = {
    kind.__name__: kind for kind in (as_it_should_be, no_lock_between_processes, a_window_in_each_process)
}
"""The right kind first, then those with a planted bug."""


def main(descriptor: str, kind: str) -> None:
    """Carries its part out."""
    asked: Plan = pickle.load(sys.stdin.buffer)

    def meet() -> None:
        sys.stdout.buffer.write(b".")
        sys.stdout.buffer.flush()
        assert sys.stdin.buffer.read(1)

    catalog = Stepping(KINDS[kind](Memory(int(descriptor))), Handoff(0.0005))  # so that a change takes a while
    sys.stdout.buffer.write(pickle.dumps(record(Exchange(catalog), asked, meet)))


if __name__ == "__main__":
    main(*sys.argv[1:])
