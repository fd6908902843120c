"""A store's file and its log that are changed under the process which has them open: nothing is acknowledged then."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from stock_service.rpc.errors import InternalFault, UsageError
from stock_service.storage import sqlite_file, sqlite_place
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side
from tests.stores import STOCKS, catalog_on, crashed, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

BUY = Side.BUY

DELETED, REPLACED = (
    "is not the file any more that this server opened: it was deleted or moved away",
    "is not the file any more that this server opened: another file is in its place",
)


def moves_a_copy_over(path: Path) -> None:
    """Replaces a file by its copy."""
    Path(shutil.copy(path, path.with_name("copy"))).rename(path)


@pytest.mark.parametrize(
    ("change", "names", "said"),
    [
        (Path.unlink, ["s"], f"/s {DELETED}"),
        (Path.unlink, ["s", "s-wal"], f"/s {DELETED}"),
        (Path.unlink, ["s-wal"], f"/s-wal {DELETED}"),
        (moves_a_copy_over, ["s"], f"/s {REPLACED}"),
        (moves_a_copy_over, ["s-wal"], f"/s-wal {REPLACED}"),
    ],
)
@pytest.mark.parametrize("trades_on", [False, True])
def test_what_was_acknowledged_is_saved_and_no_start_passes_it_by(
    trades_on: bool,
    change: Callable[[Path], None],
    names: list[str],
    said: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once the file is not in its place, trades are INTERNAL, with the reason and a remedy, and Lookups go on.
    Acknowledged trades are saved in a file of their own, at the next trade or at the close, when the log says so. A
    start is refused until that file is in the store's place, or moved away. Then the store goes on from it, and a
    refused trade has one effect."""
    path, saved = tmp_path / "s", tmp_path / "s.saved"
    catalog = catalog_on(path, unsynced, retry_window=1000)
    for number in range(1, 201):
        assert Exchange(catalog).trade("FishCo", 1, BUY, f"{number}").volume == number
    for name in names:
        change(path.with_name(name))
    for _ in range(2 * trades_on):
        with pytest.raises(InternalFault, match=f"{said}; .* stop the server, and put .*/s.saved there, which has all"):
            Exchange(catalog).trade("FishCo", 1, BUY, "refused")
    assert Exchange(catalog).lookup("FishCo").volume == 200
    assert catalog.sick() is trades_on
    assert catalog.close()
    assert catalog.sick()
    assert "is not the file any more that this server opened" in caplog.text
    left = sorted(os.listdir(tmp_path))
    for _ in range(2):
        with pytest.raises(UsageError, match=r"one without s.saved, which has all of a server .*, or move it away"):
            catalog_on(path, unsynced)
    assert sorted(os.listdir(tmp_path)) == left
    path.with_name("s-wal").unlink(missing_ok=True)
    saved.rename(path)
    again = catalog_on(path, unsynced, retry_window=1000)
    try:
        exchange = Exchange(again)
        assert [exchange.trade("FishCo", 1, BUY, f"{number}").volume for number in (1, 200)] == [1, 200]
        assert exchange.trade("FishCo", 1, BUY, "refused").volume == 201
    finally:
        assert again.close()


def test_what_cannot_be_saved_is_said_and_tried_again(tmp_path: Path) -> None:
    """A state that cannot be saved is named, and saved at the close, as where the folder was moved away. File and log
    are whole there."""
    path = tmp_path / "folder" / "s"
    path.parent.mkdir()
    catalog = catalog_on(path, unsynced)
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    moved = path.parent.rename(tmp_path / "moved")
    with pytest.raises(InternalFault, match=r"cannot be saved in .*/s.saved \(No such file .*and stop"):
        Exchange(catalog).trade("FishCo", 1, BUY)
    path.parent.mkdir()
    assert catalog.close()
    assert volume(path.with_name("s.saved")) == volume(moved / "s") == 2


def test_a_link_that_names_another_file_is_seen(tmp_path: Path) -> None:
    """The next start would open that one."""
    (tmp_path / "link").symlink_to("s")
    catalog = catalog_on(tmp_path / "link", unsynced)
    (tmp_path / "new").symlink_to("s")
    (tmp_path / "new").rename(tmp_path / "link")
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    (tmp_path / "other").touch()
    (tmp_path / "new").symlink_to("other")
    (tmp_path / "new").rename(tmp_path / "link")
    with pytest.raises(InternalFault, match=r"/link is not the file .*: another file is in its place"):
        Exchange(catalog).trade("FishCo", 1, BUY)
    assert catalog.close()


def test_two_files_of_one_name_are_not_served_at_once(tmp_path: Path) -> None:
    """A start on a copy that was moved over a served file is refused: the log has that server's trades. The copy and
    the log stay as they are when the first one ends."""
    path = tmp_path / "s"
    catalog = catalog_on(path, unsynced)
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    moves_a_copy_over(path)
    copy, log = path.read_bytes(), path.with_name("s-wal").read_bytes()
    with pytest.raises(UsageError, match="no other process has open: stop the server that serves it"):
        catalog_on(path, unsynced)
    assert path.with_name("s-wal").read_bytes() == log
    assert catalog.close()
    assert (path.read_bytes(), path.with_name("s-wal").read_bytes()) == (copy, log)


def test_a_group_is_looked_after_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many changes share the commit."""
    asked: list[Mapping[Path, os.stat_result]] = []

    def counted(own: Mapping[Path, os.stat_result]) -> str:
        asked.append(own)
        return sqlite_place.misplaced(own)

    catalog = catalog_on(tmp_path / "s", unsynced)
    monkeypatch.setattr(sqlite_file, "misplaced", counted)
    catalog._file.commit({stock.name: (stock, 1) for stock in STOCKS}, {str(n): b"record" for n in range(50)}, 100)
    assert [list(own) for own in asked] == [[tmp_path / "s", tmp_path / "s-wal"]]
    assert catalog.close()


def volume(path: Path) -> int:
    """The volume that a start on a file shows."""
    catalog = catalog_on(path, unsynced)
    assert catalog.close()
    return Exchange(catalog).lookup("FishCo").volume


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The files that a killed server leaves of a store after one trade."""
    catalog = catalog_on(tmp_path / "s", unsynced)
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    left = crashed(tmp_path / "s", tmp_path / "left")
    assert catalog.close()
    return left


def test_a_killed_servers_file_without_its_log_is_refused(killed: Path) -> None:
    """The line names the log, and says what to do; to go on without it is to make it anew. Nothing is changed."""
    log = killed.with_name("s-wal")
    trades, content = log.read_bytes(), killed.read_bytes()
    log.unlink()
    for _ in range(2):
        with pytest.raises(UsageError, match=r"s-wal is gone, and with it maybe the newest trades: .*: touch .*/s-wal"):
            catalog_on(killed, unsynced)
    assert (killed.read_bytes(), log.exists()) == (content, False)
    log.write_bytes(trades)
    assert volume(killed) == 1


def test_a_log_without_a_head_is_no_log(killed: Path) -> None:
    """A marked file whose log has no head is refused: it had one."""
    log = killed.with_name("s-wal")
    trades = log.read_bytes()
    for content in (bytes(len(trades)), bytes(32) + trades[32:], trades[:20]):
        log.write_bytes(content)
        with pytest.raises(UsageError, match="its head of its log s-wal is damaged"):
            catalog_on(killed, unsynced)
        assert log.read_bytes() == content
    log.write_bytes(trades)
    assert volume(killed) == 1


def test_a_crash_while_a_file_is_marked_leaves_the_mark_to_the_next(tmp_path: Path) -> None:
    """After a crash while a file is marked only the log tells that the file is open. The next server marks the file."""
    path = tmp_path / "s"
    left: list[Path] = []

    def keep(_: sqlite3.Connection, statement: str) -> None:
        if statement.startswith("PRAGMA wal_checkpoint") and path.exists() and not left:
            left.append(crashed(path, tmp_path / "left"))

    catalog = catalog_on(path, hooked(keep))
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    assert catalog.close()
    assert left[0].read_bytes()[68:72] == b"Stoc"
    catalog = catalog_on(left[0], unsynced)
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    again = crashed(left[0], tmp_path / "again")
    assert catalog.close()
    again.with_name("s-wal").unlink()
    with pytest.raises(UsageError, match="s-wal is gone"):
        catalog_on(again, unsynced)


def test_an_empty_log_says_that_the_file_alone_is_meant(killed: Path) -> None:
    """The store goes on from the file, and is marked anew at its first commit."""
    log = killed.with_name("s-wal")
    log.write_bytes(b"")
    catalog = catalog_on(killed, unsynced)
    assert Exchange(catalog).lookup("FishCo").volume == 0
    assert Exchange(catalog).trade("FishCo", 5, BUY).volume == 5
    again = crashed(killed, killed.with_name("again"))
    assert catalog.close()
    assert volume(killed) == volume(again) == 5


@pytest.mark.parametrize("closes", ["StoreFile", "a start"])
def test_a_clean_close_clears_the_mark(closes: str, killed: Path) -> None:
    """A clean close clears the mark, also of a check, which changes nothing: the file is whole then, and has no log."""
    if closes == "StoreFile":
        with StoreFile.opened(killed, unsynced) as file:
            file.load()
    else:
        assert volume(killed) == 1
    assert os.listdir(killed.parent) == ["s"]
    assert killed.read_bytes()[68:72] == b"Stoc"
    assert volume(killed) == 1


def test_a_file_of_before_there_were_marks_opens(killed: Path) -> None:
    """A file from before there were marks opens, with the log of a killed server, and without one."""
    content = bytearray(killed.read_bytes())
    assert content[68:72] == b"StoO"
    content[68:72] = b"Stoc"
    killed.write_bytes(content)
    log = killed.with_name("s-wal")
    trades = log.read_bytes()
    log.unlink()
    assert volume(killed) == 0
    killed.write_bytes(content)
    log.write_bytes(trades)
    assert volume(killed) == 1


def test_a_mark_that_cannot_be_cleared_shuts_nobody_out(tmp_path: Path) -> None:
    """A log is left, which is empty where SQLite has moved it into the file."""
    closing: list[bool] = []

    def fail(_: sqlite3.Connection, statement: str) -> None:
        if closing and statement.startswith("PRAGMA application_id"):
            raise sqlite3.OperationalError("disk I/O error")

    catalog = catalog_on(tmp_path / "s", hooked(fail))
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    closing.append(True)
    assert catalog.close()
    assert (tmp_path / "s-wal").read_bytes() == b""
    assert volume(tmp_path / "s") == 1
    assert os.listdir(tmp_path) == ["s"]


def test_a_copy_is_closed(killed: Path) -> None:
    """A copy of a killed server's store, and of a file with commits, is closed: it has no log."""
    with StoreFile.opened(killed, unsynced) as file:
        file.load()
        file.copy_to(killed.with_name("copy"))
        file.commit({}, {"id": b"record"}, 10)
        file.copy_to(killed.with_name("again"))
        left = crashed(killed, killed.with_name("left"))
    assert volume(killed.with_name("copy")) == volume(killed.with_name("again")) == volume(left) == 1


@pytest.mark.slow
def test_a_copy_of_earlier_takes_up_all_of_the_log_or_is_refused(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier copy is moved over the file of a running server. With the log begun anew or not, a start on the two
    serves every acknowledged trade, or is refused."""
    monkeypatch.setattr(sqlite_file, "_LOG_BYTES_MAX", 10 * 4096)
    taken = 0
    for turn in range(30):
        path = tmp_path / f"{turn}" / "s"
        path.parent.mkdir()
        catalog = catalog_on(path, unsynced)
        copied, trades = rng.randrange(10), rng.randrange(10, 20)
        for number in range(trades):
            if number == copied:
                shutil.copy(path, path.with_name("copy"))
            assert Exchange(catalog).trade("FishCo", 1, BUY, rng.choice(["", f"{number}"])).volume == number + 1
        path.with_name("copy").rename(path)
        assert catalog.close()
        path.with_name("s.saved").unlink()
        try:
            assert volume(path) == trades
            taken += 1
        except UsageError as error:
            assert "a sound store" in str(error)  # noqa: PT017
    assert 0 < taken < 30
