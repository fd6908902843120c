"""Runs blocks until they are enough, of a sweep or of a run beside it, and keeps each at once.

Whether to go on, and whether a block is to be run again, is asked of functions: nothing here judges. A block that was
robbed of time is run again once, at most for a fifth of the sweep's blocks; every attempt is kept, and the last counts.
What is interrupted can be resumed: whole blocks stay, and the next one begins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from experiments.design.sweep import Sweep
from experiments.kinds import Block as AnyBlock
from experiments.kinds import Kind, Plan, kind_of
from experiments.kinds.prediction import FORETOLD_FILE
from experiments.measure.bench import Bench
from experiments.results import environment, files, rows
from experiments.results.observed import Block
from stock_service.rpc.errors import UsageError

P = TypeVar("P")
B = TypeVar("B", bound=AnyBlock)


@dataclass(frozen=True, slots=True)
class Asked(Generic[B]):
    """Questions that are asked while blocks are measured."""

    goes_on: Callable[[Sequence[B]], bool]
    """Tells if more blocks are needed; for a sweep, at each declared look but the last."""
    began: Callable[[int], None]
    """Told before a block: how many are done."""
    is_robbed: Callable[[B], bool] = lambda _: False
    """Tells if a block lost so much time to others that it is run again."""
    ended: Callable[[Sequence[B]], None] = lambda _: None
    """Told after each block that counts: all that are done."""
    again: Callable[[B], None] = lambda _: None
    """Told that this block is run once more."""


class _Kept(Protocol[P, B]):
    """Way in which a run is kept in a folder."""

    @property
    def file(self) -> str:
        """File that is there once the run was begun."""

    def begin(self, folder: Path, plan: P) -> None: ...

    def load(self, folder: Path) -> tuple[P, Sequence[B]]: ...

    def add(self, folder: Path, plan: P, blocks: Sequence[B]) -> None:
        """Keeps the last of these blocks; the others are kept."""


class _Swept:
    """A sweep has a folder of its own, and its blocks one by one."""

    file = files.SWEEP_FILE

    def begin(self, folder: Path, plan: Sweep) -> None:
        if not (folder / FORETOLD_FILE).exists():  # it was made for this sweep
            check_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        environment.save(environment.look(), folder)
        files.write_sweep(folder, plan)  # last: with it the folder is a sweep's

    def load(self, folder: Path) -> tuple[Sweep, Sequence[Block]]:
        files.drop_torn(folder)
        return files.read_sweep(folder), files.read_blocks(folder)

    def add(self, folder: Path, plan: Sweep, blocks: Sequence[Block]) -> None:
        files.append_block(folder, blocks[-1])
        _write_rows(folder, plan, blocks)


@dataclass(frozen=True, slots=True)
class _Beside:
    """A run of another kind has a file in the folder of a sweep, or in one of its own."""

    kind: Kind[Any, Any]

    @property
    def file(self) -> str:
        return self.kind.file

    def begin(self, folder: Path, plan: Plan) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / environment.ENVIRONMENT_FILE).exists():
            check_same(folder)
        else:
            environment.save(environment.look(), folder)
        self.kind.save(folder, plan, ())

    def load(self, folder: Path) -> tuple[Plan, Sequence[Any]]:
        plan, blocks = self.kind.load(folder)
        return plan, blocks

    def add(self, folder: Path, plan: Plan, blocks: Sequence[Any]) -> None:
        self.kind.save(folder, plan, blocks)


def run_sweep(
    sweep: Sweep, folder: Path, resume: bool, measure: Callable[[int, int], Block], asked: Asked[Block]
) -> tuple[Block, ...]:
    """Measures the blocks of a sweep; gives those that count. ``measure`` does one: its number, and which attempt.

    Raises UsageError where the folder holds another sweep, or one and ``resume`` is not asked for; OSError where it
    cannot be written. What ``measure`` raises ends the sweep, which can be resumed.
    """

    def goes_on(done: Sequence[Block]) -> bool:
        return len(done) < sweep.looks[-1] and (len(done) not in sweep.looks or asked.goes_on(done))

    done = _run(_Swept(), sweep, folder, resume, measure, replace(asked, goes_on=goes_on), sweep.repeats_max)
    _write_rows(folder, sweep, done)
    return done


def run_beside(plan: Plan, folder: Path, resume: bool, on: Bench, began: Callable[[int], None]) -> tuple[Any, ...]:
    """Measures the blocks of a run of another kind; gives all. ``began`` is told before each how many are done.

    Raises as ``run_sweep``, and UsageError where the folder holds what was measured on another machine.
    """
    kind = kind_of(plan)
    observe = import_module(f"experiments.measure.{kind.name}").measure
    asked: Asked[Any] = Asked(goes_on=lambda done: len(done) < plan.blocks, began=began)
    return _run(_Beside(kind), plan, folder, resume, lambda number, _: observe(plan, number, on), asked)


def _run(
    by: _Kept[P, B],
    plan: P,
    folder: Path,
    resume: bool,
    measure: Callable[[int, int], B],
    asked: Asked[B],
    repeats_max: int = 0,
) -> tuple[B, ...]:
    kept = list(_begun(by, plan, folder, resume))

    def measured(number: int, attempt: int) -> B:
        kept.append(measure(number, attempt))
        by.add(folder, plan, kept)
        return kept[-1]

    done = list({each.number: each for each in kept}.values())
    repeated = len(kept) - len(done)
    once = done and [each.number for each in kept].count(done[-1].number) == 1
    if once and asked.is_robbed(done[-1]) and repeated < repeats_max:
        done.pop()
    while asked.goes_on(done):
        number = len(done) + 1
        asked.began(len(done))
        # a block that is there was robbed, and its repetition interrupted
        block = kept[-1] if kept and kept[-1].number == number else measured(number, 1)
        if asked.is_robbed(block) and repeated < repeats_max:
            asked.again(block)
            repeated += 1
            block = measured(number, 2)
        done.append(block)
        asked.ended(done)
    environment.finish(folder)
    return tuple(done)


def _begun(by: _Kept[P, B], plan: P, folder: Path, resume: bool) -> Sequence[B]:
    """Blocks of this plan that the folder holds; a run that is not there is begun."""
    if not (folder / by.file).exists():
        by.begin(folder, plan)
        return ()
    if not resume:
        given, allowed = f"a folder with {by.file}", "--resume to go on with it, or another folder"
        raise UsageError(f"--out {folder}", given, allowed)
    begun, blocks = by.load(folder)
    if begun != plan:
        allowed = "the very options that it was begun with (or another folder)"
        raise UsageError(f"--resume {folder}", f"another plan in {by.file}", allowed)
    check_same(folder)
    return blocks


def _write_rows(folder: Path, sweep: Sweep, blocks: Sequence[Block]) -> None:
    files.write_at_once(folder / rows.ROWS_FILE, rows.table(sweep, files.counting(blocks)).encode())


def check_free(folder: Path) -> None:
    """Refuses a folder that holds anything but a record of the machine. Raises UsageError."""
    if folder.exists() and any(each.name != environment.ENVIRONMENT_FILE for each in folder.iterdir()):
        raise UsageError(f"--out {folder}", "a folder with other files", "a new or an empty one")


def check_same(folder: Path) -> None:
    """Refuses to add blocks of other code, versions or another machine. Raises UsageError."""
    then, now = environment.load(folder), environment.look()
    for before, here in zip(then.decisive(), now.decisive(), strict=True):
        if before != here:
            allowed = "the same code, versions and machine for all blocks (or another folder)"
            raise UsageError(f"--resume {folder}", f"blocks of {before}, and this is {here}", allowed)
