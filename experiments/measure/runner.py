"""Runs a sweep's blocks until they are enough, and keeps each at once.

Whether to go on, and whether a block is to be run again, is asked of functions: nothing here judges. A block that was
robbed of time is run again once, at most for a fifth of the sweep's blocks; every attempt is kept, and the last counts.
What is interrupted can be resumed: whole blocks stay, and the next one begins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.design.sweep import Sweep
from experiments.results import environment, files, rows
from experiments.results.environment import Environment
from experiments.results.foretold import FORETOLD_FILE
from experiments.results.observed import Block
from stock_service.rpc.errors import UsageError

REPEATED_SHARE = 5
"""One of so many blocks may be run again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions that are asked while a sweep runs."""

    goes_on: Callable[[Sequence[Block]], bool]
    """Tells if more blocks are needed, at each declared look but the last."""
    is_robbed: Callable[[Block], bool]
    """Tells if a block lost so much time to others that it is run again."""
    began: Callable[[int], None]
    """Told before a block: how many are done."""
    ended: Callable[[Sequence[Block]], None]
    """Told after each block that counts: all that are done."""
    again: Callable[[Block], None]
    """Told that this block is run once more."""


def run_sweep(
    sweep: Sweep, folder: Path, resume: bool, measure: Callable[[int, int], Block], asked: Asked
) -> tuple[Block, ...]:
    """Measures block after block; gives those that count. ``measure`` does one: its number, and which attempt.

    Raises UsageError where the folder holds another sweep, or one and ``resume`` is not asked for; OSError where it
    cannot be written. What ``measure`` raises ends the sweep, which can be resumed.
    """
    kept = list(_begun(sweep, folder, resume))
    done = list(files.counting(kept))
    repeated = len(kept) - len(done)
    if done and done[-1].attempt == 1 and asked.is_robbed(done[-1]) and repeated < repeats_max(sweep):
        done.pop()
    while _goes_on(sweep, done, asked):
        number, attempt = len(done) + 1, 1
        asked.began(len(done))
        if kept and kept[-1].number == number:  # it was robbed, and its repetition interrupted
            block = kept[-1]
        else:
            block = measure(number, attempt)
            files.append_block(folder, block)
        if asked.is_robbed(block) and repeated < repeats_max(sweep):
            asked.again(block)
            repeated += 1
            block = measure(number, attempt + 1)
            files.append_block(folder, block)
        done.append(block)
        files.write_at_once(folder / rows.ROWS_FILE, rows.table(sweep, done).encode())
        asked.ended(done)
    files.write_at_once(folder / rows.ROWS_FILE, rows.table(sweep, done).encode())
    environment.finish(folder)
    return tuple(done)


def repeats_max(sweep: Sweep) -> int:
    """Number of blocks of a sweep that may be run again."""
    return -(-sweep.looks[-1] // REPEATED_SHARE)


def _goes_on(sweep: Sweep, done: Sequence[Block], asked: Asked) -> bool:
    """True where another block is to be measured."""
    if len(done) >= sweep.looks[-1]:
        return False
    return len(done) not in sweep.looks or asked.goes_on(done)


def _begun(sweep: Sweep, folder: Path, resume: bool) -> tuple[Block, ...]:
    """Blocks of this sweep that the folder holds; a new folder is begun."""
    now = environment.look()
    if not (folder / files.SWEEP_FILE).exists():
        if not (folder / FORETOLD_FILE).exists():  # it was made for this sweep
            check_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        environment.save(now, folder)
        files.write_sweep(folder, sweep)  # last: with it the folder is a sweep's
        return ()
    if not resume:
        raise UsageError(f"--out {folder}", "a folder with results", "--resume to go on with them, or another folder")
    if files.read_sweep(folder) != sweep:
        allowed = "the very options that it was begun with (or another folder)"
        raise UsageError(f"--resume {folder}", "another sweep", allowed)
    check_same(folder, environment.load(folder), now)
    files.drop_torn(folder)
    return files.read_blocks(folder)


def check_free(folder: Path) -> None:
    """Refuses a folder that holds anything but a record of the machine. Raises UsageError."""
    if folder.exists() and any(each.name != environment.ENVIRONMENT_FILE for each in folder.iterdir()):
        raise UsageError(f"--out {folder}", "a folder with other files", "a new or an empty one")


def check_same(folder: Path, then: Environment, now: Environment) -> None:
    """Refuses to add blocks of other code, versions or another machine. Raises UsageError."""
    for before, here in zip(then.decisive(), now.decisive(), strict=True):
        if before != here:
            allowed = "the same code, versions and machine for all blocks (or another folder)"
            raise UsageError(f"--resume {folder}", f"blocks of {before}, and this is {here}", allowed)
