"""Every catalog keeps the promises of catalogs, the one in memory under every locking. Faulty catalogs fail the
checks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stock_service.rpc.timeline import Timeline
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.trading.catalog import Catalog, MemoryCatalog
from stock_service.trading.locking import LOCKINGS, stamped
from stock_service.trading.model import Stock
from tests.conformance.catalogs import (
    CHECKS,
    MakeCatalog,
    a_second_use_waits_for_the_first,
    answers_as_the_plainest_catalog,
    changes_exclude_each_other,
    every_concurrent_change_counts,
    uses_of_an_id_at_once_have_one_effect,
)
from tests.conformance.shared import InTurns, Shared
from tests.races.interleaving import Handoff, OneLock
from tests.races.planted import PLANTED

if TYPE_CHECKING:
    from tests.postgres import Postgres


OF_THREADS = {every_concurrent_change_counts, uses_of_an_id_at_once_have_one_effect, a_second_use_waits_for_the_first}
"""Checks whose requests meet."""


OTHERS = ("stamped", "sqlite", "shared", "shared by processes in turns")
"""Catalogs beside those in memory under each locking."""


def in_memory(locking: str) -> MakeCatalog:
    """A maker of catalogs in memory."""
    return lambda stocks, retry_window: MemoryCatalog(stocks, LOCKINGS[locking], retry_window)


def in_memory_stamped(stocks: Sequence[Stock], retry_window: int) -> Catalog:
    """A catalog whose waits for locks are noted in a timeline."""
    timeline = Timeline(1)
    return MemoryCatalog(stocks, lambda names: stamped(LOCKINGS["two-level"](names), timeline), retry_window)


@pytest.fixture
def makers(tmp_path: Path) -> Iterator[dict[str, MakeCatalog]]:
    """A maker of each kind of catalog. Catalogs on a disk are closed at the end."""
    opened: list[SqliteCatalog] = []

    def sqlite(stocks: Sequence[Stock], retry_window: int) -> Catalog:
        path = tmp_path / f"{len(opened)}.sqlite3"
        opened.append(SqliteCatalog(path, stocks, retry_window=retry_window))
        return opened[-1]

    with Shared() as shared:
        others = (in_memory_stamped, sqlite, shared.alone, shared.in_turns)
        yield {name: in_memory(name) for name in LOCKINGS} | dict(zip(OTHERS, others, strict=True))
    assert all(catalog.close() for catalog in opened)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [*LOCKINGS, *OTHERS])
def test_catalog(makers: dict[str, MakeCatalog], name: str, check: Callable[[MakeCatalog], None]) -> None:
    """The catalog passes the check, whose docstring states the fact."""
    check(makers[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replicas", "check"),
    [(2, check) for check in CHECKS] + [(1, check) for check in CHECKS if check in OF_THREADS],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_postgres_catalog(postgres: "Postgres", replicas: int, check: Callable[[MakeCatalog], None]) -> None:
    """Replicas on a PostgreSQL keep the promises, with requests that take the replicas in turn. Of one replica the
    requests of several threads are tried: they share a session."""
    from stock_service.storage.postgres import PostgresCatalog  # here: psycopg is of an extra

    with ExitStack() as opened:

        def make(stocks: Sequence[Stock], retry_window: int) -> Catalog:
            dsn = postgres.store(stocks)
            catalogs = [PostgresCatalog(dsn, stocks, retry_window) for _ in range(replicas)]
            for catalog in catalogs:
                opened.callback(catalog.close)
            return InTurns(catalogs)

        check(make)


def unlocked(stocks: Sequence[Stock], retry_window: int) -> Catalog:
    """A catalog without locks."""
    return MemoryCatalog(stocks, lambda _: OneLock(None, nullcontext()), retry_window)


def short_of_memory(stocks: Sequence[Stock], retry_window: int) -> Catalog:
    """A catalog that remembers one id less than it says."""
    return MemoryCatalog(stocks, LOCKINGS["mutex"], retry_window - 1)


def forgetful(stocks: Sequence[Stock], _retry_window: int) -> Catalog:
    """A catalog that executes a retry twice."""
    return PLANTED["retry executed twice"](stocks, Handoff(0.002))


def window_each(stocks: Sequence[Stock], retry_window: int) -> Catalog:
    """Processes that each have a window of their own."""
    return InTurns([MemoryCatalog(stocks, LOCKINGS["mutex"], retry_window) for _ in range(2)])


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (unlocked, changes_exclude_each_other),
        (short_of_memory, answers_as_the_plainest_catalog),
        (forgetful, uses_of_an_id_at_once_have_one_effect),
        (window_each, answers_as_the_plainest_catalog),
    ],
    ids=["unlocked", "short of memory", "forgetful", "a window each"],
)
def test_a_wrong_catalog_is_refused(make: MakeCatalog, check: Callable[[MakeCatalog], None]) -> None:
    """The checks can fail."""
    with pytest.raises(AssertionError):
        check(make)
