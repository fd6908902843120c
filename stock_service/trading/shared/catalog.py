"""The catalog in memory that several processes share: stocks, commits and the window of request ids are one for all.

The memory is an anonymous file (memfd_create(2)), which a parent allots and gives to its children by descriptor. It is
gone with the last process that has it. One mutex guards all of it, over processes and threads: readers hold it too.

What a killed process leaves is what it had before a change, or what it had after it (``memory.py``), and no lock. An id
in whose first use a process was killed can be used again. If that use had committed its trade, the trade is not done
twice. With the commit, the record of the id has got what the trade read and its number. The next use of the id calls
its answer again, which gets that very commit, and so comes to the same reply.
"""

import os
import pickle
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from stock_service.trading.catalog import RETRY_WINDOW, Outcome, Step, Version, used_for_another
from stock_service.trading.model import Stock
from stock_service.trading.shared.memory import FIRST_WORD, WORD_BYTES, Memory
from stock_service.trading.shared.window import (
    CHANGED,
    CONTENT_BYTES_MAX,
    REPLY_BYTES_MAX,
    USE,
    Found,
    RetryWindow,
    key_of,
    window_words,
)

Reply = TypeVar("Reply")

_MAGIC = 0x53746F636B732031
"""What the first word is once the memory holds a catalog: "Stocks 1"."""

# Words of the memory, from its first.
_KIND = FIRST_WORD
_COMMITS = FIRST_WORD + 1
_RETRY_WINDOW = FIRST_WORD + 2
_NAMES_AT, _NAMES_BYTES = FIRST_WORD + 3, FIRST_WORD + 4  # (name, limit) of every stock, pickled
_STOCKS = FIRST_WORD + 5
_STOCK_WORDS = 3  # price in cents, volume, number of its last commit


def allot(stocks: Sequence[Stock], retry_window: int = RETRY_WINDOW) -> int:
    """Memory with these stocks as they stand, that remembers so many request ids: 1 or more, of all processes together.

    Gives its descriptor, which the caller closes; any number of ``SharedCatalog`` may be made of it. Takes some 620
    bytes for each id that it remembers, 64 MB for 100,000, as ids come. Raises OSError, and OverflowError for a number
    of over 64 bits.
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
    """The catalog of this process in memory that ``allot`` gave; see ``Catalog``, whose protocol it keeps.

    Steps may change a stock's price and its volume. Prices and volumes are of 64 bits: a step that makes a larger
    number raises OverflowError and changes nothing. An answer of ``once`` may change one stock, once. Contents and
    replies are pickled, and may take 352 and 160 bytes then. A longer content is a ValueError before anything is done.
    A longer reply is one after its answer, which is then forgotten. Waits are not bounded.

    The window must be larger than the number of threads that call, of all processes together.
    """

    def __init__(self, memory: Memory) -> None:
        """Whoever made ``memory`` closes it, when no thread uses the catalog any more. ValueError where it has none."""
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
        self._local = _Local()

    def names(self) -> Iterable[str]:
        return self._stocks.keys()

    def read(self, name: str) -> Version | None:
        if name not in self._stocks:
            return None
        place, limit = self._stocks[name]
        with self._memory.alone:
            price_cents, volume, sequence = self._words[place : place + _STOCK_WORDS]
        return Stock(name, price_cents, limit, volume), sequence

    def change(self, name: str, step: Step[Outcome]) -> tuple[Version, Outcome] | None:
        if name not in self._stocks:
            return None
        place, limit = self._stocks[name]
        words, use = self._words, self._local.use
        with self._memory.alone:
            record = use.record if use is not None and words[use.record + USE] == use.number else 0
            if record and words[record + CHANGED]:
                return self._again(name, step, record)
            price_cents, volume, sequence = words[place : place + _STOCK_WORDS]
            before = Stock(name, price_cents, limit, volume)
            stock, outcome = step(before)
            if stock is not before:
                if (stock.name, stock.volume_limit) != (name, limit):
                    raise ValueError(f"a step that changes more than price and volume: {stock}")
                sequence = words[_COMMITS] + 1
                changes = [place, stock.price_cents, place + 1, stock.volume, place + 2, sequence, _COMMITS, sequence]
                if record:
                    noted = (place, price_cents, volume, sequence)
                    changes += [word for pair in enumerate(noted, record + CHANGED) for word in pair]
                self._memory.commit(changes)
            return (stock, sequence), outcome

    def _again(self, name: str, step: Step[Outcome], record: int) -> tuple[Version, Outcome]:
        """What a step came to that a killed process committed: it is pure, and is given what it was given then."""
        place, limit = self._stocks[name]
        changed, price_cents, volume, sequence = self._words[record + CHANGED : record + CHANGED + 4]
        use = self._local.use
        if use is None or not use.repeats or changed != place:
            raise RuntimeError("the answer to a request with an id changes one stock, once")
        use.repeats = False
        stock, outcome = step(Stock(name, price_cents, limit, volume))
        return (stock, sequence), outcome

    def once(self, request_id: str, content: object, answer: Callable[[], Reply]) -> Reply:
        asked = pickle.dumps(content)
        if len(asked) > CONTENT_BYTES_MAX:
            raise ValueError(f"a content of {len(asked)} bytes, room: {CONTENT_BYTES_MAX}")
        key = key_of(request_id)
        waited_for = 0
        while True:
            with self._memory.alone:
                found = self._window.find(key)
                use = self._begin(found, key, asked, waited_for)
            if use is not None:
                return self._answer(use, answer)
            assert found is not None
            if found.content != asked and pickle.loads(found.content) != content:
                raise used_for_another(request_id)
            if found.reply is not None:
                return cast(Reply, pickle.loads(found.reply))
            self._memory.locks.wait(found.use)  # until it has ended, or its process has
            waited_for = found.use

    def _begin(self, found: Found | None, key: tuple[int, int], asked: bytes, waited_for: int) -> "_Use | None":
        """A use to be answered here, its number held; None where another is, or was. The memory is ours alone.

        A use that is found running, though its number was waited for, is that of a process that was killed.
        """
        if found is not None and (found.reply is not None or found.use != waited_for):
            return None
        number = self._window.next_use()
        self._memory.locks.hold(number)
        if found is None:
            return _Use(self._window.add(key, asked), number)
        self._window.take_over(found.record)
        return _Use(found.record, number, repeats=self._words[found.record + CHANGED] != 0)

    def _answer(self, use: "_Use", answer: Callable[[], Reply]) -> Reply:
        """Answers a use and has its reply remembered. One that raises is forgotten, unless its trade is done: a killed
        process had committed it."""
        done = use.repeats
        kept = False
        self._local.use = use
        try:
            reply = answer()
            told = pickle.dumps(reply)
            if len(told) > REPLY_BYTES_MAX:
                raise ValueError(f"a reply of {len(told)} bytes, room: {REPLY_BYTES_MAX}")
            with self._memory.alone:
                if self._words[use.record + USE] == use.number:  # else it was forgotten meanwhile, as the oldest
                    self._window.set_reply(use.record, told)
            kept = True
            return reply
        finally:
            self._local.use = None
            if not (kept or done):
                with self._memory.alone:
                    if self._words[use.record + USE] == use.number:
                        self._window.remove(use.record)
            self._memory.locks.let_go(use.number)


class _Use:
    """A first use that is answered on this thread: its record and its number."""

    __slots__ = ("number", "record", "repeats")

    def __init__(self, record: int, number: int, repeats: bool = False) -> None:
        self.record = record
        self.number = number
        self.repeats = repeats  # whether the next change is one that a killed process has committed


class _Local(threading.local):
    """What a thread is answering."""

    use: _Use | None = None
