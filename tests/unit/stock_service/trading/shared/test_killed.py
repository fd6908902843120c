"""A process that is killed at any store to the memory, and the state that others find. Here it is a catalog that stops
there.

``Dying`` is the memory of a process that is killed at its n-th store. A store of many bytes is cut in half. After it
nothing of that process reaches the memory, and its locks are released, as the kernel would do.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from typing import cast

import pytest

from stock_service.trading.catalog import Step
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side, Status, Stock, TradeReply
from stock_service.trading.once import Changed, Once, key_of, record_of, reply_of
from stock_service.trading.shared.catalog import SharedCatalog
from stock_service.trading.shared.memory import Memory
from stock_service.trading.shared.window import digest_of
from tests.conformance.shared import Shared, check_window

STOCKS = (Stock("A", 100, 10**6), Stock("B", 200, 10**9))


class Killed(BaseException):
    """The process is gone."""


class Dying(Memory):
    """A memory whose user is killed at a store, counted from 0 once ``at`` is set."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.at = -1
        self.stores = 0
        self.whole = self.words, self.bytes
        self.words = cast(memoryview, _Stored(self, self.words))
        self.bytes = cast(memoryview, _Stored(self, self.bytes))

    def close(self) -> None:
        self.words, self.bytes = self.whole
        super().close()


class _Stored:
    """Words or bytes, each store to which is counted."""

    def __init__(self, memory: Dying, inside: memoryview) -> None:
        self._memory = memory
        self._inside = inside

    def __len__(self) -> int:
        return len(self._inside)

    def __getitem__(self, place: int | slice) -> object:
        return self._inside[place]

    def __setitem__(self, place: int | slice, value: int | bytes) -> None:
        memory = self._memory
        if 0 <= memory.at <= memory.stores:
            if memory.at == memory.stores and isinstance(place, slice) and not isinstance(value, int):
                half = len(value) // 2
                self._inside[place.start : place.start + half] = value[:half]
            memory.stores += 1
            raise Killed
        memory.stores += 1
        self._inside[place] = value  # type: ignore[index, assignment]  # an integer at a place, or bytes at a slice


Act = Callable[[Exchange, SharedCatalog], object]


ACTS: dict[str, Act] = {
    "a trade": lambda exchange, _: exchange.trade("A", 5, Side.BUY),
    "an update": lambda exchange, _: exchange.update("B", 7),
    "a trade with an id": lambda exchange, _: exchange.trade("A", 5, Side.BUY, "id"),
    "a refused trade with an id": lambda exchange, _: exchange.trade("A", 10**9, Side.BUY, "large"),
}


def dies(descriptor: int, act: Act, at: int) -> bool:
    """Runs the actions of a process that is killed at the store of this number. True where there was such a store."""
    with closing(Dying(descriptor)) as memory:  # and so lets its locks go
        catalog = SharedCatalog(memory)
        memory.at = at
        try:
            act(Exchange(catalog), catalog)
        except Killed:
            return True
        return False


def deaths(act: Act, ids: int, window: int) -> Iterator[tuple[SharedCatalog, int]]:
    """The catalog of a survivor and its memory, once for each store at which a process may be killed in an act.

    Before it ``ids`` ids have been used.
    """
    for at in count():
        with Shared() as shared:
            descriptor = shared.memory(STOCKS, window)
            survivor = shared.catalog(descriptor)
            before = Exchange(survivor)
            for number in range(ids):
                before.trade("B", 1, Side.BUY, str(number))
            if not dies(descriptor, act, at):
                return
            yield survivor, descriptor
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("ids", [0, 2, 3, 5], ids=lambda ids: f"{ids} ids before")
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_death_at_any_store_leaves_all_or_nothing(act: Act, ids: int) -> None:
    """A stock is as it was or as it was to be. Commits have no gap, the window is whole, and all can be used on."""
    died = 0
    for survivor, _ in deaths(act, ids, window=3):
        died += 1
        exchange = Exchange(survivor)
        a, b = exchange.lookup("A"), exchange.lookup("B")
        changed = (a.volume > 0) + (b.price_cents == 7)
        assert (a.price_cents, a.volume) in ((100, 0), (100, 5))
        assert (b.price_cents, b.volume) in ((200, ids), (7, ids))
        assert a.sequence == (ids + 1 if a.volume else 0)
        assert b.sequence == (ids + 1 if b.price_cents == 7 else ids)
        check_window(survivor)
        act(exchange, survivor)
        assert exchange.trade("A", 1, Side.BUY).sequence in (ids + changed + 1, ids + changed + 2)
        check_window(survivor)
    assert died > 3


@pytest.mark.slow
@pytest.mark.parametrize("ids", [0, 3])
def test_a_death_at_any_store_of_a_trade_with_an_id_leaves_one_effect(ids: int) -> None:
    """A retry of a trade gets its reply, and the trade is done once, also if the retry's process dies at any store."""
    act = ACTS["a trade with an id"]
    for survivor, descriptor in deaths(act, ids, window=3):
        for at in count():
            if not dies(descriptor, act, at):
                break
            check_window(survivor)
        exchange = Exchange(survivor)
        expected = TradeReply(Status.OK, 5, ids + 1)
        assert exchange.trade("A", 5, Side.BUY, "id") == expected
        assert exchange.lookup("A").volume == 5
        assert exchange.trade("A", 1, Side.SELL).sequence == ids + 2


def without_a_journal(memory: Memory, changes: list[int]) -> None:
    """Planted: stores words one after the other."""
    for place in range(0, len(changes), 2):
        memory.words[changes[place]] = changes[place + 1]


def test_a_commit_without_a_journal_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail."""
    monkeypatch.setattr(Memory, "commit", without_a_journal)
    with pytest.raises(AssertionError):
        test_a_death_at_any_store_leaves_all_or_nothing(ACTS["a trade"], 0)
    with pytest.raises(AssertionError):
        test_a_death_at_any_store_of_a_trade_with_an_id_leaves_one_effect(3)


def ids_in_a_commit_of_their_own(catalog: SharedCatalog, name: str, step: Step, once: Once | None = None) -> Changed:
    """The trade is committed first, then that it was."""
    if once is None:
        return right_change(catalog, name, step)
    key = digest_of(key_of(once))
    record = catalog._window.find(key)
    if record is not None:
        return reply_of(record, once)
    changed = right_change(catalog, name, step)
    with catalog._memory:
        catalog._memory.commit(catalog._window.adding(key, record_of(once, changed)))
    return changed


right_change = SharedCatalog.change


def test_an_id_that_is_committed_apart_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a trade that was committed is done again."""
    monkeypatch.setattr(SharedCatalog, "change", ids_in_a_commit_of_their_own)
    with pytest.raises(AssertionError):
        test_a_death_at_any_store_of_a_trade_with_an_id_leaves_one_effect(0)
