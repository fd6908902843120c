"""The log of a killed server: damage that hides commits is refused by name, and the rest of a crash is not."""

import random
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from stock_service.rpc.errors import UsageError
from stock_service.storage import sqlite_file, sqlite_log
from stock_service.storage.command import main
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.storage.sqlite_log import damage
from stock_service.trading.model import Stock
from tests.stores import STOCKS, crashed, unsynced

HEAD, FRAME = 32, 24 + 4096
GROUPS = 6
"""Commits of the log, each of all stocks."""


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A store of a killed server: all of its commits are in the log, two to four frames each."""
    path = tmp_path / "store"
    StoreFile.create(path, STOCKS, unsynced)
    with StoreFile.opened(path, unsynced) as file:
        file.load()
        for number in range(1, GROUPS + 1):
            stocks = {stock.name: (Stock(stock.name, stock.price_cents, 10**6, number), number) for stock in STOCKS}
            file.commit(stocks, {f"{number} {each}": b"record" for each in range(40)}, 1000)
        return crashed(path, tmp_path / "left")


def served(path: Path, log: bytes) -> int | None:
    """The last commit of a file with this log; None where it is refused as damaged."""
    content = path.read_bytes()
    copy = path.with_name("copy")
    copy.write_bytes(content)
    copy.with_name("copy-wal").write_bytes(log)
    try:
        with StoreFile.opened(copy, unsynced) as file:
            return file.load().sequence
    except UsageError as error:
        assert "of its log copy-wal is damaged, with commits behind it; restore a backup" in error.allowed  # noqa: PT017
        return None
    finally:
        copy.with_name("copy-wal").unlink(missing_ok=True)


def ends(log: bytes) -> list[int]:
    """The ends of each commit's last frame."""
    return [at for at in range(HEAD, len(log), FRAME) if any(log[at + 4 : at + 8])]


def flipped(log: bytes, at: int, bit: int) -> bytes:
    """A log with a bit turned over."""
    return log[:at] + bytes([log[at] ^ 1 << bit]) + log[at + 1 :]


@pytest.mark.slow
def test_a_bit_turned_over_is_refused_or_is_of_the_last_commit(left: Path, rng: random.Random) -> None:
    """Anywhere in the log: in a page, and in a frame's head. Every byte of the last one but one is tried."""
    log = left.with_name("store-wal").read_bytes()
    last = ends(log)[-2] + FRAME
    heads = [at + byte for at in range(HEAD, last, FRAME) for byte in range(24)]
    tried = [*range(last - FRAME, last - FRAME + 24), *rng.sample(heads, 40)]
    for at in (*tried, *(rng.randrange(HEAD, last) for _ in range(60))):
        assert served(left, flipped(log, at, rng.randrange(8))) is None, at
    for at in rng.sample(range(last, len(log)), 20):
        found = served(left, flipped(log, at, rng.randrange(8)))
        makes_an_end = found is None and (at - HEAD) % FRAME in range(4, 8)  # another frame seems to end a commit
        assert found == GROUPS - 1 or makes_an_end, at


def test_the_last_bit_that_says_that_a_commit_ends_is_missed(left: Path) -> None:
    """A frame of the last commit but one says no pages any more, and is refused."""
    log = left.with_name("store-wal").read_bytes()
    tried = 0
    for at, last in pairwise(ends(log)):
        pages = int.from_bytes(log[at + 4 : at + 8])
        if pages.bit_count() == 1:
            tried += 1
            cut = log[: last + FRAME]
            assert served(left, cut[: at + 4] + bytes(4) + cut[at + 8 :]) is None
    assert tried


@pytest.mark.parametrize("byte", [0, 5, 8, 20, 30])
def test_a_damaged_head_is_refused(byte: int, left: Path) -> None:
    """A damaged head is refused, with which SQLite would take no commit. SQLite itself refuses an unknown format."""
    log = flipped(left.with_name("store-wal").read_bytes(), byte, 1)
    left.with_name("store-wal").write_bytes(log)
    assert damage(left.with_name("store-wal")) == "its head"
    assert served(left, log) is None


def test_damage_is_found_through_a_link(left: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage is found through a link: the log is beside the link's target, also through several links. ``store check``
    finds it, too."""
    log = left.with_name("store-wal")
    log.write_bytes(flipped(log.read_bytes(), HEAD + 30, 1))
    (tmp_path / "link").symlink_to(Path("left") / "store")
    (tmp_path / "again").symlink_to(tmp_path / "link")
    for link in ("link", "again"):
        with pytest.raises(UsageError, match="frame 1 of its log store-wal is damaged"):
            StoreFile.opened(tmp_path / link, unsynced)
        with pytest.raises(SystemExit):
            main("store", ["check", str(tmp_path / link)])
        assert "frame 1 of its log store-wal is damaged" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("also", [False, True])
def test_a_last_commit_half_written_is_left_out(also: bool, left: Path) -> None:
    """Any of its frames is missing, or holds what an earlier log had there: it was not acknowledged."""
    log = left.with_name("store-wal").read_bytes()
    first, last = ends(log)[-2] + FRAME, ends(log)[-1]
    assert last > first, "one frame"
    for at in range(first, last + FRAME, FRAME):
        for half in (FRAME, 1000, 480):
            old = log[HEAD : HEAD + half] if also else bytes(half)
            torn = log[:at] + (bytes(8) + b"other salt" + old)[:half] + log[at + half :]
            assert served(left, torn) == GROUPS - 1, (at, half)


@pytest.mark.slow
def test_a_log_that_was_cut_short_is_taken_up_to_there(left: Path) -> None:
    """A log that was cut short is taken up to the cut, since the rest cannot be known."""
    log = left.with_name("store-wal").read_bytes()
    for number, at in enumerate(ends(log)):
        assert served(left, log[: at + FRAME]) == number + 1
        assert served(left, log[: at + FRAME - 1]) == number


@pytest.mark.slow
def test_commits_of_an_earlier_log_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits of an earlier log behind the newer ones are no damage: the log begins anew over its old content."""
    monkeypatch.setattr(sqlite_file, "_LOG_BYTES_MAX", 12 * 4096)
    path = tmp_path / "store"
    StoreFile.create(path, STOCKS, unsynced)
    with StoreFile.opened(path, unsynced) as file:
        file.load()
        for number in range(1, 30):
            file.commit({"FishCo": (Stock("FishCo", 1, 10**6, number), number)}, {f"{number}": b"record"}, 1000)
            if file.untidy():
                file.checkpoint()
            copy = crashed(path, tmp_path / f"left-{number}")
            assert damage(copy.with_name("store-wal")) is None
    opened = partial(StoreFile.opened, connect=unsynced)
    catalog = SqliteCatalog(copy, STOCKS, open_file=opened)
    assert catalog.names()
    assert catalog.close()


def test_an_earlier_log_behind_this_one_is_not_summed(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start reads what the present log holds, for any length of the earlier one. A damaged salt is found."""
    log = left.with_name("store-wal").read_bytes()
    starts = range(HEAD, len(log), FRAME)
    earlier = b"".join(log[at : at + 8] + b"other sa" + log[at + 16 : at + FRAME] for at in starts)
    left.with_name("store-wal").write_bytes(log + 20 * earlier)
    summed = 0

    def counting(words: str, data: bytes, sums: sqlite_log.Sums) -> sqlite_log.Sums:
        nonlocal summed
        summed += len(data)
        return sums_of(words, data, sums)

    sums_of = sqlite_log._sums
    monkeypatch.setattr(sqlite_log, "_sums", counting)
    assert damage(left.with_name("store-wal")) is None
    assert summed <= len(log)
    left.with_name("store-wal").write_bytes(flipped(log, HEAD + 8, 0) + 20 * earlier)
    assert damage(left.with_name("store-wal")) == "frame 1"
