"""Block of a run that is not a sweep. A block observes the places of the run's plan, in random order.

A place is a server or a cell of the plan. Left out: blocks of a sweep; ``results/observed.py`` has these blocks. The
functions are pure.
"""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from experiments.design.limits import Limits
from experiments.results.observed import RoundSeen

Observed = TypeVar("Observed")


@dataclass(frozen=True, slots=True)
class Run(Generic[Observed]):
    """Observation of one place of a plan, and the processor time that other programs took during the observation."""

    place: int
    seen: Observed
    machine: RoundSeen | None = None
    """Processor time that other programs took during the run. None in older recordings."""


@dataclass(frozen=True, slots=True)
class Block(Generic[Observed]):
    """One block of a run that is not a sweep: observations of the plan's places, in the order of time."""

    number: int
    """Number of the block, from 1."""
    started_at: str
    """Time at which the block started, in ISO 8601 and UTC. No measured value is computed from this time."""
    duration_s: float
    cores: int
    memory_mib: float
    """Memory of the machine in MiB."""
    runs: tuple[Run[Observed], ...]

    def by_place(self) -> "Block[Observed]":
        """Copy of the block with its runs in the order of the plan's places. Only for kinds that observe each place
        once in a block."""
        return replace(self, runs=tuple(sorted(self.runs, key=lambda run: run.place)))

    def counting(self, limits: Limits) -> "Block[Observed]":
        """Copy of the block. Runs in which other programs took too much processor time are left out."""
        return replace(self, runs=tuple(run for run in self.runs if self.counts(run, limits)))

    def counts(self, run: Run[Observed], limits: Limits) -> bool:
        """False if other programs took too much processor time during the run (``Limits.robbed``). Otherwise True.

        In an older recording this processor time is unknown, and all runs count.
        """
        seen = run.machine
        return seen is None or not limits.robbed(seen.lost_ticks, seen.duration_s, self.cores)
