"""Runs the blocks of a sweep, or of a run of another kind, until the caller needs no more blocks. Writes each block at
once.

A sweep is a measurement in blocks. In a block, all servers start, and every arm is measured. An arm is a server under a
load. Functions of the caller decide if another block is needed, and if a block is **robbed**. A robbed block lost too
much time to other processes. A robbed block is measured once more. At most a fifth of a sweep's blocks are repeated.
Every attempt at a block is written, and the last attempt counts. An interrupted run can be resumed after its last whole
block.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil

from experiments.design.slots import seed_of, starts
from experiments.design.sweep import Slices, Sweep
from experiments.kinds import Plan, kind_of
from experiments.kinds.block import Block as KindBlock
from experiments.kinds.prediction import FORETOLD_FILE
from experiments.measure import slices, windows
from experiments.measure.bench import Bench
from experiments.measure.programs import kept_to
from experiments.measure.slices import Watch
from experiments.results import environment, files, rows
from experiments.results.files import SWEPT, Form, Numbered
from experiments.results.machine import calibrated_us, cores
from experiments.results.observed import Block
from stock_service.rpc.errors import UsageError

P = TypeVar("P")
B = TypeVar("B", bound=Numbered)


@dataclass(frozen=True, slots=True)
class Asked(Generic[B]):
    """Functions of the caller, which ``run_sweep`` and ``run_beside`` call during the measurement."""

    goes_on: Callable[[Sequence[B]], bool]
    """True if another block is needed. For a sweep, this function is called at every look (a number of blocks after
    which a sweep is judged) except the last look."""
    began: Callable[[int], None]
    """Function that is called before each block. Its argument is the number of finished blocks."""
    is_robbed: Callable[[B], bool] = lambda _: False
    """True for a block that lost too much time to other processes, and so must be measured again."""
    ended: Callable[[Sequence[B]], None] = lambda _: None
    """Function that is called after each block that counts. Its argument has all counted blocks so far."""
    again: Callable[[B], None] = lambda _: None
    """Function that is called before a robbed block is measured again. Its argument is the robbed block."""
    kept: Callable[[Sequence[B]], None] = lambda _: None
    """Function that is called after each attempt at a block. Its argument has all attempts so far, of all blocks."""


def measure_block(sweep: Sweep, number: int, attempt: int, bench: Bench, watch: Watch = lambda _: None) -> Block:
    """Measures one block of a sweep. Waits until the end of the block. Calls ``watch`` at the end of each round.

    Raises ProgramFailed if a server does not start or fails. Raises Unavailable if a client of slices cannot connect or
    dies. Raises KeyboardInterrupt. A window whose clients cannot connect is kept as a failed window.
    """
    started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with kept_to(bench.server_cores):
        calibration_us = calibrated_us()
    observe = slices.observe if isinstance(sweep.turns, Slices) else windows.observe
    seen = observe(sweep, number, attempt, bench, watch)
    first = starts(sweep, seed_of(sweep, number, attempt)) if sweep.starts_at_once else ()
    return Block(
        number=number,
        attempt=attempt,
        started_at=started_at,
        duration_s=time.monotonic() - began_s,
        pinned=bench.server_cores is not None,
        calibration_us=calibration_us,
        slices=seen.slices,
        arms=seen.arms,
        servers=seen.servers,
        rounds=seen.rounds,
        cores=len(cores()),
        server_cores=bench.server_cores or (),
        load_cores=bench.load_cores or (),
        starts=[sweep.servers.index(key) for key in first],
    )


def run_sweep(
    sweep: Sweep, folder: Path, resume: bool, measure: Callable[[int, int], Block], asked: Asked[Block]
) -> tuple[Block, ...]:
    """Measures the blocks of a sweep, and gives the blocks that count.

    ``measure`` measures one block. Its arguments are the number of the block and the number of the attempt. Raises
    UsageError in three cases: the folder has another sweep; the folder has a sweep, and ``resume`` is false; another
    run measures into the folder now. Raises OSError if the folder cannot be written. An error of ``measure`` ends the
    sweep, which can be resumed.
    """

    def goes_on(done: Sequence[Block]) -> bool:
        return len(done) < sweep.looks[-1] and (len(done) not in sweep.looks or asked.goes_on(done))

    asked_ = replace(asked, goes_on=goes_on, kept=lambda blocks: _write_rows(folder, sweep, blocks))
    with files.held(folder):
        done = _run(SWEPT, sweep, folder, resume, measure, asked_, sweep.repeats_max)
        _write_rows(folder, sweep, done)
    return done


def run_beside(
    plan: Plan, folder: Path, resume: bool, on: Bench, began: Callable[[int], None]
) -> tuple[KindBlock[Any], ...]:
    """Measures all blocks of a run that is not a sweep, such as cold runs. ``began`` is called before each block, with
    the number of finished blocks.

    Raises the errors of ``run_sweep``. Also raises UsageError if the folder has blocks of another machine.
    """
    kind = kind_of(plan)
    observe = import_module(f"experiments.measure.{kind.name}").runs

    def measure(number: int, _: int) -> KindBlock[Any]:
        started_at, began_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        runs = tuple(observe(plan, number, on))
        memory_mib = psutil.virtual_memory().total / 2**20
        return KindBlock(number, started_at, time.monotonic() - began_s, len(cores()), memory_mib, runs)

    asked: Asked[KindBlock[Any]] = Asked(goes_on=lambda done: len(done) < plan.blocks, began=began)
    with files.held(folder):
        return _run(kind.form, plan, folder, resume, measure, asked)


def _run(
    form: Form[P, B],
    plan: P,
    folder: Path,
    resume: bool,
    measure: Callable[[int, int], B],
    asked: Asked[B],
    repeats_max: int = 0,
) -> tuple[B, ...]:
    """Measures blocks until ``asked.goes_on`` is false, and gives the blocks that count.

    If ``asked.is_robbed`` is true for a block, the block is measured once more. At most ``repeats_max`` blocks are
    measured again.
    """
    kept = list(_begun(form, plan, folder, resume))

    def measured(number: int, attempt: int) -> B:
        kept.append(measure(number, attempt))
        files.append_block(folder, kept[-1], form)
        asked.kept(kept)
        return kept[-1]

    done = list(files.counting(kept))
    repeated = len(kept) - len(done)
    once = done and [each.number for each in kept].count(done[-1].number) == 1
    if once and asked.is_robbed(done[-1]) and repeated < repeats_max:
        done.pop()
    while asked.goes_on(done):
        number = len(done) + 1
        asked.began(len(done))
        # a resumed run: the first attempt of this block was robbed, and the second attempt was interrupted
        block = kept[-1] if kept and kept[-1].number == number else measured(number, 1)
        if asked.is_robbed(block) and repeated < repeats_max:
            asked.again(block)
            repeated += 1
            block = measured(number, 2)
        done.append(block)
        asked.ended(done)
    environment.finish(folder)
    return tuple(done)


def _begun(form: Form[P, B], plan: P, folder: Path, resume: bool) -> Sequence[B]:
    """Blocks of this plan that the folder already has. If the folder has no plan, begins the run, and gives no blocks.

    Raises UsageError if the folder has a plan and ``resume`` is false. Also raises UsageError if the folder has another
    plan, or blocks of other code or of another machine.
    """
    if not (folder / form.plan_file).exists():
        _begin(form, plan, folder)
        return ()
    if not resume:
        given, allowed = f"a folder with {form.plan_file}", "--resume to continue this run, or another folder"
        raise UsageError(f"--out {folder}", given, allowed)
    files.drop_torn(folder, form)
    if files.read_plan(folder, form) != plan:
        allowed = "the options with which the run began (or another folder)"
        raise UsageError(f"--resume {folder}", f"another plan in {form.plan_file}", allowed)
    check_same(folder)
    return files.blocks_of(folder, form)


def _begin(form: Form[P, Any], plan: P, folder: Path) -> None:
    """Begins a run: writes first the environment, and last the plan, which marks the run as begun.

    A sweep's folder must be new or empty, or have the sweep's predictions. A run of another kind may use the folder of
    a sweep. Raises UsageError for another folder, or for a folder with blocks of another machine.
    """
    is_sweep = form.plan_file == files.SWEEP_FILE
    if is_sweep and not (folder / FORETOLD_FILE).exists():
        check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not is_sweep and (folder / environment.ENVIRONMENT_FILE).exists():
        check_same(folder)
    else:
        environment.save(environment.look(), folder)
    files.write_plan(folder, form, plan)


def _write_rows(folder: Path, sweep: Sweep, blocks: Sequence[Block]) -> None:
    files.write_at_once(folder / rows.ROWS_FILE, rows.table(sweep, files.counting(blocks)).encode())


def check_free(folder: Path) -> None:
    """Raises UsageError if the folder has files other than ``environment.json`` and the ``.tmp`` files that a crash
    leaves."""
    others = (each for each in (folder.iterdir() if folder.exists() else ()) if each.suffix != ".tmp")
    if any(each.name != environment.ENVIRONMENT_FILE for each in others):
        raise UsageError(f"--out {folder}", "a folder with other files", "a new or an empty folder")


def check_same(folder: Path) -> None:
    """Raises UsageError if the folder's blocks were measured with other code, with other versions or on another
    machine."""
    then, now = environment.load(folder), environment.look()
    for before, here in zip(then.decisive(), now.decisive(), strict=True):
        if before != here:
            allowed = "the same code, versions and machine for all blocks (or another folder)"
            raise UsageError(f"--resume {folder}", f"blocks of {before}, and this is {here}", allowed)
