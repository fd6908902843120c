"""Changes that wait for a store: how they are gathered into groups, who writes, and a file that another process has."""

import gc
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import current_thread

import pytest

from stock_service.rpc.errors import Fault, InternalFault, Overloaded
from stock_service.rpc.server_core.group_commit import GroupCommit, serving_again
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.waiting import Wait, Waiting, here
from stock_service.storage import sqlite
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side
from stock_service.trading.service import TRADE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.running import until
from tests.stores import WAIT_S, Gate, catalog_on, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

BUY = Side.BUY

FOR_EVER_S, BARELY_S = 1000.0, 0.02

TRADES = 50


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    """A catalog that does not wait for its disk."""
    catalog = catalog_on(tmp_path / "s", unsynced)
    yield catalog
    assert catalog.close()


def wait_for(catalog: SqliteCatalog, number: int) -> None:
    """Makes this number of trades wait without a thread."""
    for _ in range(number):
        here.wait = Wait(lambda _: None)
        try:
            with pytest.raises(Waiting):
                Exchange(catalog).trade("FishCo", 1, BUY)
        finally:
            here.wait = None


def test_a_group_waits_to_become_as_large_as_the_last(catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group waits while it is smaller than three quarters of the last; and no longer than until it is not."""
    monkeypatch.setattr(sqlite, "GATHER_S", FOR_EVER_S)
    wait_for(catalog, 8)
    catalog.flush(here=True)
    catalog._last_s = 2 * FOR_EVER_S
    wait_for(catalog, 5)
    with ThreadPoolExecutor(1) as pool:
        settled = pool.submit(catalog.flush, True)
        until(lambda: catalog._wanted == 8, "it gathers")
        wait_for(catalog, 2)
        assert not settled.done()
        assert len(catalog._waiting) == 7
        wait_for(catalog, 1)
        settled.result(WAIT_S)
    wait_for(catalog, 6)
    catalog.flush(here=True)
    assert Exchange(catalog).lookup("FishCo").volume == 22


def test_a_group_that_stays_small_is_written_all_the_same(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that stays small is written after a moment, and the next one of its size at once."""
    wait_for(catalog, 8)
    catalog.flush(here=True)
    for number in (9, 10):
        wait_for(catalog, 1)
        catalog.flush(here=True)
        assert Exchange(catalog).lookup("FishCo").volume == number
        monkeypatch.setattr(sqlite, "GATHER_S", FOR_EVER_S)
        catalog._last_s = 2 * FOR_EVER_S


def test_requests_with_and_without_a_thread_share_a_store(catalog: SqliteCatalog) -> None:
    """Requests with a thread and without one share a store. Neither kind leaves the other behind."""

    def with_a_thread(_: int) -> None:
        for _ in range(TRADES):
            Exchange(catalog).trade("FishCo", 1, BUY)

    def without(_: int) -> None:
        for _ in range(TRADES):
            wait_for(catalog, 1)
            catalog.flush(here=True)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(kind, 0) for kind in (with_a_thread, without, with_a_thread, without)]:
            each.result(WAIT_S)
    until(lambda: Exchange(catalog).lookup("FishCo").volume == 4 * TRADES, "all are written")


def test_a_request_that_cannot_go_on_holds_up_no_other(
    catalog: SqliteCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    """If a request cannot go on, its own group is released, the writing thread goes on, and the fault is logged."""
    went_on: list[int] = []

    def go_on(number: int) -> None:
        if number == 0:
            raise MemoryError
        went_on.append(number)

    for group in ((0, 1, 2), (3, 0, 4)):
        for number in group:
            here.wait = Wait(lambda _, number=number: go_on(number))  # type: ignore[misc]
            try:
                with pytest.raises(Waiting):
                    Exchange(catalog).trade("FishCo", 1, BUY)
            finally:
                here.wait = None
        catalog.flush(here=False)
        until(lambda last=group[-1]: went_on[-1:] == [last], "the group's last request goes on")  # type: ignore[misc]
    assert went_on == [1, 2, 3, 4]
    assert caplog.text.count("did not go on") == 2


def test_a_group_that_is_settled_elsewhere_holds_no_thread(tmp_path: Path) -> None:
    """While the disk is waited for, the caller goes on. Later changes are written after it, also at a close."""
    gate = Gate()
    gate.shut = True
    writers: set[str] = set()

    def hold(connection: sqlite3.Connection, statement: str) -> None:
        if statement == "COMMIT":
            writers.add(current_thread().name)
        gate.hook(connection, statement)

    catalog = catalog_on(tmp_path / "s", hooked(hold))
    for group in (2, 3):
        wait_for(catalog, group)
        catalog.flush(here=False)
        if group == 2:
            assert gate.reached()
        assert Exchange(catalog).lookup("FishCo").volume == 0
    gate.let()
    assert gate.reached()
    assert Exchange(catalog).lookup("FishCo").volume == 2
    wait_for(catalog, 1)
    gate.let(2)
    assert catalog.close()
    assert Exchange(catalog).lookup("FishCo").volume == 6
    assert writers == {"store-writer"}


def test_a_trade_that_waits_leaves_nothing_to_collect(catalog: SqliteCatalog) -> None:
    """A trade's memory is freed as it ends. Else the collector would run for each group, over all waiting trades."""
    methods = methods_of(stock_service(Exchange(catalog), catalog.flush))
    payload = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()
    codes: list[int] = []

    def serve(*_: object) -> None:
        codes.append(methods.answered(TRADE.encode(), payload, 0, 0, ("", 0))[0])

    serves = serving_again(serve)
    group = GroupCommit(8, lambda _: catalog.flush(True))
    gc.collect()
    gc.disable()
    try:
        for _ in range(8):
            group.run(lambda: serves(None, None, 0))  # type: ignore[arg-type]
        assert codes == [0] * 8
        assert gc.collect() == 0
    finally:
        gc.enable()


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
