"""One of several processes that carry out their parts of a plan at once, on a catalog in memory that they share.

``python -m tests.races.process_member DESCRIPTOR KIND`` reads its part from standard input. Before each round it writes
a byte and waits for one. In the end it writes what it recorded. Times are of one clock for all processes.
"""

import pickle
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from stock_service.trading.catalog import Catalog, MemoryCatalog, Outcome, Step, Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.shared.catalog import SharedCatalog
from stock_service.trading.shared.memory import Memory
from tests.races.history import Plan, record
from tests.races.interleaving import Handoff, Stepping

Reply = TypeVar("Reply")


def as_it_should_be(memory: Memory) -> Catalog:
    """No bug."""
    return SharedCatalog(memory)


def no_lock_between_processes(memory: Memory) -> Catalog:
    """Only the threads of one process exclude each other."""
    memory.alone._mutex = threading.Lock()  # type: ignore[assignment]  # which is planted
    return SharedCatalog(memory)


class _WindowOfItsOwn:
    """A shared catalog, with a window of request ids of this process."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._window = MemoryCatalog((), Mutex)

    def names(self) -> Iterable[str]:
        return self._catalog.names()

    def read(self, name: str) -> Version | None:
        return self._catalog.read(name)

    def change(self, name: str, step: Step[Outcome]) -> tuple[Version, Outcome] | None:
        return self._catalog.change(name, step)

    def once(self, request_id: str, content: object, answer: Callable[[], Reply]) -> Reply:
        return self._window.once(request_id, content, answer)


def a_window_in_each_process(memory: Memory) -> Catalog:
    """An id that one process knows is new to the others."""
    return _WindowOfItsOwn(SharedCatalog(memory))


KINDS: dict[str, Callable[[Memory], Catalog]] = {
    kind.__name__: kind for kind in (as_it_should_be, no_lock_between_processes, a_window_in_each_process)
}
"""The right one first, and those with a planted bug."""


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
