"""The catalog in shared memory: all processes of a server have the same stocks, commit numbers and window of request
ids.

The memory is an anonymous file (memfd_create(2)). The parent process makes the file, and passes the file's descriptor
to the child processes. The kernel frees the memory when the last process with this file ends. One mutex, for all
processes and threads, guards the whole memory. Readers also hold the mutex.

If a process is killed during a change, the memory then has either the whole change or nothing of the change
(``memory.py``), and is unlocked. A trade and the record of its request id are one commit. So after a process was
killed, a client may send its trade again. If the trade was done, the client gets the first reply; otherwise the trade
is done now.
"""

import os
import pickle
from collections.abc import Iterable, Sequence

from stock_service.trading.catalog import Step, Version
from stock_service.trading.model import Stock
from stock_service.trading.once import RETRY_WINDOW, Changed, Once, key_of, record_of, reply_of
from stock_service.trading.shared.memory import FIRST_WORD, WORD_BYTES, Memory
from stock_service.trading.shared.window import RetryWindow, digest_of, window_words

_MAGIC = 0x53746F636B732031
"""Value of the word ``_KIND`` in memory with a catalog: the text "Stocks 1"."""

# Places of words in the memory.
_KIND = FIRST_WORD
_COMMITS = FIRST_WORD + 1
_RETRY_WINDOW = FIRST_WORD + 2
_NAMES_AT, _NAMES_BYTES = FIRST_WORD + 3, FIRST_WORD + 4  # offset and length, in bytes, of the pickled names and limits
_STOCKS = FIRST_WORD + 5
_STOCK_WORDS = 3  # words of a stock: price in cents, volume, number of the last commit


def allot(stocks: Sequence[Stock], retry_window: int = RETRY_WINDOW) -> int:
    """Makes memory with these stocks, and with room for ``retry_window`` request ids. This number is at least 1, and is
    for all processes together. Returns the memory's descriptor, which the caller must close. Any number of
    ``SharedCatalog`` objects may use the memory.

    A request id takes some 82 bytes from its first use on; 100,000 ids take 8.2 MB. Raises OSError. Raises
    OverflowError for a price or volume over 64 bits.
    """
    named = pickle.dumps([(stock.name, stock.volume_limit) for stock in stocks])
    window_at = _STOCKS + len(stocks) * _STOCK_WORDS
    names_at = (window_at + window_words(retry_window)) * WORD_BYTES
    descriptor = os.memfd_create("catalog")
    try:
        os.ftruncate(descriptor, names_at + len(named) + -len(named) % WORD_BYTES)
        memory = Memory(descriptor)
        try:
            memory.bytes[names_at : names_at + len(named)] = named
            for number, stock in enumerate(stocks):
                place = _STOCKS + number * _STOCK_WORDS
                memory.commit([place, stock.price_cents, place + 1, stock.volume])
            memory.commit([_RETRY_WINDOW, retry_window, _NAMES_AT, names_at, _NAMES_BYTES, len(named), _KIND, _MAGIC])
        finally:
            memory.close()
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class SharedCatalog:
    """One process's ``Catalog`` on the memory that ``allot`` has made.

    A step may change a stock's price and volume. Prices and volumes have 64 bits: if a step makes a larger number,
    ``change`` raises OverflowError, and changes nothing. A thread waits for the mutex without a timeout.
    """

    def __init__(self, memory: Memory) -> None:
        """The caller must close ``memory`` after the last use of the catalog. Raises ValueError for memory without a
        catalog.
        """
        self._memory = memory
        words = self._words = memory.words
        if len(words) <= _STOCKS or words[_KIND] != _MAGIC:
            raise ValueError("no memory of a catalog")
        names_at = words[_NAMES_AT]
        named = pickle.loads(memory.bytes[names_at : names_at + words[_NAMES_BYTES]])
        self._stocks: dict[str, tuple[int, int]] = {
            name: (_STOCKS + number * _STOCK_WORDS, limit) for number, (name, limit) in enumerate(named)
        }
        self._window = RetryWindow(memory, _STOCKS + len(named) * _STOCK_WORDS, words[_RETRY_WINDOW])

    def names(self) -> Iterable[str]:
        return self._stocks.keys()

    def read(self, name: str) -> Version | None:
        if name not in self._stocks:
            return None
        place, limit = self._stocks[name]
        with self._memory:
            price_cents, volume, sequence = self._words[place : place + _STOCK_WORDS]
        return Stock(name, price_cents, limit, volume), sequence

    def change(self, name: str, step: Step, once: Once | None = None) -> Changed:
        if once is None:
            with self._memory:
                changed, changes = self._stepped(name, step)
                if changes:
                    self._memory.commit(changes)
            return changed
        key = digest_of(key_of(once))
        with self._memory:
            record = self._window.find(key)
            if record is not None:
                return reply_of(record, once)
            changed, changes = self._stepped(name, step)
            self._memory.commit(changes + self._window.adding(key, record_of(once, changed)))
        return changed

    def _stepped(self, name: str, step: Step) -> tuple[Changed, list[int]]:
        """Applies a step to a stock. Returns the result, and the words that the caller must commit. The caller must
        hold the memory.
        """
        if name not in self._stocks:
            return (step(None)[1], 0, 0), []
        words = self._words
        place, limit = self._stocks[name]
        price_cents, volume, _ = words[place : place + _STOCK_WORDS]
        before = Stock(name, price_cents, limit, volume)
        stock, status = step(before)
        if stock is None or stock is before:
            return (status, volume, 0), []
        if (stock.name, stock.volume_limit) != (name, limit):
            raise ValueError(f"a step that changes more than price and volume: {stock}")
        sequence = words[_COMMITS] + 1
        changes = [place, stock.price_cents, place + 1, stock.volume, place + 2, sequence, _COMMITS, sequence]
        return (status, stock.volume, sequence), changes
