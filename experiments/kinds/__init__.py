"""Kinds of run other than a sweep, such as cold runs. A kind has a plan, a form of its blocks, and files.

A new kind NAME needs three modules and a line in ``KINDS``:

- ``kinds/NAME.py`` has the plan and the form of an observation, and is pure.
- ``measure/NAME.py`` has ``runs(plan, number, bench)``. This function observes the places of block ``number`` in random
  order. A place is a server or a cell of the plan.
- ``judge/NAME.py`` has ``judged(plan, blocks, limits)``.

The runner, the files, the estimate of time, ``verify`` and the studies find a kind by its line in ``KINDS``. A sweep is
not a kind: its plan is in ``design/sweep.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from clients.load.record.cold_run import ColdRun
from experiments.kinds.block import Block
from experiments.kinds.cold import ColdPlan
from experiments.kinds.delivery import Delivered, DeliveryPlan
from experiments.kinds.standalone import StandalonePlan, StartSeen
from experiments.kinds.stress import StressPlan, StressSeen
from experiments.kinds.table import CellSeen, TablePlan
from experiments.results.files import Form, blocks_of, read_plan, with_levels, with_settings


class Plan(Protocol):
    """Plan of a run of any kind."""

    @property
    def blocks(self) -> int:
        """Number of blocks of the run."""

    @property
    def lasts_s(self) -> float:
        """Estimated time of all blocks, in seconds."""

    def order(self, number: int) -> tuple[int, ...]:
        """Indices of the places of the plan that block ``number`` observes, in a random order. Equal plans give equal
        orders."""


P = TypeVar("P", bound=Plan)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Kind(Generic[P, S]):
    """Kind of run. ``measure/NAME.py`` observes the blocks of a kind, and ``judge/NAME.py`` judges the blocks."""

    name: str
    title: str
    """Name of the kind for readers, such as ``cold runs``."""
    plan: type[P]
    seen: type[S]
    """Type of the observation of one place of the plan."""
    program: str | None = None
    """Load program that must be built for the kind, or None."""

    @property
    def form(self) -> Form[P, Block[S]]:
        """Files of a run: the plan is in ``NAME.json``, and the blocks are in ``NAME.jsonl.gz``."""
        return Form(f"{self.name}.json", _plain, self._read, f"{self.name}.jsonl.gz", Block[self.seen])  # type: ignore[name-defined]

    def load(self, folder: Path) -> tuple[P, tuple[Block[S], ...]]:
        """Plan and blocks of a folder. Raises UsageError if the folder has no readable files of the kind."""
        return read_plan(folder, self.form), blocks_of(folder, self.form)

    def _read(self, content: dict[str, Any]) -> P:
        return msgspec.convert(with_settings(content), self.plan, from_attributes=True)


def _plain(plan: object) -> dict[str, Any]:
    plain: dict[str, Any] = with_levels(msgspec.to_builtins(plan))
    return plain


KINDS: Mapping[str, Kind[Any, Any]] = {
    each.name: each
    for each in (
        Kind("standalone", "servers by themselves", StandalonePlan, StartSeen),
        Kind("cold", "cold runs", ColdPlan, ColdRun),
        Kind("delivery", "what receivers tell", DeliveryPlan, Delivered),
        Kind("table", "cells of a table", TablePlan, CellSeen, program="c-http"),
        Kind("stress", "servers under stress", StressPlan, StressSeen, program="c-http"),
    )
}
"""Every kind by its name. The runs in a folder are read in this order of kinds."""


def kind_of(plan: P) -> Kind[P, Any]:
    """Kind to which a plan belongs."""
    return next(kind for kind in KINDS.values() if isinstance(plan, kind.plan))


def kept(folder: Path) -> Mapping[str, tuple[Any, Sequence[Block[Any]]]]:
    """Plan and blocks of every run in a folder, by the name of the run's kind. Sweeps are left out. Raises UsageError
    if a file cannot be read."""
    return {name: kind.load(folder) for name, kind in KINDS.items() if (folder / kind.form.plan_file).exists()}


def unfinished(folder: Path) -> Iterator[str]:
    """One sentence for each run of the folder that has fewer blocks than its plan, because the run was broken off."""
    for name, (plan, seen) in kept(folder).items():
        if len(seen) < plan.blocks:
            yield f"{folder / KINDS[name].form.plan_file}: broken off after {len(seen)} of {plan.blocks} blocks"
