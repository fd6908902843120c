"""Runs what is measured apart from sweeps, block by block, and keeps each at once; nothing here judges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from experiments.measure.runner import check_same
from experiments.results import environment
from stock_service.rpc.errors import UsageError

Plan = TypeVar("Plan")
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class Kept(Generic[Plan, Seen]):
    """Way in which a measurement is kept in a folder: the file's name, and the functions that write and read it."""

    file: str
    save: Callable[[Path, Plan, Sequence[Seen]], None]
    load: Callable[[Path], tuple[Plan, tuple[Seen, ...]]]

    def run(
        self, plan: Plan, wanted: int, folder: Path, resume: bool, measure: Callable[[int], Seen]
    ) -> tuple[Seen, ...]:
        """Measures until the folder has as many as wanted; gives all. ``measure`` does one, by its number from 1.

        Raises UsageError where the folder holds another plan, or one and ``resume`` is not asked for, or what was
        measured on another machine; OSError. What ``measure`` raises ends it, and it can be resumed.
        """
        seen = list(self._begun(plan, folder, resume))
        while len(seen) < wanted:
            seen.append(measure(len(seen) + 1))
            self.save(folder, plan, seen)
        environment.finish(folder)
        return tuple(seen)

    def _begun(self, plan: Plan, folder: Path, resume: bool) -> tuple[Seen, ...]:
        """Blocks of this plan that the folder holds. A folder with a sweep's results takes this beside them."""
        folder.mkdir(parents=True, exist_ok=True)
        now = environment.look()
        if not (folder / environment.ENVIRONMENT_FILE).exists():
            environment.save(now, folder)
        check_same(folder, environment.load(folder), now)
        if not (folder / self.file).exists():
            return ()
        if not resume:
            allowed = "--resume to go on with it, or another folder"
            raise UsageError(f"--out {folder}", f"a folder with {self.file}", allowed)
        kept, seen = self.load(folder)
        if kept != plan:
            allowed = "the very options that it was begun with (or another folder)"
            raise UsageError(f"--resume {folder}", f"another plan in {self.file}", allowed)
        return seen
