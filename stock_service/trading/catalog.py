"""Interface of a catalog, and the catalog in one process's memory. A catalog has the current version of each stock.

``Catalog.change`` makes all changes of stocks. A pure step of ``rules.py`` computes the change, and the catalog makes
the step atomic. The commits of one catalog are numbered from 1 without gaps. If one commit ends before another commit
begins, the earlier commit has the smaller number.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Protocol

from stock_service.trading.locking import Locking
from stock_service.trading.model import Status, Stock
from stock_service.trading.once import RETRY_WINDOW, Changed, Once, OnceInMemory

Version = tuple[Stock, int]
"""A stock, and the number of the commit that made this version of the stock. The number is 0 if the stock has never
changed.
"""

Step = Callable[[Stock | None], tuple[Stock | None, Status]]
"""Pure function from a stock to the new stock and a status. To change nothing, the function returns the stock object
that it got.

For a name that the catalog does not have, the function gets None, and must return None as the new stock.
"""


class Catalog(Protocol):
    """Store of the stocks. Every method is thread-safe and linearizable."""

    def names(self) -> Iterable[str]:
        """Returns the names of all stocks, which never change."""

    def read(self, name: str) -> Version | None:
        """Returns the current version of a stock; None for a name that the catalog does not have.

        A catalog in a database raises Unavailable or Overloaded if the database does not answer.
        """

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        """Applies a step to a stock, atomically. If the step changes the stock, the commit gets a number.

        With ``once``, only the first use of the request id has an effect. The catalog remembers the reply, of any
        status, in the same atomic step. The catalog remembers a limited number of request ids, and forgets the oldest
        id first. A second use of a remembered request id waits for the end of the first use, and gets the first reply.
        If the second use has other content than the first use, it raises InvalidRequest.

        A catalog on a disk returns once the change is on the disk. Errors:

        - Overloaded: the disk is full. The change has no effect.
        - InternalFault: the disk has failed. The change may have an effect, and no later change has an effect.
        - Unavailable: the database cannot be reached (no effect), or was lost during the commit of a change without
          ``once`` (the change may have an effect).
        - Any other exception: the change has no effect, and its reply is not remembered.
        """


class MemoryCatalog:
    """Catalog in a dictionary, guarded by a locking strategy. The stocks are lost when the process ends.

    The entries of the dictionary are immutable, and a change replaces a whole entry. The dictionary's keys never
    change, so a look-up of a name needs no lock.
    """

    def __init__(
        self, stocks: Iterable[Stock], locking: Callable[[Iterable[str]], Locking], retry_window: int = RETRY_WINDOW
    ) -> None:
        self._versions: dict[str, Version] = {stock.name: (stock, 0) for stock in stocks}
        chosen = locking(self._versions)
        self._reading, self._writing = chosen.reading, chosen.writing
        self._commits = count(
            1
        )  # next(_commits) is atomic in CPython, so writers with different locks may share the counter
        self._once = OnceInMemory(retry_window)

    def names(self) -> Iterable[str]:
        return self._versions.keys()

    def read(self, name: str) -> Version | None:
        if name not in self._versions:
            return None
        lock = self._reading[name]
        if lock is None:
            return self._versions[name]
        with lock:
            return self._versions[name]

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        if once is not None:
            return self._once.answer(once, lambda: self.change(name, step))
        if name not in self._versions:
            return step(None)[1], 0, 0
        with self._writing[name]:
            before = self._versions[name][0]
            stock, status = step(before)
            if stock is None or stock is before:
                return status, before.volume, 0
            sequence = next(self._commits)
            self._versions[name] = (stock, sequence)
            return status, stock.volume, sequence
