"""Runs as they are kept: ``runs.jsonl.gz``, beside the results, a line of JSON for each attempt with all that was seen.

Every run is a gzip member of its own, appended and on the disk before the next begins; gzip reads members one after the
other as one file. A run that was done again has a line for each attempt, and the last of them counts. What a crash cut
off is at the end, and is dropped when the sweep is resumed. Histograms are in HdrHistogram's compressed form, so that a
run takes some kilobytes. Each line ends with a digest of all before it, and has one of the request's own times where
they were kept, and those of the files that say what the sweep is: they say whether a record, and what it belongs to, is
what was written. Left out: every request's own times, which ``--keep-records`` puts beside it, of the attempt that
counts.
"""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np

from clients.load.record.recorder import RawRecords
from clients.load.record.result import from_json, to_json
from clients.load.run.floor import Floor
from experiments.design import Run, Setting
from experiments.observation import LockWait, Machine, Observation
from experiments.timeline import StageSummary, StageTimes
from stock_service.rpc.errors import UsageError

RUNS_FILE = "runs.jsonl.gz"

FORMAT = 1
"""Raised when the meaning of a field changes."""


_MEMBER = b"\x1f\x8b\x08"
"""How a gzip member begins."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run and what was seen of it in one attempt."""

    study: str
    run: Run
    seen: Observation
    raw_digest: str | None = None
    """Of every request's own times; None where they were not kept, as of an attempt that does not count."""
    belongs_to: Mapping[str, str] = field(default_factory=dict)
    """Digests, by the files' names, of what says what was to be run and on what; none in older records."""
    as_written: bool = True
    """Whether the record has the digest that it was written with."""
    attempt: int = 1
    """Which attempt of the run it was."""
    attempts: int | None = None
    """How many there were; None in older records, when every run had one, whatever was stolen from it."""

    @property
    def counts(self) -> bool:
        """Whether it is the attempt that the results have: the last."""
        return self.attempts is None or self.attempt == self.attempts


def counting(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Those that the results have, one for each run."""
    return [record for record in records if record.counts]


class RunRecordsWriter:
    """Appends runs to a file: each is on the disk when ``append`` returns. One thread's; close it."""

    def __init__(self, path: Path) -> None:
        """Opens the file, new or not. Raises OSError."""
        self._file = path.open("ab")

    def append(self, *attempts: RunRecord) -> None:
        """Adds one run, all its attempts or, after a crash, none of them. Blocks until the disk has it."""
        documents = map(_document, attempts)
        text = "".join(_text(document | {"digest": _digest(document)}) + "\n" for document in documents)
        self._file.write(gzip.compress(text.encode(), mtime=0))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file. May be repeated."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


RAW_FOLDER = "records"
"""Every request's own times, a compressed numpy archive for each run."""


def save_raw(folder: Path, run_id: str, seen: Observation) -> None:
    """Keeps every request's own times, if they were asked for: on the disk when it returns. Raises OSError."""
    raw = None if seen.load is None else seen.load.raw
    if raw is not None:
        (folder / RAW_FOLDER).mkdir(exist_ok=True)
        columns = {column.name: getattr(raw, column.name) for column in fields(raw)}
        with (folder / RAW_FOLDER / f"{run_id}.npz").open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **columns)
            file.flush()
            os.fsync(file.fileno())


def drop_raw(folder: Path, run_id: str) -> None:
    """Removes every request's own times of a run, where there are any. Raises OSError."""
    (folder / RAW_FOLDER / f"{run_id}.npz").unlink(missing_ok=True)


def load_raw(folder: Path, run_id: str) -> RawRecords | None:
    """Every request's own times of a run, where they were kept. Raises OSError, or ValueError for anything else."""
    path = folder / RAW_FOLDER / f"{run_id}.npz"
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as columns:
            return RawRecords(**{column.name: columns[column.name] for column in fields(RawRecords)})
    except (BadZipFile, EOFError, KeyError, TypeError, AttributeError, ValueError, zlib.error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def raw_digest(raw: RawRecords) -> str:
    """A digest of every request's own times: of the columns' names, types and bytes."""
    digest = hashlib.sha256()
    for column in fields(raw):
        values = getattr(raw, column.name)
        digest.update(f"{column.name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def load_records(folder: Path) -> list[RunRecord]:
    """Every attempt of every whole run that a folder keeps, in the order in which they were done. UsageError where it
    has no such file, or one that is none; what a crash cut off is left out."""
    path = folder / RUNS_FILE
    records: list[RunRecord] = []
    for line in _lines(path)[0]:
        try:
            records.append(_record(json.loads(line)))
        except Exception as error:  # of every kind, since HdrHistogram has its own for what is no histogram
            allowed = f"a run as format {FORMAT} of {RUNS_FILE} has it"
            raise UsageError(f"{path} run {len(records) + 1}", f"{type(error).__name__}: {error}", allowed) from error
    return records


def torn_bytes(folder: Path) -> int:
    """How many bytes at the end of the folder's file are of no whole run. UsageError as ``load_records``."""
    return _lines(folder / RUNS_FILE)[1]


def _lines(path: Path) -> tuple[list[bytes], int]:
    """The lines of all whole gzip members, and how many bytes follow them."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(str(path), type(error).__name__, "a folder of results with the runs they are from") from error
    lines: list[bytes] = []
    left = data
    while left:
        member = _member(left)
        if member is None:
            break
        text, left = member
        lines.extend(text.splitlines())
    if any(_member(left[place:]) is not None for place in _places(left)):
        allowed = "runs as they were written: what a crash cuts off is at the end (restore it, or measure anew)"
        raise UsageError(f"{path} run {len(lines) + 1}", "no whole gzip member, and whole ones after it", allowed)
    return lines, len(left)


def _member(data: bytes) -> tuple[bytes, bytes] | None:
    """What the first gzip member holds, and what follows it; None where it is not whole."""
    member = zlib.decompressobj(wbits=31)
    try:
        text = member.decompress(data)
    except zlib.error:
        return None
    return (text, member.unused_data) if member.eof else None


def _places(data: bytes) -> Iterator[int]:
    """Where a gzip member may begin, but for the first byte."""
    place = data.find(_MEMBER, 1)
    while place >= 0:
        yield place
        place = data.find(_MEMBER, place + 1)


def _text(document: Mapping[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def _digest(document: Mapping[str, object]) -> str:
    return hashlib.sha256(_text(document).encode()).hexdigest()


def _document(record: RunRecord) -> dict[str, object]:
    seen = record.seen
    plain = {name: getattr(seen, name) for name in _PLAIN}
    parts: dict[str, object] = {
        "load": None if seen.load is None else to_json(seen.load),
        "lock_waits": _each(seen.lock_waits),
        "stages": _each(seen.stages),
        "floor": None if seen.floor is None else asdict(seen.floor),
        "machine": None if seen.machine is None else asdict(seen.machine),
    }
    raw = seen.load.raw if seen.load is not None and record.counts else None
    return {
        "format": FORMAT,
        "study": record.study,
        "run": asdict(record.run),
        "seen": plain | parts,
        "raw_digest": record.raw_digest if raw is None else raw_digest(raw),
        "belongs_to": dict(record.belongs_to),
        "attempt": record.attempt,
        "attempts": record.attempts,
    }


_PLAIN = tuple(
    part.name for part in fields(Observation) if part.name not in ("load", "lock_waits", "stages", "floor", "machine")
)


def _each(of: Mapping[str, Any] | None) -> dict[str, object] | None:
    return None if of is None else {name: asdict(value) for name, value in of.items()}


def _record(document: dict[str, Any]) -> RunRecord:
    if document["format"] != FORMAT:
        raise ValueError(f"format {document['format']}")
    as_written = document.pop("digest") == _digest(document)
    run, seen = document["run"], document["seen"]
    setting = run["setting"] | {"mix": tuple((name, weight) for name, weight in run["setting"]["mix"])}
    observation = Observation(
        **{name: seen[name] for name in _PLAIN},
        load=None if seen["load"] is None else from_json(seen["load"]),
        lock_waits=None
        if seen["lock_waits"] is None
        else {name: LockWait(**waits) for name, waits in seen["lock_waits"].items()},
        stages=None if seen["stages"] is None else {name: _stages(of) for name, of in seen["stages"].items()},
        floor=None if seen["floor"] is None else Floor(**seen["floor"]),
        machine=None if seen["machine"] is None else Machine(**seen["machine"]),
    )
    run = Run(**(run | {"setting": Setting(**setting)}))
    belongs_to = {str(name): str(digest) for name, digest in document.get("belongs_to", {}).items()}
    attempts = document.get("attempt", 1), document.get("attempts")
    return RunRecord(document["study"], run, observation, document["raw_digest"], belongs_to, as_written, *attempts)


def _stages(document: dict[str, Any]) -> StageSummary:
    values: dict[str, Any] = {name: StageTimes(**of) if isinstance(of, dict) else of for name, of in document.items()}
    return StageSummary(**values)
