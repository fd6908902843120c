"""The durable catalog: replies and Lookups are on the disk through every failure. Planted bugs are caught."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from stock_service.rpc.errors import InternalFault, Overloaded, Unavailable
from stock_service.rpc.waiting import Wait, Waiting, here
from stock_service.storage import sqlite, sqlite_file
from stock_service.storage.change import Change, Outcome
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.catalog import Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import LookupReply, Side, Status, TradeReply, UpdateReply
from tests.stores import WAIT_S, Gate, catalog_on, crashed, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

BARELY_S = 0.02

BUY = Side.BUY


@contextmanager
def gated(path: Path) -> Iterator[tuple[Exchange, Gate]]:
    """An exchange on a file whose commits are held up."""
    gate = Gate()
    catalog = catalog_on(path, hooked(gate.hook))
    gate.shut = True
    try:
        yield Exchange(catalog), gate
    finally:
        gate.shut = False
        assert catalog.close()


def volume_after_a_retry(path: Path) -> int:
    """The volume that a restart on this file shows once the trade of these checks was sent again."""
    catalog = catalog_on(path, unsynced)
    try:
        exchange = Exchange(catalog)
        assert exchange.trade("FishCo", 5, BUY, "id").volume == 5
        return exchange.lookup("FishCo").volume
    finally:
        catalog.close()


def tells_and_shows_what_a_crash_leaves(folder: Path) -> None:
    """Until its commit is on the disk a trade is not acknowledged, and no Lookup shows it. Then both happen."""
    with gated(folder / "s") as (exchange, gate), ThreadPoolExecutor(1) as pool:
        trade = pool.submit(exchange.trade, "FishCo", 5, BUY, "id")
        assert gate.reached()
        done, seen = waited(trade), exchange.lookup("FishCo")
        gate.let()
        again = gate.reached(0 if trade.done() else BARELY_S)
        if again:
            gate.let()
        assert trade.result(WAIT_S) == TradeReply(Status.OK, 5, 1)
        assert not done, "acknowledged before the commit"
        assert seen.volume == 0, "shown before the commit"
        assert exchange.lookup("FishCo") == LookupReply(Status.OK, 4250, 5, 1)


def a_request_without_a_thread_goes_on_when_it_is_on_the_disk(folder: Path) -> None:
    """The request leaves its thread at once, goes on after the commit and not before, and then is told."""
    gone_on = Event()

    def trade(wait: Wait) -> TradeReply:
        here.wait = wait
        try:
            return exchange.trade("FishCo", 5, BUY, "id")
        finally:
            here.wait = None

    with gated(folder / "s") as (exchange, gate), ThreadPoolExecutor(1) as pool:
        wait = Wait(lambda _: gone_on.set())
        with pytest.raises(Waiting):
            trade(wait)
        assert not gate.reached(0), "written before it is settled"
        settled = pool.submit(exchange._catalog.flush, True)  # type: ignore[attr-defined]
        assert gate.reached()
        early, seen = gone_on.is_set(), exchange.lookup("FishCo")
        gate.let()
        settled.result(WAIT_S)
        assert not early, "went on before the commit"
        assert seen.volume == 0, "shown before the commit"
        assert gone_on.is_set()
        assert trade(wait) == TradeReply(Status.OK, 5, 1)


def waited(trade: "Future[TradeReply]") -> bool:
    """Tell whether a trade ends within a moment."""
    try:
        trade.result(BARELY_S)
    except TimeoutError:
        return False
    return True


def a_retry_after_any_crash_has_one_effect(folder: Path) -> None:
    """Before and after each commit that a trade takes, a crash and a retry leave one trade."""
    images: list[Path] = []
    with gated(folder / "s") as (exchange, gate), ThreadPoolExecutor(1) as pool:
        trade = pool.submit(exchange.trade, "FishCo", 5, BUY, "id")
        while gate.reached(WAIT_S if not images else BARELY_S):
            images.append(crashed(folder / "s", folder / f"{len(images)}"))
            gate.let()
        assert trade.result(WAIT_S).volume == 5
        images.append(crashed(folder / "s", folder / f"{len(images)}"))
    assert [volume_after_a_retry(image) for image in images] == [5] * len(images)


CHECKS = (
    tells_and_shows_what_a_crash_leaves,
    a_request_without_a_thread_goes_on_when_it_is_on_the_disk,
    a_retry_after_any_crash_has_one_effect,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_is_durable(check: Callable[[Path], None], tmp_path: Path) -> None:
    """The check's docstring states the fact."""
    check(tmp_path)


def acknowledges_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waiting trades go on when the steps are applied."""
    apply = Outcome.apply

    def early(outcome: Outcome, change: Change) -> None:
        apply(outcome, change)
        change.go_on()

    monkeypatch.setattr(Outcome, "apply", early)
    monkeypatch.setattr(sqlite, "let_go", lambda _: None)


def publishes_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted catalog whose readers see changes before the commit."""
    apply = Outcome.apply

    def early(outcome: Outcome, change: Change) -> None:
        apply(outcome, change)
        standing = outcome._standing
        assert isinstance(standing, dict)
        standing.update(outcome.versions)

    monkeypatch.setattr(Outcome, "apply", early)


def ids_in_a_transaction_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trade is committed first, then that it was."""
    commit = StoreFile.commit

    def apart(file: StoreFile, versions: Mapping[str, Version], records: Mapping[str, bytes], window: int) -> None:
        commit(file, versions, {}, window)
        commit(file, {}, records, window)

    monkeypatch.setattr(StoreFile, "commit", apart)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (acknowledges_before_the_commit, a_request_without_a_thread_goes_on_when_it_is_on_the_disk),
        (publishes_before_the_commit, tells_and_shows_what_a_crash_leaves),
        (publishes_before_the_commit, a_request_without_a_thread_goes_on_when_it_is_on_the_disk),
        (ids_in_a_transaction_of_their_own, a_retry_after_any_crash_has_one_effect),
    ],
    ids=lambda part: part.__name__,
)
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    check: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checks can fail."""
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(tmp_path)


def test_a_lookup_never_waits_for_the_disk(tmp_path: Path) -> None:
    """While a commit is held up, Lookups, unknown stocks and refusals without a stock are answered."""
    with gated(tmp_path / "s") as (exchange, gate), ThreadPoolExecutor(1) as pool:
        trade = pool.submit(exchange.trade, "FishCo", 5, BUY)
        assert gate.reached()
        assert exchange.lookup("GameStart") == LookupReply(Status.OK, 1599, 0, 0)
        assert exchange.lookup("Missing").status is Status.UNKNOWN_STOCK
        assert exchange.trade("FishCo", 0, BUY) == TradeReply(Status.INVALID_QUANTITY)
        assert exchange.update("FishCo", -1) == UpdateReply(Status.INVALID_PRICE)
        gate.let()
        assert trade.result(WAIT_S).volume == 5


def test_changes_that_wait_share_a_commit(tmp_path: Path) -> None:
    """Eight trades sent during a commit are in the next one, and get the numbers of their order."""
    with gated(tmp_path / "s") as (exchange, gate), ThreadPoolExecutor(9) as pool:
        first = pool.submit(exchange.trade, "FishCo", 1, BUY)
        assert gate.reached()
        others = [pool.submit(exchange.trade, "FishCo", 1, BUY) for _ in range(8)]
        while len(exchange._catalog._waiting) < 8:  # type: ignore[attr-defined]
            Event().wait(0.001)
        gate.let()
        assert gate.reached()
        gate.let()
        replies = [trade.result(WAIT_S) for trade in [first, *others]]
        assert sorted((reply.volume, reply.sequence) for reply in replies) == [(n, n) for n in range(1, 10)]
        assert not gate.reached(0)


@pytest.mark.parametrize("committed", [False, True])
def test_a_failed_disk_closes_the_catalog_to_changes(tmp_path: Path, committed: bool) -> None:
    """The batch and all later changes are INTERNAL, lookups go on as before it; a restart tells what became of it."""
    failing = Event()

    def fail(connection: sqlite3.Connection, statement: str) -> None:
        if failing.is_set() and statement == "COMMIT":
            if committed:
                sqlite3.Connection.execute(connection, "COMMIT")
            raise sqlite3.OperationalError("disk I/O error")

    path = tmp_path / "s"
    catalog = catalog_on(path, hooked(fail))
    told: list[bool] = []
    catalog.on_sick = lambda: told.append(catalog.sick())
    exchange = Exchange(catalog)
    assert exchange.trade("FishCo", 1, BUY, "first") == TradeReply(Status.OK, 1, 1)
    failing.set()
    with pytest.raises(InternalFault, match=r"disk I/O error.*: whether this was done shows after a restart"):
        exchange.trade("FishCo", 2, BUY, "second")
    failing.clear()
    for _ in range(2):
        with pytest.raises(InternalFault, match="takes no change until a restart"):
            exchange.update("GameStart", 5)
    assert exchange.lookup("FishCo") == LookupReply(Status.OK, 4250, 1, 1)
    assert (catalog.close(), told) == (True, [True])
    again = catalog_on(path, unsynced)
    assert Exchange(again).lookup("FishCo").volume == (3 if committed else 1)
    assert Exchange(again).trade("FishCo", 2, BUY, "second") == TradeReply(Status.OK, 3, 2)
    assert again.close()


def test_a_full_disk_refuses_and_takes_trades_again(tmp_path: Path) -> None:
    """A trade that does not fit is RESOURCE_EXHAUSTED without effect; lookups go on; with room again, so do trades."""
    pages = [1_000_000]

    def limit(connection: sqlite3.Connection, statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            sqlite3.Connection.execute(connection, f"PRAGMA max_page_count = {pages[0]}")

    catalog = catalog_on(tmp_path / "s", hooked(limit), retry_window=10_000)
    exchange = Exchange(catalog)
    assert exchange.trade("FishCo", 1, BUY).volume == 1
    pages[0] = 1
    done, refused = 0, ""
    while done < 1000:
        try:
            exchange.trade("FishCo", 1, BUY, f"{done:064d}")
        except Overloaded as fault:
            refused = fault.detail
            break
        done += 1
    assert "is full: nothing was done" in refused
    assert exchange.lookup("FishCo").volume == done + 1
    pages[0] = 1_000_000
    assert exchange.trade("FishCo", 1, BUY, f"{done:064d}") == TradeReply(Status.OK, done + 2, done + 2)
    assert catalog.close()


def test_a_log_that_finds_no_room_in_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Trades go on, since the log has them; it is moved once there is room."""
    monkeypatch.setattr(sqlite_file, "_LOG_BYTES_MAX", 6 * 4200)
    full, moved = [False], []

    def stop(_: sqlite3.Connection, statement: str) -> None:
        if statement.startswith("PRAGMA wal_checkpoint"):
            moved.append(not full[0])
            if full[0]:
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error

    path = tmp_path / "s"
    catalog = catalog_on(path, hooked(stop))
    exchange = Exchange(catalog)
    assert exchange.trade("FishCo", 1, BUY, "0").sequence == 1
    assert moved == [True], "the file's mark"
    moved.clear()
    full[0] = True
    for number in range(1, 6):
        assert exchange.trade("FishCo", 1, BUY, str(number)).sequence == number + 1
    assert moved == [False, False]
    assert "could not be moved into its file (database or disk is full); it grows" in caplog.text
    full[0] = False
    assert [exchange.trade("FishCo", 1, BUY, str(number)).volume for number in range(4, 9)] == [5, 6, 7, 8, 9]
    assert moved == [False, False, True]
    assert catalog.close()
    again = catalog_on(path, unsynced)
    assert Exchange(again).trade("FishCo", 1, BUY, "0") == TradeReply(Status.OK, 1, 1)
    assert again.close()


def test_a_closed_catalog_refuses_changes_and_still_reads(tmp_path: Path) -> None:
    """A closed catalog refuses changes with UNAVAILABLE, and still reads. A second close has no effect."""
    catalog = catalog_on(tmp_path / "s", unsynced)
    assert catalog.close()
    assert catalog.close()
    with pytest.raises(Unavailable):
        Exchange(catalog).trade("FishCo", 1, BUY)
    assert Exchange(catalog).lookup("FishCo").status is Status.OK
