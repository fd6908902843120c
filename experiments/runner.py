"""Runs a design: every run in its order, each on the disk before the next begins.

A sweep is a folder: ``design.json`` says what is to be run, ``environment.json`` on what; ``runs.jsonl.gz`` holds what
was seen of each run, and ``results.csv`` the rows computed from it. Interrupted by a crash or by Ctrl-C it is resumed
where it stopped, and loses the one run that was under way; it is not resumed with another design, other code, other
versions of what it runs on, or on another machine, since its rows would then not compare. A run is done again by the
rule of ``repetition`` alone; the last attempt counts, and all are kept. What one run is, is not known here: ``execute``
does it. One thread; nothing is drawn and nothing is judged here.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from experiments import environment
from experiments.design import Design, Run, Setting
from experiments.environment import ENVIRONMENT_FILE, Environment
from experiments.observation import Observation, rows
from experiments.repetition import is_done_again, repetitions_max
from experiments.results import COLUMNS, RESULTS_FILE, ResultsWriter, load_whole_runs
from experiments.run_records import RUNS_FILE, RunRecord, RunRecordsWriter, counting, drop_raw, load_records, save_raw
from stock_service.rpc.errors import UsageError

DESIGN_FILE = "design.json"

Execute = Callable[[Run], Observation]
"""Does one run, or one attempt of it; gives what was seen."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A design to be run, and the folder that holds it."""

    study: str
    design: Design
    folder: Path


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told how a sweep goes on: before the first run, after each run, and after each block; and before a run is
    done again."""

    began: Callable[[Sequence[Run]], None]
    """Called with the runs that are left to do."""
    ended_run: Callable[[Run], None]
    ended_block: Callable[[int], None]
    again: Callable[[Run, float], None]
    """Called with the share of the cores' time that was stolen."""


def run_sweep(sweep: Sweep, execute: Execute, resume: bool, watch: Watch) -> None:
    """Does every run of a sweep that is not done yet. Blocks until all are.

    Raises UsageError where the folder holds results and ``resume`` is not asked for, or where they are of another
    design, code or machine; OSError where it cannot be written. What ``execute`` raises ends the sweep, which can be
    resumed.
    """
    now = environment.look()
    sweep.folder.mkdir(parents=True, exist_ok=True)
    file = sweep.folder / RESULTS_FILE
    begun = file.exists() or (sweep.folder / RUNS_FILE).exists()
    kept = _done_before(sweep, now, resume) if begun else []
    if not kept:
        environment.write_at_once(sweep.folder / DESIGN_FILE, _design_text(sweep))
        environment.save(now, sweep.folder)
    done = {record.run.run_id for record in counting(kept)}
    runs = sweep.design.runs()
    left = [run for run in runs if run.run_id not in done]
    repetitions_left = repetitions_max(len(runs)) - (len(kept) - len(done))
    belongs_to = {DESIGN_FILE: design_digest(sweep.folder), ENVIRONMENT_FILE: environment.digest(sweep.folder)}
    watch.began(left)
    with ResultsWriter(file) as table, RunRecordsWriter(sweep.folder / RUNS_FILE) as records:
        for place, run in enumerate(left):
            drop_raw(sweep.folder, run.run_id)  # a crash may have left it, without the record that it belongs to
            attempts = _attempts(run, execute, repetitions_left, watch)
            repetitions_left -= len(attempts) - 1
            save_raw(sweep.folder, run.run_id, attempts[-1])
            records.append(
                *(
                    RunRecord(sweep.study, run, seen, belongs_to=belongs_to, attempt=number, attempts=len(attempts))
                    for number, seen in enumerate(attempts, start=1)
                )
            )
            table.append(rows(sweep.study, run, attempts[-1], len(attempts)))
            watch.ended_run(run)
            if place + 1 == len(left) or left[place + 1].block != run.block:
                watch.ended_block(run.block)
    if environment.load(sweep.folder).after is None:  # also where the last run ended, and what came after it did not
        environment.save(environment.finished(environment.load(sweep.folder)), sweep.folder)


def _attempts(run: Run, execute: Execute, repetitions_left: int, watch: Watch) -> list[Observation]:
    """What was seen of a run in every attempt; the last one counts. Blocks; raises what ``execute`` raises."""
    attempts = [execute(run)]
    while (share := attempts[-1].steal_share) is not None:
        if not is_done_again(share, len(attempts), repetitions_left - len(attempts) + 1):
            break
        watch.again(run, share)
        attempts.append(execute(run))
    return attempts


def _done_before(sweep: Sweep, now: Environment, resume: bool) -> list[RunRecord]:
    """What the folder holds, once it is sure that it belongs to this sweep; drops what was cut off."""
    folder = sweep.folder
    if not resume:
        raise UsageError(f"--out {folder}", "a folder with results", "--resume to go on with them, or another folder")
    kept = _whole(folder)
    if not kept:
        (folder / RUNS_FILE).unlink(missing_ok=True)  # first: rows alone are refused, torn records alone are none
        (folder / RESULTS_FILE).unlink(missing_ok=True)
        return []
    if _design_in(folder) != _design_text(sweep):
        allowed = "the very options it was begun with: its rows would not compare (or another folder)"
        raise UsageError(f"--resume {folder}", "another design", allowed)
    then = environment.load(folder)
    for before, here in zip(_decisive(then), _decisive(now), strict=True):
        if before != here:
            allowed = "the same code, versions and machine for all of a sweep's runs (or another folder)"
            raise UsageError(f"--resume {folder}", f"results of {before}, and this is {here}", allowed)
    _keep_only(kept, folder)
    return kept


def _whole(folder: Path) -> list[RunRecord]:
    """The runs whose record is whole, by which they are done: their rows are computed from it."""
    if (folder / RUNS_FILE).exists():
        kept = load_records(folder)
        for record in kept:
            if not record.as_written:
                allowed = "what was seen of it, as it was written (or another folder)"
                raise UsageError(f"--resume {folder}", f"a record of run {record.run.run_id} that was edited", allowed)
        return kept
    if load_whole_runs(folder / RESULTS_FILE):
        allowed = f"results and {RUNS_FILE}, which they are computed from (or another folder)"
        raise UsageError(f"--resume {folder}", f"results without {RUNS_FILE}", allowed)
    return []


def _keep_only(kept: Sequence[RunRecord], folder: Path) -> None:
    """Leaves these runs in the folder, and no torn ones: each file in one step."""
    table, records = folder / f"{RESULTS_FILE}.repaired", folder / f"{RUNS_FILE}.repaired"
    for repaired in (table, records):
        repaired.unlink(missing_ok=True)
    with ResultsWriter(table) as rows_writer, RunRecordsWriter(records) as records_writer:
        for _, each in groupby(kept, key=lambda record: record.run.run_id):
            attempts = list(each)
            records_writer.append(*attempts)
            last = attempts[-1]
            if last.counts:
                rows_writer.append(rows(last.study, last.run, last.seen, last.attempt))
    records.replace(folder / RUNS_FILE)
    table.replace(folder / RESULTS_FILE)


def _design_text(sweep: Sweep) -> str:
    """All that fixes a sweep's runs, and the columns that its rows have."""
    document = {"study": sweep.study, "columns": COLUMNS, "design": asdict(sweep.design)}
    return json.dumps(document, indent=2) + "\n"


def planned(folder: Path) -> Sweep:
    """What a folder's design says is to be run. UsageError where there is none to be read, or one that the runner would
    have written otherwise."""
    text = _design_in(folder)
    file, allowed = str(folder / DESIGN_FILE), "a design as the runner writes it"
    try:
        document = json.loads(text)
        design = document["design"]
        settings = {part: tuple(map(_setting, design[part])) for part in ("settings", "once")}
        found = Design(settings["settings"], design["blocks"], design["seed"], settings["once"])
        sweep, runs = Sweep(document["study"], found, folder), found.runs()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(file, f"{type(error).__name__}: {error}", allowed) from error
    lines = zip(text.splitlines(), _design_text(sweep).splitlines(), strict=False)
    for number, (has, should) in enumerate(lines, start=1):
        if has != should:
            raise UsageError(f"{file} line {number}", has.strip(), f"{should.strip()}, as the runner writes it")
    if text != _design_text(sweep) or not runs:
        raise UsageError(file, f"{len(text)} characters", allowed)
    return sweep


def design_digest(folder: Path) -> str:
    """A digest of what a folder's design says is run, without its rows' columns: a later version may have more of them.
    UsageError as ``planned``."""
    sweep = planned(folder)
    return hashlib.sha256(json.dumps([sweep.study, asdict(sweep.design)]).encode()).hexdigest()


def _setting(document: dict[str, Any]) -> Setting:
    return Setting(**(document | {"mix": tuple((name, weight) for name, weight in document["mix"])}))


def _design_in(folder: Path) -> str:
    try:
        return (folder / DESIGN_FILE).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--resume {folder}", f"no {DESIGN_FILE}", "a folder that a sweep was begun in") from error


def _decisive(of: Environment) -> tuple[str, ...]:
    """What must be the same for rows to compare, in words."""
    with_changes = f" with changes {of.changes[:12] if of.changes else environment.UNKNOWN}" if of.dirty else ""
    names = [name for name in environment.PACKAGES if name != environment.DRAWS]
    packages = [f"{name} {of.packages.get(name, environment.UNKNOWN)}" for name in names]
    return f"commit {of.commit[:12]}{with_changes}", of.python, *packages, of.kernel, of.cpu_model, f"{of.cores} cores"
