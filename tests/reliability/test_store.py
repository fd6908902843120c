"""The store keeps its promises through kills and failures: some of the trials of ``store.py``."""

import random
from pathlib import Path

import pytest

from tests.reliability.store import (
    KILLS,
    STRACE,
    TRADES,
    Fault,
    check,
    faults,
    power_is_lost,
    recorded,
    survives,
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(STRACE is None, reason="needs strace")]

IMAGES = 60


def test_some_of_every_promise_is_kept(rng: random.Random) -> None:
    """After kills at calls that write, full and failed disks, and lost power, the table has the number of tries."""
    rows = check(False, rng.randrange(2**32))
    assert [row.figure for row in rows] == ["0 of 5 lost or doubled a trade"] * 3
    assert all(row.passed for row in rows)


def test_a_kill_is_a_kill(tmp_path: Path) -> None:
    """A kill at the last sync leaves all trades acknowledged, at the first sync none."""
    last = max(fault.at for fault in faults(tmp_path, KILLS, ["fdatasync"]))
    assert len(survives(tmp_path / "last", Fault("fdatasync", last, *KILLS)).acknowledged) == TRADES
    assert survives(tmp_path / "first", Fault("fdatasync", 1, *KILLS)).acknowledged == {}


def test_a_full_disk_refuses_trades_and_nothing_else(tmp_path: Path) -> None:
    """From a full disk in the middle on, earlier trades hold, and later trades are refused by name."""
    written = len(faults(tmp_path, KILLS, ["pwrite64"]))
    told = survives(tmp_path / "full", Fault("pwrite64", written // 2, "error=ENOSPC", for_ever=True))
    assert told.acknowledged
    assert set(told.refused) <= {"full", "failed"}
    assert told.refused


def test_lost_power_loses_and_doubles_nothing(tmp_path: Path, rng: random.Random) -> None:
    """With any part of the unsynced writes on the disk, acknowledged trades are there, and no trade is half there."""
    steps, path = recorded(tmp_path / "run")
    assert {step.what for step in steps} == {"open", "write", "cut", "sync", "rename", "unlink", "say"}
    assert path.exists()
    power_is_lost(tmp_path, steps, rng, IMAGES)


@pytest.mark.parametrize("plant", ["unsynced", "ids apart"])
def test_a_planted_bug_is_caught_by_lost_power(plant: str, tmp_path: Path, rng: random.Random) -> None:
    """The check finds a planted bug after lost power."""
    steps, _ = recorded(tmp_path / "run", plant)
    with pytest.raises(AssertionError):
        power_is_lost(tmp_path, steps, rng, 400)
