"""A store whose file or log is deleted or replaced: under a server, and before a start."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from stock_service.rpc.errors import InternalFault, UsageError
from stock_service.storage import sqlite_format
from stock_service.storage.command import COMMANDS
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.storage.sqlite_place import CLOSED_ID
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side
from tests.stores import catalog_on, crashed, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

BUY = Side.BUY

PAGE = 4096


def traded(path: Path, volume: int = 3) -> SqliteCatalog:
    """A catalog on a file, with acknowledged trades of which the log has some."""
    catalog = catalog_on(path, unsynced)
    for number in range(volume):
        Exchange(catalog).trade("FishCo", 1, BUY, f"{number}")
    return catalog


def volume_in(path: Path) -> int:
    """What a start on this file shows, and that it takes trades."""
    catalog = catalog_on(path, unsynced)
    try:
        exchange = Exchange(catalog)
        before = exchange.lookup("FishCo").volume
        assert exchange.trade("FishCo", 1, BUY).volume == before + 1
        return before
    finally:
        assert catalog.close()


def refusal(path: Path) -> str:
    """The one line that a start on this file is refused with."""
    with pytest.raises(UsageError) as refused:
        catalog_on(path, unsynced)
    (line,) = str(refused.value).splitlines()
    return line


def log_of(path: Path) -> Path:
    """The log of a store."""
    return path.with_name(f"{path.name}-wal")


def delete(path: Path) -> Path:
    """Deletes a file; gives its name."""
    path.unlink()
    return path


def replace(path: Path) -> Path:
    """Moves a copy over a file; gives its name."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.rename(path)
    return path


CHANGES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "the file is deleted": (delete, "was deleted or moved (No such file or directory)"),
    "a copy is moved over the file": (replace, "was replaced by another file"),
    "the log is deleted": (lambda path: delete(log_of(path)), "was deleted or moved (No such file or directory)"),
    "a copy is moved over the log": (lambda path: replace(log_of(path)), "was replaced by another file"),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_a_change_under_the_server_is_no_silent_loss(
    change: Callable[[Path], Path], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next trade is not acknowledged, and names the file; later ones neither; health and exit say so; all that was
    acknowledged is saved, and no start passes it by."""
    path, saved = tmp_path / "s", tmp_path / "s.saved"
    catalog = traded(path)
    changed = change(path)
    exchange = Exchange(catalog)
    for _ in range(2):
        with pytest.raises(InternalFault) as refused:
            exchange.trade("FishCo", 1, BUY, "unacknowledged")
        assert f"{changed} {said}; all it had is in {saved}: stop the server, and put" in str(refused.value)
    assert "takes no change until a restart" in str(refused.value)
    assert exchange.lookup("FishCo").volume == 3
    assert catalog.sick()
    assert not catalog.close()
    assert str(changed) in caplog.text
    assert "one without s.saved, which has all that a server had when its file or log was changed" in refusal(path)
    log_of(path).unlink(missing_ok=True)
    saved.rename(path)
    catalog = catalog_on(path, unsynced)
    try:
        assert [Exchange(catalog).trade("FishCo", 1, BUY, f"{n}").volume for n in range(3)] == [1, 2, 3]
        assert Exchange(catalog).trade("FishCo", 1, BUY, "unacknowledged").volume == 4
    finally:
        assert catalog.close()


def test_a_store_that_is_deleted_while_nobody_trades_is_saved_at_the_stop(tmp_path: Path) -> None:
    """File and log: no later trade has to find that out, and the next start does not begin anew."""
    path = tmp_path / "s"
    catalog = traded(path)
    delete(log_of(path))
    delete(path)
    assert not catalog.sick()
    assert not catalog.close(), "all was well"
    assert "one without s.saved, which has all that a server had" in refusal(path)
    assert volume_in(tmp_path / "s.saved") == 3


def test_what_cannot_be_saved_is_said_and_tried_again_at_the_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where its folder was moved away; there file and log are whole."""
    path = tmp_path / "folder" / "s"
    path.parent.mkdir()
    catalog = traded(path)
    moved = path.parent.rename(tmp_path / "moved")
    with pytest.raises(InternalFault, match=r"could not be saved in .*s\.saved \(No such file or directory\)"):
        Exchange(catalog).trade("FishCo", 1, BUY)
    path.parent.mkdir()
    assert not catalog.close()
    assert "all it had is in" in caplog.text
    assert volume_in(path.with_name("s.saved")) == 4  # with the trade in doubt
    assert volume_in(moved / "s") == 4


def test_a_copy_in_the_files_place_gets_no_second_server(tmp_path: Path) -> None:
    """Not while the first one has the log, which it would write too; the copy is as it was."""
    path = tmp_path / "s"
    catalog = traded(path)
    replace(path)
    assert "a file that no other process has open: stop the server" in refusal(path)
    assert not catalog.close()
    assert volume_in(tmp_path / "s.saved") == 3


# ---- a log that is missing at the start


def emptied(log: Path) -> None:
    """Leaves nothing in a log."""
    os.truncate(log, 0)


def zeroed(log: Path) -> None:
    """Leaves a log without its head."""
    log.write_bytes(bytes(32) + log.read_bytes()[32:])


@pytest.mark.parametrize("lose", [delete, emptied, zeroed])
def test_a_start_without_the_log_of_a_crash_is_refused_by_name(
    lose: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what is missing and what to do; so do the commands; after ``accept-loss`` the store goes on."""
    catalog = traded(tmp_path / "s")
    left = crashed(tmp_path / "s", tmp_path / "left")
    assert catalog.close()
    lose(log_of(left))
    for _ in range(2):  # being refused changes nothing
        said = refusal(left)
        assert "one with its log s-wal: a server had this file open, and that is missing or empty" in said
        assert (
            f"may be lost; put it back, restore a backup, or go on without by: python -m stock_service store "
            f"accept-loss {left}" in said
        )
        with pytest.raises(UsageError, match="one with its log s-wal"):
            COMMANDS["check"](left, None)
    COMMANDS["accept-loss"](left, None)
    assert "goes on after commit 0: what its log had is lost, if it is missing" in capsys.readouterr().out
    assert volume_in(left) == 0


def test_a_crash_before_and_after_the_first_trade_starts_as_ever(tmp_path: Path) -> None:
    """With the log; and where nothing was acknowledged, without it. ``accept-loss`` loses nothing that is there."""
    images = []
    path = tmp_path / "s"
    catalog = traded(path, 0)
    for number in range(3):
        images.append(crashed(path, tmp_path / f"{number}"))
        Exchange(catalog).trade("FishCo", 1, BUY)
    assert catalog.close()
    log_of(images[0]).unlink()
    COMMANDS["accept-loss"](images[2], None)
    assert [volume_in(image) for image in images] == [0, 1, 2]


@pytest.mark.slow
def test_every_crash_on_the_way_starts_as_ever(tmp_path: Path) -> None:
    """At each statement from the first trade to the end of the close: the mark is there only with the log."""
    path = tmp_path / "s"
    images: list[tuple[Path, int]] = []
    told = 0

    def keep(_: sqlite3.Connection, __: str) -> None:
        if told >= 0 and path.exists():
            images.append((crashed(path, tmp_path / f"{len(images)}"), told))

    catalog = catalog_on(path, hooked(keep))
    for number in range(1, 4):
        Exchange(catalog).trade("FishCo", 1, BUY)
        told = number
    assert catalog.close()
    images.append((crashed(path, tmp_path / "closed"), told))
    assert len(images) > 20
    for image, acknowledged in images:
        assert volume_in(image) in (acknowledged, acknowledged + 1)


def test_a_file_copied_under_its_server_is_no_backup(tmp_path: Path) -> None:
    """It lacks what the log has, and says so; one made by ``backup`` after a crash has all, and opens."""
    path = tmp_path / "s"
    catalog = traded(path)
    shutil.copy(path, tmp_path / "alone")
    left = crashed(path, tmp_path / "left")
    assert catalog.close()
    assert "one with its log alone-wal" in refusal(tmp_path / "alone")
    COMMANDS["backup"](left, tmp_path / "backup")
    assert volume_in(tmp_path / "backup") == 3
    shutil.copy(path, tmp_path / "closed")
    assert volume_in(tmp_path / "closed") == 3


def test_a_log_outlives_a_close_that_cannot_say_so(tmp_path: Path) -> None:
    """On a disk that fails at the end, a file that says that it is open keeps its log: the next start has both."""
    path = tmp_path / "s"

    def fail(_: sqlite3.Connection, statement: str) -> None:
        if statement.endswith(f"= {CLOSED_ID}"):
            raise sqlite3.OperationalError("disk I/O error")

    assert catalog_on(path, unsynced).close()
    catalog = catalog_on(path, hooked(fail))
    assert Exchange(catalog).trade("FishCo", 1, BUY).volume == 1
    assert catalog.close()
    assert sorted(found.name for found in tmp_path.iterdir()) == ["s", "s-wal"]
    assert volume_in(path) == 1
    assert [found.name for found in tmp_path.iterdir()] == ["s"]


# ---- the length of the log


@pytest.mark.slow
def test_the_log_stays_short(tmp_path: Path) -> None:
    """However many trades there are, it has its bound and one commit more; and so has what is left of a longer one."""
    path = tmp_path / "s"
    catalog = catalog_on(path, unsynced, retry_window=10_000)
    bound, longest = sqlite_format.LOG_BYTES_MAX + 10 * (PAGE + 24), 0
    for number in range(1000):
        Exchange(catalog).trade("FishCo", 1, BUY, f"{number}")
        longest = max(longest, log_of(path).stat().st_size)
    assert catalog.close()
    assert sqlite_format.LOG_BYTES_MAX <= 1 << 20 < longest <= bound
    with StoreFile.opened(path, unsynced) as file:
        file.load()
        file.commit({}, {f"long {n:059}": bytes(200) for n in range(10_000)}, 20_000)
        assert log_of(path).stat().st_size > bound
        assert file.untidy()
        file.checkpoint()
        file.commit({}, {"short": b""}, 20_000)
        assert not file.untidy()
        assert log_of(path).stat().st_size == sqlite_format.LOG_BYTES_MAX
