"""The timeline: the stamps of each request, its thread, and the file."""

import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import ClassVar
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt
import pytest

from stock_service.rpc.timeline import ABOUT, COLUMNS, NO_METHOD, STAMPS, Timeline
from stock_service.trading.locking import LOCKINGS, stamped

WAIT_S = 10.0
"""A bound for what must not take long; only reached when something hangs."""

NAMES = ("A", "B")


def clock() -> Callable[[], int]:
    """A clock that shows 10, 20, 30 … ns."""
    return count(10, 10).__next__


def rows(timeline: Timeline, folder: Path) -> npt.NDArray[np.int64]:
    """The timeline's file, as NumPy reads it."""
    path = folder / "timeline"
    timeline.write(path)
    with np.load(path) as written:
        stamps: npt.NDArray[np.int64] = written["stamps"]
    return stamps


def about(path: Path) -> dict[str, object]:
    """A file's words about itself."""
    with ZipFile(path) as archive:
        said: dict[str, object] = json.loads(archive.read(ABOUT))
    return said


def test_every_stamp_has_its_column(tmp_path: Path) -> None:
    """A request is a row of its stamps, in the order of ``COLUMNS``, and the file names its method."""
    timeline = Timeline(10, clock())
    assert [timeline.method_number(path) for path in ("/a", "/b")] == [0, 1]
    stamper = timeline.local.stamper
    stamper.begin(5)
    stamper.acquired(12, 15)
    stamper.handled(1)
    stamper.end()
    assert COLUMNS == ("accepted", "dequeued", "asked", "acquired", "waited", "handled", "replied", "method", "thread")
    assert rows(timeline, tmp_path).tolist() == [[5, 10, 12, 15, 3, 20, 30, 1, 0]]
    assert about(tmp_path / "timeline") == {
        "format": 1,
        "columns": list(COLUMNS),
        "methods": ["/a", "/b"],
        "left_out": 0,
    }


def test_nothing_is_left_of_the_request_before(tmp_path: Path) -> None:
    """For several locks the stamps are the ask for the first and the acquisition of the last. The wait is the sum,
    without the time between. A request without a lock or a known method has none, also after a request of its thread
    that had both, or was half done."""
    timeline = Timeline(10, clock())
    stamper = timeline.local.stamper
    stamper.begin(1)
    stamper.acquired(12, 15)
    stamper.acquired(18, 19)
    stamper.handled(0)
    stamper.end()
    stamper.begin(2)
    stamper.acquired(2, 3)
    stamper.handled(7)
    stamper.begin(4)
    assert stamper.handled_ns == 0
    stamper.handled(NO_METHOD)
    stamper.end()
    assert rows(timeline, tmp_path).tolist() == [
        [1, 10, 12, 19, 4, 20, 30, 0, 0],
        [4, 60, 0, 0, 0, 70, 80, NO_METHOD, 0],
    ]


def test_what_is_over_the_limit_is_counted(tmp_path: Path) -> None:
    """The first requests that end are kept. Later ones are left out, and the file and its writer have their number."""
    timeline = Timeline(2, clock())
    for accepted_ns in (1, 2, 3, 4, 5):
        timeline.local.stamper.begin(accepted_ns)
        timeline.local.stamper.end()
    assert timeline.write(tmp_path / "timeline") == 3
    with np.load(tmp_path / "timeline") as written:
        assert written["stamps"][:, 0].tolist() == [1, 2]
    assert about(tmp_path / "timeline")["left_out"] == 3


@pytest.mark.parametrize("requests_max", [0, 5])
def test_a_server_that_nobody_asked_writes_no_rows(tmp_path: Path, requests_max: int) -> None:
    """The file of a server without requests has no rows, and is whole."""
    assert rows(Timeline(requests_max), tmp_path).shape == (0, len(COLUMNS))


def test_a_thread_is_known_by_its_number(tmp_path: Path) -> None:
    """Each thread has a number of its own from 1 (0 made the timeline), also if the system reuses an ended thread's
    identity."""
    timeline = Timeline(10, clock())

    def answer() -> None:
        timeline.local.stamper.begin(1)
        timeline.local.stamper.end()

    identities = set()
    for _ in range(3):
        thread = Thread(target=lambda: (answer(), answer()))  # type: ignore[func-returns-value]
        thread.start()
        identities.add(thread.ident)
        thread.join(WAIT_S)
    assert rows(timeline, tmp_path)[:, -1].tolist() == [1, 1, 2, 2, 3, 3], identities


def test_threads_do_not_disturb_one_another(tmp_path: Path) -> None:
    """Requests of four threads at a time each have a whole row."""
    threads, requests = 4, 2000
    timeline = Timeline(threads * requests)
    together = Barrier(threads)

    def answer(first: int) -> None:
        together.wait(WAIT_S)
        for number in range(first, first + requests):
            stamper = timeline.local.stamper
            stamper.begin(number)
            stamper.acquired(number, number + 1)
            stamper.handled(number)
            stamper.end()

    workers = [Thread(target=answer, args=(1 + place * requests,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(WAIT_S)
    stamps = rows(timeline, tmp_path)
    assert sorted(stamps[:, 0]) == list(range(1, 1 + threads * requests))
    assert (stamps[:, [2, 7]] == stamps[:, [0]]).all()
    assert (stamps[:, 3] == stamps[:, 0] + 1).all()
    assert len(np.unique(stamps[:, 8])) == threads


def test_a_long_timeline_is_whole(tmp_path: Path) -> None:
    """A timeline longer than a piece of compression has its rows in order, up to the last, and nothing after them."""
    timeline = Timeline(60_000)
    stamper = timeline.local.stamper
    for number in range(40_000):
        stamper.begin(number)
        stamper.end()
    assert (rows(timeline, tmp_path)[:, 0] == np.arange(40_000)).all()
    with ZipFile(tmp_path / "timeline") as archive:
        assert archive.getinfo(STAMPS).file_size - 40_000 * 72 in (64, 128)


@pytest.mark.parametrize("name", LOCKINGS)
def test_every_lock_that_is_taken_is_stamped(name: str, tmp_path: Path) -> None:
    """A writer and a reader have one acquisition each, for any number of locks. A reader without a lock has none."""
    timeline = Timeline(10, clock())
    locking = stamped(LOCKINGS[name](NAMES), timeline)
    stamper = timeline.local.stamper
    for lock in (locking.reading["A"], locking.writing["B"]):
        stamper.begin(1)
        if lock is not None:
            with lock:
                pass
        stamper.end()
    read, written = rows(timeline, tmp_path)[:, 1:5].tolist()
    assert read == ([10, 0, 0, 0] if name == "snapshot" else [10, 20, 30, 10])
    assert written[2:] == [written[1] + 10, 10]


def test_the_wait_is_for_the_lock() -> None:
    """A lock is asked for before it is taken and acquired after; it is held until ``with`` ends, an error or not."""
    lock, now_ns = Lock(), clock()

    class One:
        reading: ClassVar = dict.fromkeys(NAMES)
        writing: ClassVar = dict.fromkeys(NAMES, lock)

    held_at: dict[int, bool] = {}

    def look() -> int:
        at_ns = now_ns()
        held_at[at_ns] = lock.locked()
        return at_ns

    timeline = Timeline(10, look)
    timed = stamped(One(), timeline).writing["A"]

    def fail() -> None:
        with timed:
            assert lock.locked()
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        fail()
    assert not lock.locked()
    assert held_at == {10: False, 20: True}


def test_the_clocks_are_one() -> None:
    """Times of ``time.monotonic_ns`` in the transports stand beside the timeline's, and a client's."""
    monotonic, counter = (time.get_clock_info(name) for name in ("monotonic", "perf_counter"))
    assert monotonic.implementation == counter.implementation == "clock_gettime(CLOCK_MONOTONIC)"
