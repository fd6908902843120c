"""Kinds of run beside a sweep: the plan of each, the columns of its blocks, and the files that keep both.

To add a kind NAME: a file here with its plan and its columns, pure; ``measure/NAME.py`` with ``runs(plan, number,
bench)``, which observes the places of a block in their drawn order; ``judge/NAME.py`` with ``judged(plan, blocks,
limits)``; and a line in ``KINDS``. The runner, the files, the estimate of time, ``verify`` and the measurements that a
study is given follow from the line. Left out: sweeps, whose blocks have slices or windows.
"""

from collections.abc import Mapping, Sequence
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
from experiments.results.files import Form, blocks_of, read_plan
from experiments.results.plain import with_levels, with_settings


class Plan(Protocol):
    """Plan of a run."""

    @property
    def blocks(self) -> int:
        """Blocks to be measured."""

    @property
    def lasts_s(self) -> float:
        """Seconds for all blocks, about."""

    def order(self, number: int) -> tuple[int, ...]:
        """The places of the plan that a block observes, in the order that is drawn."""


P = TypeVar("P", bound=Plan)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Kind(Generic[P, S]):
    """A kind of run. Modules of its name observe and judge it."""

    name: str
    title: str
    """Servers or runs that are measured, in words."""
    plan: type[P]
    seen: type[S]
    """Observation of a place of the plan."""
    program: str | None = None
    """Load program that it needs."""

    @property
    def form(self) -> Form[P, Block[S]]:
        """Files of a run: ``NAME.json`` and ``NAME.jsonl.gz``."""
        return Form(f"{self.name}.json", _plain, self._read, f"{self.name}.jsonl.gz", Block[self.seen])  # type: ignore[name-defined]

    def load(self, folder: Path) -> tuple[P, tuple[Block[S], ...]]:
        """Plan and blocks of a folder. UsageError where there are none that can be read."""
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
"""Every kind, in the order in which a folder's runs are read."""


def kind_of(plan: P) -> Kind[P, Any]:
    """The kind of a plan."""
    return next(kind for kind in KINDS.values() if isinstance(plan, kind.plan))


def kept(folder: Path) -> Mapping[str, tuple[Any, Sequence[Block[Any]]]]:
    """Plan and blocks of every run beside a sweep that a folder holds, by the kinds' names. Raises UsageError."""
    return {name: kind.load(folder) for name, kind in KINDS.items() if (folder / kind.form.plan_file).exists()}
