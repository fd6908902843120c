"""Runs as they are kept: whole and the same again, or not taken for runs."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.load.record.recorder import RawRecords
from experiments.design import Run
from experiments.observation import rows
from experiments.run_records import (
    RAW_FOLDER,
    RUNS_FILE,
    RunRecord,
    RunRecordsWriter,
    load_raw,
    load_records,
    raw_digest,
    save_raw,
    torn_bytes,
)
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.planted_runs import DESIGN, observed

RUNS: tuple[Run, ...] = DESIGN.runs()[:4]


def keep(folder: Path, *runs: Run, keep_records: bool = False) -> list[RunRecord]:
    """Runs, written one by one."""
    records = [RunRecord("stock", run, observed(run, keep_records)) for run in runs]
    with RunRecordsWriter(folder / RUNS_FILE) as writer:
        for record in records:
            writer.append(record)
    return records


def edit(folder: Path, change: Callable[[dict[str, Any]], object], number: int = 1) -> None:
    """Changes one run's line as an editor would: read, changed, written, its digest as it was."""
    lines = gzip.decompress((folder / RUNS_FILE).read_bytes()).decode().splitlines()
    document = json.loads(lines[number - 1])
    change(document)
    lines[number - 1] = json.dumps(document)
    (folder / RUNS_FILE).write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def test_runs_of_every_kind_come_back_with_all_that_was_seen(tmp_path: Path) -> None:
    """Closed and open loops, stages, lock waits, and a server that nobody calls: their rows, and their bytes again."""
    written = keep(tmp_path, *DESIGN.runs())
    found = load_records(tmp_path)
    assert [(record.study, record.run) for record in found] == [("stock", run) for run in DESIGN.runs()]
    assert all(record.as_written for record in found)
    for one, again in zip(written, found, strict=True):
        assert replace(again.seen, load=None) == replace(one.seen, load=None)
        assert rows("stock", again.run, again.seen) == rows("stock", one.run, one.seen)
    (tmp_path / "again").mkdir()
    with RunRecordsWriter(tmp_path / "again" / RUNS_FILE) as writer:
        for record in found:
            writer.append(record)
    assert (tmp_path / "again" / RUNS_FILE).read_bytes() == (tmp_path / RUNS_FILE).read_bytes()


def test_a_run_is_on_the_disk_before_the_writer_is_closed_and_the_file_is_added_to(tmp_path: Path) -> None:
    """Each is a gzip member of its own, and all are one file to any reader; closing twice is once."""
    for number, run in enumerate(RUNS, start=1):
        writer = RunRecordsWriter(tmp_path / RUNS_FILE)
        writer.append(RunRecord("stock", run, observed(run)))
        assert len(load_records(tmp_path)) == number
        writer.close()
        writer.close()
    with gzip.open(tmp_path / RUNS_FILE, "rt") as lines:
        assert [json.loads(line)["run"]["run_id"] for line in lines] == [run.run_id for run in RUNS]
    assert torn_bytes(tmp_path) == 0


def test_what_a_crash_cut_off_is_no_run(tmp_path: Path) -> None:
    """Wherever: the runs before stay, and it is known how much is left over."""
    keep(tmp_path, RUNS[0])
    file = tmp_path / RUNS_FILE
    whole = file.read_bytes()
    keep(tmp_path, RUNS[1])
    both = file.read_bytes()
    for length in range(len(whole), len(both), 97):
        file.write_bytes(both[:length])
        assert [record.run for record in load_records(tmp_path)] == [RUNS[0]]
        assert torn_bytes(tmp_path) == length - len(whole)
    file.write_bytes(b"")
    assert load_records(tmp_path) == []


def test_damage_that_is_no_crash_is_refused(tmp_path: Path) -> None:
    """A byte changed in a run that others follow: those must not be lost in silence."""
    keep(tmp_path, *RUNS)
    file = tmp_path / RUNS_FILE
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    for read in (load_records, torn_bytes):
        with pytest.raises(UsageError, match=r"runs\.jsonl\.gz run [23]: .*whole ones after it"):
            read(tmp_path)


def test_an_edited_record_is_told_from_the_one_that_was_written(tmp_path: Path) -> None:
    """By its digest, which is SHA-256 of the line without it; the others are untouched."""
    keep(tmp_path, *RUNS)
    edit(tmp_path, lambda document: document["seen"]["floor"].update(floor_us_p99=99.5), number=2)
    assert [record.as_written for record in load_records(tmp_path)] == [True, False, True, True]

    def seal(document: dict[str, Any]) -> None:
        rest = {name: value for name, value in document.items() if name != "digest"}
        text = json.dumps(rest, separators=(",", ":"))
        document["digest"] = hashlib.sha256(text.encode()).hexdigest()

    edit(tmp_path, seal, number=2)
    assert all(record.as_written for record in load_records(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(format=99),
        lambda document: document.pop("digest"),
        lambda document: document["seen"].pop("load"),
        lambda document: document.update(run="001-001"),
        lambda document: document["run"]["setting"].update(colour="red"),
        lambda document: document["run"].update(setting=None),
        lambda document: document["seen"]["load"]["parts"]["lookup"]["response"].update(histogram="no base64!"),
        lambda document: document["seen"]["load"]["parts"]["lookup"]["response"].update(histogram="AAAA"),
        lambda document: document["seen"]["load"]["slices"].update(counts="AAAA"),
    ],
)
def test_what_is_no_run_is_refused_by_its_number(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """In one line: another format, a field too few or too many, no histogram."""
    runs = [run for run in DESIGN.runs() if run.setting.part == "figure_2"][:2]
    keep(tmp_path, *runs)
    edit(tmp_path, change, number=2)
    with pytest.raises(UsageError, match=r"runs\.jsonl\.gz run 2: got") as refused:
        load_records(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_folder_without_runs_is_refused_by_name(tmp_path: Path) -> None:
    """With the file that is missing."""
    for read in (load_records, torn_bytes):
        with pytest.raises(UsageError, match=r"runs\.jsonl\.gz"):
            read(tmp_path)


def test_every_requests_own_times_come_back_and_the_record_has_their_digest(tmp_path: Path) -> None:
    """Where they were kept; otherwise there is neither."""
    run = RUNS[0]
    (record,) = keep(tmp_path, run, keep_records=True)
    save_raw(tmp_path, run.run_id, record.seen)
    raw = load_raw(tmp_path, run.run_id)
    assert record.seen.load is not None
    assert record.seen.load.raw is not None
    assert raw is not None
    for column in fields(RawRecords):
        assert np.array_equal(getattr(raw, column.name), getattr(record.seen.load.raw, column.name))
    (found,) = load_records(tmp_path)
    assert found.raw_digest == raw_digest(raw)
    keep(tmp_path, RUNS[1])
    save_raw(tmp_path, RUNS[1].run_id, observed(RUNS[1]))
    assert load_raw(tmp_path, RUNS[1].run_id) is None
    assert load_records(tmp_path)[1].raw_digest is None


def test_the_digest_is_another_for_one_value_of_any_column_or_another_type() -> None:
    """A request moved from one column to the next is another, too."""
    load = observed(RUNS[0], keep_records=True).load
    assert load is not None
    assert load.raw is not None
    seen = {raw_digest(load.raw)}
    for column in fields(RawRecords):
        values = getattr(load.raw, column.name).copy()
        values[-1] = not values[-1] if values.dtype == np.bool_ else values[-1] + 1
        seen.add(raw_digest(replace(load.raw, **{column.name: values})))
    seen.add(raw_digest(replace(load.raw, first=load.raw.first.view(np.uint8))))
    seen.add(raw_digest(replace(load.raw, due_ns=load.raw.done_ns, done_ns=load.raw.due_ns)))
    assert len(seen) == len(fields(RawRecords)) + 3


def test_times_that_cannot_be_read_are_one_kind_of_error(tmp_path: Path) -> None:
    """Cut off, no archive, an empty file, or one that lacks a column."""
    run = RUNS[0]
    save_raw(tmp_path, run.run_id, observed(run, keep_records=True))
    file = tmp_path / RAW_FOLDER / f"{run.run_id}.npz"
    whole = file.read_bytes()
    bad = [whole[:-30], whole[: len(whole) // 2], b"", b"no archive", whole[:300] + b"\xff" * 40 + whole[340:]]
    for data in bad:
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"\w+: "):
            load_raw(tmp_path, run.run_id)
    np.savez_compressed(file, due_ns=np.zeros(3))
    with pytest.raises(ValueError, match="KeyError"):
        load_raw(tmp_path, run.run_id)
