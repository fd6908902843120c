"""The file of a store: its owner, its content, and that damage is found and not served."""

import fcntl
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.model import Stock
from tests.stores import STOCKS, hooked, unsynced

pytestmark = pytest.mark.usefixtures("no_leaks")

RECORD = b"a record"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of two stocks and three request ids, closed."""
    made = tmp_path / "store"
    StoreFile.create(made, STOCKS, unsynced)
    with StoreFile.opened(made, unsynced) as file:
        file.load()
        file.commit({"FishCo": (Stock("FishCo", 7, 9, 5), 1)}, {f"id {n}": RECORD for n in range(4)}, 3)
    return made


def edited(path: Path, *statements: str) -> Path:
    """The file, after another program's statements."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def refusal(path: Path) -> str:
    """The refusal of opening and loading a file."""
    with pytest.raises(UsageError) as refused, StoreFile.opened(path, unsynced) as file:
        file.load()
    return str(refused.value)


def test_what_is_written_is_loaded(path: Path) -> None:
    """The written state is loaded: stocks in order, with their commits; the last ids, oldest first; the last commit's
    number."""
    with StoreFile.opened(path, unsynced) as file:
        loaded = file.load()
    assert list(loaded.versions.items()) == [("GameStart", (STOCKS[0], 0)), ("FishCo", (Stock("FishCo", 7, 9, 5), 1))]
    assert list(loaded.records.items()) == [(f"id {n}", RECORD) for n in (1, 2, 3)]
    assert loaded.sequence == 1


def test_its_owner_alone_may_read_it(path: Path) -> None:
    """Only its owner may read the file and its log, also where the process would let others."""
    with StoreFile.opened(path, unsynced) as file:
        file.load()
        file.commit({}, {"id": RECORD}, 3)
        files = sorted(path.parent.iterdir())
        assert [found.name for found in files] == ["store", "store-wal"]
        assert [stat.S_IMODE(found.stat().st_mode) for found in files] == [0o600] * 2


def test_nobody_else_reads_or_writes_it_meanwhile(path: Path) -> None:
    """Another program with SQLite finds the file locked."""
    with StoreFile.opened(path, unsynced) as file, closing(sqlite3.connect(path, timeout=0)) as other:
        file.load()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("SELECT * FROM stocks")


def test_a_start_that_was_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    """A file half made has another name; the next start makes it anew."""
    path = tmp_path / "store"

    def kill(_: sqlite3.Connection, statement: str) -> None:
        if statement.startswith("REPLACE INTO state"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StoreFile.create(path, STOCKS, hooked(kill))
    assert not path.exists()
    assert (tmp_path / "store.new").stat().st_size > 0
    StoreFile.create(path, STOCKS, unsynced)
    assert [found.name for found in tmp_path.iterdir()] == ["store"]


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    """A file of another program with the name of a store that is made is not written over."""
    other = tmp_path / "store.new"
    other.write_text("mine")
    with pytest.raises(UsageError, match=r"store\.new"):
        StoreFile.create(tmp_path / "store", STOCKS, unsynced)
    assert other.read_text() == "mine"


def test_a_log_without_its_file_is_put_into_no_new_one(tmp_path: Path) -> None:
    """A log without its file is put into no new one. Else a new store would begin with the trades of a lost one."""
    path = tmp_path / "store"
    log = tmp_path / "store-wal"
    log.write_bytes(RECORD)
    with pytest.raises(UsageError, match=r"one that is there, since its log is: put it back, or move store-wal away"):
        StoreFile.create(path, STOCKS, unsynced)
    assert log.read_bytes() == RECORD
    log.unlink()
    StoreFile.create(path, STOCKS, unsynced)
    assert [found.name for found in tmp_path.iterdir()] == ["store"]


def test_a_link_to_a_store_is_that_store(tmp_path: Path) -> None:
    """A store through a link is the same store: one process has it, by any name. One made through a link stands at the
    target, and the link stays."""
    path, link = tmp_path / "folder" / "store", tmp_path / "link"
    path.parent.mkdir()
    link.symlink_to(path)
    with open(path.with_name("store.new"), "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="no other process has open"):
            StoreFile.create(link, STOCKS, unsynced)  # which another start makes, by its own name
    StoreFile.create(link, STOCKS, unsynced)
    assert link.is_symlink()
    assert sorted(found.name for found in (*tmp_path.iterdir(), *path.parent.iterdir())) == ["folder", "link", "store"]
    for held, wanted in ((link, path), (path, link)):
        with StoreFile.opened(held, unsynced), pytest.raises(UsageError, match="no other process has open"):
            StoreFile.opened(wanted, unsynced)
    path.with_name("store-wal").write_bytes(b"log")
    path.unlink()
    with pytest.raises(UsageError, match="move store-wal away"):
        StoreFile.create(link, STOCKS, unsynced)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """A missing, an empty and a foreign file are refused, and not changed; and so is a database of another program, by
    its application id."""
    assert "No such file or directory" in refusal(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_bytes(b"no database at all")
    edited(tmp_path / "other", "CREATE TABLE stocks (number INTEGER)")
    for name, said in (
        ("empty", "this file is something else"),
        ("text", "SQLite says: file is not a database"),
        ("other", "this file is something else"),
    ):
        content = (tmp_path / name).read_bytes()
        assert said in refusal(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content


DAMAGED = "allowed: a sound store, but "


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE stocks SET volume = 4 WHERE number = 2", DAMAGED + "row 2 of stocks is not as it was written"),
        ("UPDATE requests SET record = x'00' WHERE number = 3", DAMAGED + "row 3 of requests is not as it was written"),
        ("UPDATE state SET sequence = 0", DAMAGED + "row 1 of state is not as it was written"),
        ("DELETE FROM stocks WHERE number = 1", DAMAGED + "a stock is missing"),
        ("DELETE FROM requests WHERE number = 4", DAMAGED + "a request id is missing"),
        ("DELETE FROM requests WHERE number = 3", DAMAGED + "a request id is missing"),
        ("DELETE FROM state", DAMAGED + "the row of state is missing"),
        ("DROP TABLE requests", DAMAGED + "SQLite says: no such table: requests"),
        ("PRAGMA user_version = 3", "allowed: a store of format 1; this one has 3: a newer program made it"),
    ],
)
def test_damage_is_found_and_named(path: Path, statement: str, said: str) -> None:
    """A store that is not as it was written is not served. A newer format is refused by its number."""
    assert said in refusal(edited(path, statement))


def test_an_older_row_of_a_stock_is_found(path: Path) -> None:
    """A write that the disk lost leaves a sound row of before, and is found by the sum of all."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (old,) = connection.execute("SELECT * FROM stocks WHERE number = 2")
    with StoreFile.opened(path, unsynced) as file:
        file.load()
        file.commit({"FishCo": (Stock("FishCo", 7, 9, 6), 2)}, {}, 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("REPLACE INTO stocks VALUES (?, ?, ?, ?, ?, ?, ?)", old)
    assert "a stock is missing, or is an older one" in refusal(path)


def test_a_flipped_bit_or_a_cut_is_refused_or_changes_nothing(path: Path) -> None:
    """A flipped bit or a cut at any place of the file is refused, or the loaded state is the written one."""
    whole = path.read_bytes()
    with StoreFile.opened(path, unsynced) as file:
        written = file.load()
    used = [place for place, byte in enumerate(whole) if byte]
    damaged = [whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :] for place in used[::9]]
    damaged += [whole[:size] for size in range(0, len(whole), 4000)]
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            with StoreFile.opened(path, unsynced) as file:
                assert file.load() == written
        except UsageError:
            refused += 1
    assert refused > len(damaged) // 3


def test_damage_that_sqlite_quotes_is_refused(path: Path) -> None:
    """SQLite names the part of the schema that it does not understand; the name may be no text."""
    path.write_bytes(path.read_bytes().replace(b"tablestatestate", b"table\xf3tatestate"))
    assert "a sound store; SQLite says: " in refusal(path)


@pytest.mark.parametrize("ids", [1, 100])
def test_the_log_does_not_grow_for_ever(ids: int, path: Path) -> None:
    """The log is moved into the file at each MiB, and begins anew, so that a disk of 8 MiB has room for both. In small
    commits, of a trade each, and in large ones."""
    longest = 0
    with StoreFile.opened(path, unsynced) as file:
        file.load()
        for turn in range(1000 if ids == 1 else 100):
            stock = Stock("FishCo", 7, 10**6, turn)
            file.commit({"FishCo": (stock, turn + 2)}, {f"{turn} {n}": RECORD for n in range(ids)}, 200)
            longest = max(longest, os.path.getsize(f"{path}-wal"))
            if file.untidy():
                file.checkpoint()
                assert not file.untidy()
        assert (1 << 20) * 0.9 < longest < (1 << 20) + (64 << 10)
        assert path.stat().st_size < 1 << 20
    with StoreFile.opened(path, unsynced) as file:
        assert len(file.load().records) == 200
        assert file.faults() == []
