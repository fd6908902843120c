"""Runs a design: every run in its order, each run's rows on the disk before the next begins.

A sweep is a folder: ``design.json`` says what is to be run, ``environment.json`` on what, ``results.csv`` holds what
was. Interrupted by a crash or by Ctrl-C it is resumed where it stopped, and loses the one run that was under way; it is
not resumed with another design, other code or on another machine, since its rows would then not compare. What one
run is, is not known here: ``execute`` does it. One thread; nothing is drawn and nothing is judged here.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments import environment
from experiments.design import Design, Run
from experiments.environment import Environment
from experiments.results import COLUMNS, RESULTS_FILE, ResultsWriter, Row, load_whole_runs
from stock_service.errors import UsageError

DESIGN_FILE = "design.json"

Execute = Callable[[Run], Sequence[Row]]
"""Does one run; gives its rows, that of all requests last."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A design to be run, and the folder that holds it."""

    study: str
    design: Design
    folder: Path


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told how a sweep goes on: before the first run, after each run, and after each block."""

    began: Callable[[Sequence[Run]], None]
    """Called with the runs that are left to do."""
    ended_run: Callable[[Run], None]
    ended_block: Callable[[int], None]


def run_sweep(sweep: Sweep, execute: Execute, resume: bool, watch: Watch) -> None:
    """Does every run of a sweep that is not done yet. Blocks until all are.

    Raises UsageError where the folder holds results and ``resume`` is not asked for, or where they are of another
    design, code or machine; OSError where it cannot be written. What ``execute`` raises ends the sweep, which can be
    resumed.
    """
    now = environment.look()
    sweep.folder.mkdir(parents=True, exist_ok=True)
    file = sweep.folder / RESULTS_FILE
    done = _done_before(sweep, now, resume) if file.exists() else set()
    if not done:
        environment.write_at_once(sweep.folder / DESIGN_FILE, _design_text(sweep))
        environment.save(now, sweep.folder)
    left = [run for run in sweep.design.runs() if run.run_id not in done]
    watch.began(left)
    with ResultsWriter(file) as writer:
        for place, run in enumerate(left):
            writer.append(execute(run))
            watch.ended_run(run)
            if place + 1 == len(left) or left[place + 1].block != run.block:
                watch.ended_block(run.block)
    if left:
        environment.save(environment.finished(environment.load(sweep.folder)), sweep.folder)


def _done_before(sweep: Sweep, now: Environment, resume: bool) -> set[str]:
    """The runs that the folder holds, once it is sure that they belong to this sweep; drops what was cut off."""
    folder, file = sweep.folder, sweep.folder / RESULTS_FILE
    if not resume:
        raise UsageError(f"--out {folder}", "a folder with results", "--resume to go on with them, or another folder")
    rows = load_whole_runs(file)
    if not rows:
        file.unlink()
        return set()
    if _design_in(folder) != _design_text(sweep):
        allowed = "the very options it was begun with: its rows would not compare (or another folder)"
        raise UsageError(f"--resume {folder}", "another design", allowed)
    then = environment.load(folder)
    for before, here in zip(_decisive(then), _decisive(now), strict=True):
        if before != here:
            allowed = "the same code and machine for all of a sweep's runs (or another folder)"
            raise UsageError(f"--resume {folder}", f"results of {before}, and this is {here}", allowed)
    _keep_only(rows, file)
    return {row.run_id for row in rows}


def _keep_only(rows: Sequence[Row], file: Path) -> None:
    """Leaves these rows in the file, and no torn ones, in one step."""
    repaired = file.with_suffix(".repaired")
    repaired.unlink(missing_ok=True)
    with ResultsWriter(repaired) as writer:
        writer.append(rows)
    repaired.replace(file)


def _design_text(sweep: Sweep) -> str:
    """All that fixes a sweep's runs, and the columns that its rows have."""
    document = {"study": sweep.study, "columns": COLUMNS, "design": asdict(sweep.design)}
    return json.dumps(document, indent=2) + "\n"


def _design_in(folder: Path) -> str:
    try:
        return (folder / DESIGN_FILE).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--resume {folder}", f"no {DESIGN_FILE}", "a folder that a sweep was begun in") from error


def _decisive(of: Environment) -> tuple[str, ...]:
    """What must be the same for rows to compare, in words."""
    with_changes = f" with changes {of.changes[:12] if of.changes else environment.UNKNOWN}" if of.dirty else ""
    return f"commit {of.commit[:12]}{with_changes}", of.python, of.cpu_model, f"{of.cores} cores"
