"""The catalog: every stock as it stands, and the one way to change one.

A catalog supplies atomicity and nothing else: what a request does to a stock is a pure step of ``rules.py``. A
``Version`` is a stock with the number of the commit that made it (0: as it was at start-up). Commits of one catalog are
numbered from 1 without gaps, in an order that respects real time.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock
from typing import Protocol, TypeVar, cast

from stock_service.rpc.errors import InvalidRequest
from stock_service.trading.locking import Locking
from stock_service.trading.model import Stock

Outcome = TypeVar("Outcome")
Reply = TypeVar("Reply")

Version = tuple[Stock, int]
"""A stock, and the number of the commit that made it so."""

Step = Callable[[Stock], tuple[Stock, Outcome]]
"""What to make of a stock, and how that ended; pure. Gives back the very stock it was given to change nothing."""

RETRY_WINDOW = 100_000
"""How many request ids a catalog remembers: about 50 MB, and at 10,000 trades a second ten seconds of retries."""


class Catalog(Protocol):
    """Where the stocks are. Every method may be called from any thread and is linearizable."""

    def names(self) -> Iterable[str]:
        """The name of every stock; fixed for the catalog's life."""

    def read(self, name: str) -> Version | None:
        """The stock as it stands; None for a name that the catalog does not have."""

    def change(self, name: str, step: Step[Outcome]) -> tuple[Version, Outcome] | None:
        """Applies a step to a stock, atomically, and numbers the commit where the step changed something.

        Gives the version that stands afterwards and the step's outcome; None for a name that the catalog does not have.
        """

    def once(self, request_id: str, content: object, answer: Callable[[], Reply]) -> Reply:
        """The reply of ``answer``, which is called for the first use of an id and never again within the window.

        A second use waits for the first to end and gets its reply. ``content`` is what the request asks for; a second
        use with other content raises InvalidRequest. An ``answer`` that raises is forgotten, and may be tried again.
        """


class MemoryCatalog:
    """Stocks in a dictionary, guarded by a locking strategy; gone when the process ends.

    Entries are immutable and replaced whole. The dictionary's keys never change after construction, so looking a name
    up needs no lock. A dictionary of retry records, oldest first, holds the last ``retry_window`` request ids; an older
    id is taken for a new one. The window must be larger than the number of threads that call.
    """

    def __init__(
        self, stocks: Iterable[Stock], locking: Callable[[Iterable[str]], Locking], retry_window: int = RETRY_WINDOW
    ) -> None:
        self._versions: dict[str, Version] = {stock.name: (stock, 0) for stock in stocks}
        self._locking = locking(self._versions)
        self._commits = count(1)  # next() of it is atomic in CPython, so that per-stock locks can share it
        self._retry_window = retry_window
        self._retries_lock = Lock()  # guards _retries
        self._retries: OrderedDict[str, _FirstUse] = OrderedDict()  # whose first key is found at once

    def names(self) -> Iterable[str]:
        return self._versions.keys()

    def read(self, name: str) -> Version | None:
        if name not in self._versions:
            return None
        lock = self._locking.reading(name)
        if lock is None:
            return self._versions[name]
        with lock:
            return self._versions[name]

    def change(self, name: str, step: Step[Outcome]) -> tuple[Version, Outcome] | None:
        if name not in self._versions:
            return None
        with self._locking.writing(name):
            version = self._versions[name]
            stock, outcome = step(version[0])
            if stock is not version[0]:
                version = (stock, next(self._commits))
                self._versions[name] = version
            return version, outcome

    def once(self, request_id: str, content: object, answer: Callable[[], Reply]) -> Reply:
        while True:
            with self._retries_lock:
                first = self._retries.get(request_id)
                if first is None:
                    mine = self._retries[request_id] = _FirstUse(content)
                    if len(self._retries) > self._retry_window:
                        self._retries.popitem(last=False)
                    break
            if first.content != content:
                raise used_for_another(request_id)
            with first.running:  # waits for the first use to end
                if first.reply is not None:
                    return cast(Reply, first.reply)
        try:
            reply = answer()
            mine.reply = reply
            return reply
        finally:
            if mine.reply is None:  # it raised: forgotten, so that the next use is a first one
                with self._retries_lock:
                    if self._retries.get(request_id) is mine:
                        del self._retries[request_id]
            mine.running.release()


def used_for_another(request_id: str) -> InvalidRequest:
    """What a second use of an id gets that asks for something else than the first."""
    return InvalidRequest(f"request_id {request_id!r} was used for another trade: a new one needs a new id")


class _FirstUse:
    """The first use of a request id: what it asked, its reply once there is one, a lock that is held while it runs."""

    __slots__ = ("content", "reply", "running")

    def __init__(self, content: object) -> None:
        self.content = content
        self.reply: object | None = None
        self.running = Lock()
        self.running.acquire()
