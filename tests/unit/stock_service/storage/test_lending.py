"""A store's file that is another process's for a while, or for good."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from stock_service.rpc.errors import Fault, InternalFault, Overloaded
from stock_service.storage import sqlite
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side
from tests.conformance.running import until
from tests.stores import WAIT_S, Gate, catalog_on, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

BARELY_S = 0.02

BUY = Side.BUY


def held_up(path: Path) -> tuple[SqliteCatalog, Gate]:
    """A catalog whose commits wait, once it is open."""
    gate = Gate()
    catalog = catalog_on(path, hooked(gate.hook))
    gate.shut = True
    return catalog, gate


def test_changes_wait_while_another_process_has_the_file(tmp_path: Path) -> None:
    """While another process has the file changes wait, and Lookups do not. Taken back, it has the other's trades and
    ids."""
    catalog = catalog_on(tmp_path / "s", unsynced)
    exchange = Exchange(catalog)
    with ThreadPoolExecutor(2) as pool:
        assert exchange.trade("FishCo", 1, BUY, "own").sequence == 1
        assert catalog.lend()
        late = [pool.submit(exchange.trade, "FishCo", 1, BUY, name) for name in ("late", "others")]
        until(lambda: len(catalog._waiting) == 2, "both wait")
        with closing(catalog_on(tmp_path / "s", unsynced)) as other:
            assert Exchange(other).trade("FishCo", 5, BUY, "others").sequence == 2
            assert exchange.lookup("FishCo").volume == 1
        assert not any(future.done() for future in late)
        catalog.take_back()
        with pytest.raises(Fault, match="others"):
            late[1].result(WAIT_S)  # of another trade
        assert late[0].result(WAIT_S).sequence == 3
        assert exchange.lookup("FishCo").volume == 7
    assert catalog.close()


def test_what_waits_is_refused_once_the_file_is_another_process_s(tmp_path: Path) -> None:
    """Waiting changes are refused without an effect once the file is another process's. Lookups go on, and this
    process's close does not touch the file."""
    catalog = catalog_on(tmp_path / "s", unsynced)
    exchange = Exchange(catalog)
    with ThreadPoolExecutor(1) as pool:
        assert catalog.lend()
        late = pool.submit(exchange.trade, "FishCo", 1, BUY)
        until(lambda: len(catalog._waiting) == 1, "it waits")
        with closing(catalog_on(tmp_path / "s", unsynced)) as other:
            catalog.give_away()
            for trade in (late.result, lambda _: exchange.trade("FishCo", 1, BUY)):
                with pytest.raises(Overloaded, match="the next server has the store: nothing was done"):
                    trade(WAIT_S)
            assert (exchange.lookup("FishCo").volume, catalog.sick(), catalog.close()) == (0, False, True)
            assert Exchange(other).trade("FishCo", 5, BUY).sequence == 1


def test_a_file_that_cannot_be_taken_back_takes_no_change(tmp_path: Path) -> None:
    """A change that waited is told so, and the server is sick."""
    catalog = catalog_on(tmp_path / "s", unsynced)
    with ThreadPoolExecutor(1) as pool:
        assert catalog.lend()
        late = pool.submit(Exchange(catalog).trade, "FishCo", 1, BUY)
        until(lambda: len(catalog._waiting) == 1, "it waits")
        with closing(catalog_on(tmp_path / "s", unsynced)):
            catalog.take_back()
            with pytest.raises(InternalFault, match="takes no change until a restart"):
                late.result(WAIT_S)
            assert (catalog.sick(), catalog.close()) == (True, True)


def test_a_file_is_not_lent_while_a_commit_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a commit hangs the file is not lent, and changes are written as usual."""
    monkeypatch.setattr(sqlite, "CLOSE_S", BARELY_S)
    catalog, gate = held_up(tmp_path / "s")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(Exchange(catalog).trade, "FishCo", 1, BUY)
        assert gate.reached()
        assert not catalog.lend()
        gate.let(2)
        assert first.result(WAIT_S).sequence == 1
        assert Exchange(catalog).trade("FishCo", 1, BUY).sequence == 2
    monkeypatch.undo()
    assert catalog.close()


def test_what_waits_behind_a_commit_is_not_written_into_a_file_that_is_to_be_lent(tmp_path: Path) -> None:
    """The file is closed behind the commit under way; what waits is written once the file is taken back."""
    catalog, gate = held_up(tmp_path / "s")
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(Exchange(catalog).trade, "FishCo", 1, BUY)
        assert gate.reached()
        second = pool.submit(Exchange(catalog).trade, "FishCo", 1, BUY)
        until(lambda: len(catalog._waiting) == 1, "the second waits")
        lent = pool.submit(catalog.lend)
        until(lambda: catalog._held, "no other commit may begin")
        gate.let(2)
        assert lent.result(WAIT_S)
        assert (first.result(WAIT_S).sequence, second.done()) == (1, False)
        catalog.take_back()
        assert second.result(WAIT_S).sequence == 2
    assert catalog.close()
