"""A store's later starts, and its replies over any of them: the kept state, new stocks, and a store in memory beside
it."""

import sqlite3
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stock_service.rpc.errors import InvalidRequest, UsageError
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.catalog import MemoryCatalog, Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.model import Side, Stock, TradeReply
from tests.stores import STOCKS, catalog_on, crashed, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

BUY = Side.BUY


def fitted(path: Path, *stocks: Stock) -> dict[str, Version | None]:
    """The stocks after a start with these."""
    catalog = SqliteCatalog(path, STOCKS, stocks or None)
    try:
        return {name: catalog.read(name) for name in catalog.names()}
    finally:
        catalog.close()


def test_a_later_start_fits_the_store_to_the_catalog_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Prices and volumes hold; limits and new stocks come from the file; a limit under the volume stays, and is named;
    without a file the store stands as it is."""
    path = tmp_path / "s"
    assert list(fitted(path)) == ["GameStart", "FishCo"]
    catalog = catalog_on(path, unsynced)
    Exchange(catalog).trade("GameStart", 7, BUY)
    Exchange(catalog).update("FishCo", 5)
    catalog.close()
    found = fitted(path, Stock("New", 1, 2), Stock("FishCo", 9999, 8), Stock("GameStart", 9999, 6))
    assert found == {
        "GameStart": (Stock("GameStart", 1599, 10, 7), 1),
        "FishCo": (Stock("FishCo", 5, 8, 0), 2),
        "New": (Stock("New", 1, 2), 0),
    }
    assert "GameStart: its volume is 7, so that its limit stays 10" in caplog.text
    assert fitted(path) == found


def test_a_stock_that_the_file_lacks_is_refused_by_name(tmp_path: Path) -> None:
    """A stock that the file lacks is refused by name, and nothing is changed."""
    before = fitted(tmp_path / "s")
    with pytest.raises(UsageError, match=r"--catalog: missing, allowed: a file with all stocks of .*: 'FishCo' is one"):
        fitted(tmp_path / "s", STOCKS[0], Stock("New", 1, 2))
    assert fitted(tmp_path / "s") == before


def test_a_start_that_cannot_write_is_refused(tmp_path: Path) -> None:
    """A full disk and a name that no file can have: a line that names the file, and the next start has it."""

    def full(_: sqlite3.Connection, statement: str) -> None:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")

    before = fitted(tmp_path / "s")
    with pytest.raises(UsageError, match=r"/s', allowed: a disk that takes the stocks of --catalog .*disk I/O error"):
        SqliteCatalog(
            tmp_path / "s",
            STOCKS,
            (*STOCKS, Stock("New", 1, 2)),
            open_file=partial(StoreFile.opened, connect=hooked(full)),
        )
    assert fitted(tmp_path / "s") == before
    with pytest.raises(UsageError, match=r"allowed: a file that can be opened \(File name too long"):
        fitted(tmp_path / ("s" * 300))


NAMES = st.sampled_from(["GameStart", "FishCo", "Missing"])
REQUESTS = st.one_of(
    st.tuples(st.just("trade"), NAMES, st.integers(0, 4), st.sampled_from(["", "a", "b", "é"])),
    st.tuples(st.just("update"), NAMES, st.integers(-1, 3), st.just("")),
    st.tuples(st.sampled_from(["restart", "crash"]), NAMES, st.just(0), st.just("")),
)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(REQUESTS, max_size=25))
def test_it_answers_as_one_in_memory_would(requests: list[tuple[str, str, int, str]]) -> None:
    """Any row of requests gets the answers of a catalog in memory, restarts and crashes between them or not."""
    model = Exchange(MemoryCatalog(STOCKS, Mutex, 2))
    with TemporaryDirectory() as folder:
        path = Path(folder, "s")
        catalog = catalog_on(path, unsynced, retry_window=2)
        for turn, (kind, name, number, request_id) in enumerate(requests):
            if kind == "trade":
                found, expected = (answer(e, name, number, request_id) for e in (Exchange(catalog), model))
                assert found == expected
            elif kind == "update":
                assert Exchange(catalog).update(name, number) == model.update(name, number)
            else:
                image = crashed(path, Path(folder, f"{turn}"))
                catalog.close()
                path = image if kind == "crash" else path
                catalog = catalog_on(path, unsynced, retry_window=2)
            assert Exchange(catalog).lookup(name) == model.lookup(name)
        catalog.close()


def answer(exchange: Exchange, name: str, quantity: int, request_id: str) -> TradeReply | str:
    """A trade's reply, or the fault's text."""
    try:
        return exchange.trade(name, quantity, BUY, request_id)
    except InvalidRequest as fault:
        return str(fault)
