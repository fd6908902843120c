"""Races of the catalogs: every strategy's histories are linearizable, and every planted bug is caught, every time."""

import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

import pytest

from clients.load.history.by_sequence import violations
from clients.load.history.operations import contended
from clients.load.history.search import unexplained
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import Stock
from tests.races.history import Answering, Plan, plan, record
from tests.races.interleaving import Handoff, OneLock, PlantedCatalog, Stepping, field_catalog
from tests.races.planted import PLANTED, LeakyReadWriteLock
from tests.races.planted_exchanges import PLANTED_EXCHANGES, RightExchange
from tests.stores import unsynced

TIMES = 2
"""How many histories must each show a planted bug."""

OF_SEVERAL_STOCKS = ("numbers of each stock", "number skipped")
"""Bugs that leave every stock's own history right."""

CONTENDED_MIN = 0.3
"""Operations that must overlap a conflicting one, as a share of a history; with fewer, nothing is proved."""

HISTORIES_MAX = 10
"""Histories that may be recorded until one is contended. On a busy machine few threads run at once."""

CONTENDED_NEVER = [CONTENDED_MIN / 2] * HISTORIES_MAX
"""Shares of conflicts in histories that prove nothing, at any number of them."""

READERS_LOCK = [name for name in LOCKINGS if name != "snapshot"]


def assert_right_under_contention(asked: Plan, made: Callable[[], Answering]) -> None:
    """Histories are linearizable, each on an exchange of its own, until enough operations of one overlapped."""
    shares: list[float] = []
    while max(shares, default=0) < CONTENDED_MIN:
        if len(shares) == HISTORIES_MAX:
            pytest.fail(f"of no history {CONTENDED_MIN:.0%} of the operations overlapped, at most {max(shares):.0%}")
        history = record(made(), asked)
        assert violations(asked.stocks, history) == []
        shares.append(contended(history))


@pytest.mark.parametrize(
    ("shares", "proves"), [(CONTENDED_NEVER, False), ([*CONTENDED_NEVER[1:], CONTENDED_MIN], True)]
)
def test_one_history_must_be_contended(
    shares: list[float], proves: bool, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shares of several histories are not added."""
    left = iter(shares)
    monkeypatch.setattr("tests.races.test_races.contended", lambda _: next(left))
    monkeypatch.setattr("tests.races.test_races.record", lambda *_: [])
    asked = plan(rng, threads=1, rounds=1)
    with nullcontext() if proves else pytest.raises(pytest.fail.Exception):
        assert_right_under_contention(asked, lambda: RightExchange(asked.stocks, Handoff(0)))


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught_every_time(bug: str, rng: random.Random) -> None:
    """The check finds the bug in each of several histories."""
    for _ in range(TIMES):
        asked = plan(rng, threads=4, rounds=12)
        history = record(Exchange(PLANTED[bug](asked.stocks, Handoff(0.004))), asked)
        assert violations(asked.stocks, history)


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED_EXCHANGES)
def test_a_bug_in_what_is_told_is_caught_every_time(bug: str, rng: random.Random) -> None:
    """The check by sequence finds the bug. So does the search, except for numbers that are wrong only over several
    stocks."""
    for _ in range(TIMES):
        asked = plan(rng, threads=4, rounds=16, conflicts=True)
        history = record(PLANTED_EXCHANGES[bug](asked.stocks, Handoff(0.004)), asked)
        assert violations(asked.stocks, history)
        assert bool(unexplained(asked.stocks, history)) == (bug not in OF_SEVERAL_STOCKS)


@pytest.mark.slow
@pytest.mark.parametrize("locking", LOCKINGS)
def test_histories_are_linearizable(locking: str, rng: random.Random) -> None:
    """Six threads at once get replies as from a sequential order."""
    asked = plan(rng, threads=6, rounds=150)
    history = record(Exchange(MemoryCatalog(asked.stocks, LOCKINGS[locking])), asked)
    assert violations(asked.stocks, history) == []


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [False, True])
def test_histories_of_a_store_are_linearizable(interrupted: bool, rng: random.Random, tmp_path: Path) -> None:
    """The same holds for a store on a disk, with and without a hand-over between a writer's decision and its commit."""
    asked = plan(rng, threads=6, rounds=20 if interrupted else 150)
    with ExitStack() as opened:

        def made() -> Exchange:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            durable = SqliteCatalog(path, asked.stocks, open_file=partial(StoreFile.opened, connect=unsynced))
            opened.callback(durable.close)
            return Exchange(Stepping(durable, Handoff(0.0005)) if interrupted else durable)

        assert_right_under_contention(asked, made)


@pytest.mark.slow
@pytest.mark.parametrize("locking", LOCKINGS)
def test_histories_are_linearizable_where_writers_are_interrupted(locking: str, rng: random.Random) -> None:
    """The same holds where every change hands over to other threads between its decision and its commit, and where an
    id is used for two trades: a refused client may not see the old volume."""
    asked = plan(rng, threads=4, rounds=20, conflicts=True)
    assert_right_under_contention(
        asked, lambda: Exchange(Stepping(MemoryCatalog(asked.stocks, LOCKINGS[locking]), Handoff(0.0005)))
    )


@pytest.mark.slow
@pytest.mark.parametrize("locking", READERS_LOCK)
def test_a_lock_keeps_half_written_stocks_from_readers(locking: str, rng: random.Random) -> None:
    """Threads that hold the lock never see a half-written stock, even if stocks are written field by field."""
    asked = plan(rng, threads=4, rounds=15)
    assert_right_under_contention(
        asked, lambda: Exchange(field_catalog(asked.stocks, LOCKINGS[locking], Handoff(0.0005)))
    )


def of_fields(stocks: Iterable[Stock], handoff: Handoff) -> Exchange:
    """An exchange on a catalog of fields under a right lock."""
    lock = LeakyReadWriteLock(writers_wait=True, readers_wait=True)
    return Exchange(field_catalog(stocks, lambda _: OneLock(lock.reader, lock.writer), handoff))


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [RightExchange, of_fields, lambda stocks, handoff: Exchange(PlantedCatalog(stocks, handoff))],
    ids=["exchange", "fields", "catalog"],
)
def test_what_bugs_are_planted_in_is_right(
    make: Callable[[Iterable[Stock], Handoff], Answering], rng: random.Random
) -> None:
    """The check catches the bug that was planted: the parts it was planted in pass. ``RightExchange`` does so also
    where ids are used for several trades."""
    asked = plan(rng, threads=4, rounds=12, conflicts=make is RightExchange)
    history = record(make(asked.stocks, Handoff(0.0005)), asked)
    assert violations(asked.stocks, history) == []
    assert unexplained(asked.stocks, history) == []
