"""Stages of a timeline: reading the file, the means, and every violation."""

import json
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from experiments.results.stages import ALL, Stages, StageTimes, load, summary
from stock_service.rpc.timeline import ABOUT, COLUMNS, NO_METHOD, STAMPS, Timeline

FOREVER_NS = 1 << 62

LOCKED = [1_000, 3_000, 4_000, 9_000, 5_000, 10_000, 12_000, 0, 1]
FREE = [2_000, 3_000, 0, 0, 0, 7_000, 8_000, 1, 2]
"""Two valid requests, in nanoseconds: one request waits 5 µs for a lock, and the other takes no lock."""


def stages(*rows: Sequence[int], methods: Sequence[str] = ("/a", "/b"), left_out: int = 0) -> Stages:
    """A timeline of these rows."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS)).T
    accepted, dequeued, asked, acquired, waited, handled, replied, method, thread = columns
    return Stages(
        accepted, dequeued, asked, acquired, waited, handled, replied, method, thread, tuple(methods), left_out
    )


def changed(row: Sequence[int], **values: int) -> list[int]:
    """A row with other values in some columns."""
    return [values.get(name, value) for name, value in zip(COLUMNS, row, strict=True)]


def violations(*rows: Sequence[int]) -> int:
    """Number of violations among these requests."""
    return summary(stages(*rows), 0, FOREVER_NS)[ALL].violations


def test_what_a_server_wrote_is_read(tmp_path: Path) -> None:
    """A file gives every column, the methods, and the number of left-out requests. A request without its row is left
    out."""
    timeline = Timeline(3, iter(range(10, 100)).__next__)
    timeline.method_number("/a")
    stamper = timeline.local.stamper
    for accepted_ns in (5, 6, 7):
        if accepted_ns == 6:
            next(timeline._places)  # a request that has its place, and not yet its row
            continue
        stamper.begin(accepted_ns)
        stamper.acquired(1, 3)
        stamper.handled(0)
        stamper.end()
    next(timeline._places)
    timeline.write(tmp_path / "t")
    read = load(tmp_path / "t")
    columns = [getattr(read, f"{name}_ns").tolist() for name in COLUMNS[:7]]
    assert [*zip(*columns, strict=True)] == [(5, 10, 1, 3, 2, 11, 12), (7, 13, 1, 3, 2, 14, 15)]
    assert (read.method.tolist(), read.thread.tolist()) == ([0, 0], [0, 0])
    assert (read.methods, read.left_out) == (("/a",), 1)


def test_an_empty_timeline_is_read(tmp_path: Path) -> None:
    """The timeline of a server without requests has no requests and no summary."""
    Timeline(3).write(tmp_path / "t")
    read = load(tmp_path / "t")
    assert len(read.accepted_ns) == 0
    assert summary(read, 0, FOREVER_NS) == {}


def archive(path: Path, about: object, stamps: bytes) -> None:
    """A file of the timeline's parts."""
    with ZipFile(path, "w") as file:
        file.writestr(ABOUT, json.dumps(about))
        file.writestr(STAMPS, stamps)


def test_a_timeline_of_another_format_is_refused(tmp_path: Path) -> None:
    """A file of another format or with other columns is refused with its name."""
    path = tmp_path / "t"
    about = {"format": 1, "columns": list(COLUMNS), "methods": [], "left_out": 0}
    np.save(tmp_path / "good.npy", np.zeros((2, 9), np.int64))
    good = (tmp_path / "good.npy").read_bytes()
    archive(path, about, good)
    load(path)
    for said in (about | {"format": 2}, about | {"columns": ["accepted"]}):
        archive(path, said, good)
        with pytest.raises(ValueError, match="t: format"):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_stages_are_between_their_stamps() -> None:
    """Means of the stages equal the values that were computed by hand. A request without a lock has no preparation."""
    by_method = summary(stages(LOCKED, FREE), 0, FOREVER_NS)
    assert list(by_method) == ["/a", "/b", ALL]
    names = ("queue_wait", "preparation", "lock_wait", "service", "reply", "total")
    assert [getattr(by_method["/a"], name).mean_us for name in names] == [2, 1, 5, 1, 2, 11]
    assert [getattr(by_method["/b"], name).mean_us for name in names] == [1, 0, 0, 4, 1, 6]
    assert [getattr(by_method[ALL], name).mean_us for name in names] == [1.5, 0.5, 2.5, 2.5, 1.5, 8.5]
    whole = by_method[ALL]
    assert (whole.count, whole.locked, whole.threads, whole.violations) == (2, 1, 2, 0)
    assert by_method["/a"].total == StageTimes(11)


def test_a_request_belongs_to_when_it_was_accepted() -> None:
    """A request belongs to an interval by its acceptance, from the start and before the end. A method without requests
    has no entry."""
    found = stages(*(changed(FREE, accepted=accepted) for accepted in (999, 1_000, 1_999, 2_000)))
    assert {name: one.count for name, one in summary(found, 1_000, 2_000).items()} == {"/b": 2, ALL: 2}
    assert summary(found, 5_000, 6_000) == {}


def test_unknown_methods_are_together() -> None:
    """Methods that the service does not have share one name."""
    found = summary(stages(LOCKED, changed(FREE, method=NO_METHOD)), 0, FOREVER_NS)
    assert {name: one.count for name, one in found.items()} == {"/a": 1, "unknown": 1, ALL: 2}


@pytest.mark.parametrize(
    "row",
    [
        *(changed(LOCKED, **{stamp: 0}) for stamp in (*COLUMNS[:4], *COLUMNS[5:7])),
        changed(LOCKED, accepted=3_001),
        changed(LOCKED, asked=2_999),
        changed(LOCKED, acquired=10_001),
        changed(LOCKED, waited=-1),
        changed(LOCKED, replied=9_999),
        changed(FREE, dequeued=7_001),
    ],
)
def test_missing_stamps_and_stamps_in_the_wrong_order_are_found(row: list[int]) -> None:
    """A request without one of its stamps, or with a negative stage, is a violation. A request without a lock is
    not."""
    assert violations(row, LOCKED, FREE) == 1


def test_what_the_stages_lack_is_found() -> None:
    """Up to 50 µs of a request may be in no stage, such as the time between two locks. More is a violation."""
    longer = changed(LOCKED, acquired=59_000, handled=60_000, replied=62_000)
    assert violations(changed(longer, waited=5_000)) == 0
    assert violations(changed(longer, waited=4_999)) == 1


def test_violations_are_counted_by_method() -> None:
    """Violations are counted by method and for all methods."""
    found = summary(stages(LOCKED, changed(LOCKED, handled=0), FREE, FREE), 0, FOREVER_NS)
    assert [found[name].violations for name in ("/a", "/b", ALL)] == [1, 0, 1]


def test_a_window_that_was_not_kept_to_its_end_is_refused() -> None:
    """An interval beyond the kept requests is refused, since its summary would lack requests."""
    full = stages(LOCKED, FREE, left_out=1)
    assert summary(full, 0, 2_000)[ALL].count == 1
    with pytest.raises(ValueError, match="1 requests were left out"):
        summary(full, 0, 2_001)
