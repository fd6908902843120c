"""Block of a run beside a sweep: each place of the plan as it was observed, in the order that was drawn. Pure."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from experiments.design.limits import Limits
from experiments.results.observed import RoundSeen

Observed = TypeVar("Observed")


@dataclass(frozen=True, slots=True)
class Run(Generic[Observed]):
    """One place of a plan, a server or a cell, as it was observed; and how much time other processes took meanwhile."""

    place: int
    seen: Observed
    machine: RoundSeen | None = None
    """None in a block that was recorded before runs of this kind watched the machine."""


@dataclass(frozen=True, slots=True)
class Block(Generic[Observed]):
    """One block: its runs, in the order in which they ran."""

    number: int
    """Number of the block, from 1."""
    started_at: str
    """Start of the block, ISO 8601. A label."""
    duration_s: float
    cores: int
    memory_mib: float
    """Memory of the machine."""
    runs: tuple[Run[Observed], ...]

    def by_place(self) -> "Block[Observed]":
        """The same block with its runs in the plan's order. Each place ran once."""
        return replace(self, runs=tuple(sorted(self.runs, key=lambda run: run.place)))

    def counting(self, limits: Limits) -> "Block[Observed]":
        """The same block without the runs during which others took the cores."""
        return replace(self, runs=tuple(run for run in self.runs if self.counts(run, limits)))

    def counts(self, run: Run[Observed], limits: Limits) -> bool:
        """True where others did not take the cores during a run, by the rule of a sweep's rounds."""
        seen = run.machine
        return seen is None or not limits.robbed(seen.lost_ticks, seen.duration_s, self.cores)
