"""Kinds of run beside a sweep: the plan of each, the columns of its blocks, and the file that keeps both.

To add a kind NAME: a file here with its plan and its columns, pure; ``measure/NAME.py`` with ``measure(plan, number,
bench)``, which observes a block; ``judge/NAME.py`` with ``judged(plan, blocks, limits)``; and a line in ``KINDS``. The
runner, the file, the estimate of time, ``verify`` and the measurements that a study is given follow from the line.

A file has the plan's fields, and the blocks behind them as ``seen``. A setting is kept as a mapping of its levels: a
factor that it lacks reads as standing at its default. Left out: sweeps, whose blocks are kept one by one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from experiments.kinds.cold import Cold, ColdBlock
from experiments.kinds.delivery import Received, ReceivedBlock
from experiments.kinds.standalone import Alone, Repetition
from experiments.kinds.stress import Stress, StressRepetition
from experiments.kinds.table import CellBlock, Cells
from experiments.results import apart


class Plan(Protocol):
    """Plan of a run."""

    @property
    def blocks(self) -> int:
        """Blocks to be measured."""

    @property
    def lasts_s(self) -> float:
        """Seconds for all blocks, about."""

    def order(self, number: int) -> Sequence[object]:
        """The order that is drawn for a block."""


class Block(Protocol):
    """A block of a run."""

    @property
    def number(self) -> int: ...

    @property
    def started_at(self) -> str: ...

    @property
    def duration_s(self) -> float: ...


P = TypeVar("P", bound=Plan)
B = TypeVar("B", bound=Block)


@dataclass(frozen=True, slots=True)
class Kind(Generic[P, B]):
    """A kind of run. Modules of its name observe and judge it."""

    name: str
    file: str
    title: str
    """Servers or runs that are measured, in words."""
    plan: type[P]
    block: type[B]
    measured: str
    """Field of a block that holds what was measured. ``runs``: in the order that was drawn, each with its cell."""
    program: str | None = None
    """Load program that it needs."""

    def save(self, folder: Path, plan: P, blocks: Sequence[B]) -> None:
        """Writes the file whole. Raises OSError."""
        apart.write(folder / self.file, apart.with_levels(msgspec.to_builtins(plan)) | {"seen": blocks})

    def load(self, folder: Path) -> tuple[P, tuple[B, ...]]:
        """Plan and blocks of a folder. UsageError where there are none that can be read."""
        return apart.read(folder / self.file, self._read)

    def _read(self, content: dict[str, Any]) -> tuple[P, tuple[B, ...]]:
        blocks = msgspec.convert(content.pop("seen"), tuple[self.block, ...])  # type: ignore[name-defined]
        return msgspec.convert(apart.with_settings(content), self.plan, from_attributes=True), blocks


KINDS: Mapping[str, Kind[Any, Any]] = {
    each.name: each
    for each in (
        Kind("standalone", "alone.json", "servers by themselves", Alone, Repetition, "servers"),
        Kind("cold", "cold.json", "cold runs", Cold, ColdBlock, "runs"),
        Kind("delivery", "received.json", "what receivers tell", Received, ReceivedBlock, "runs"),
        Kind("table", "cells.json", "cells of a table", Cells, CellBlock, "cells", program="c-http"),
        Kind("stress", "stress.json", "servers under stress", Stress, StressRepetition, "servers", program="c-http"),
    )
}
"""Every kind, in the order in which a folder's runs are read."""


def kind_of(plan: P) -> Kind[P, Any]:
    """The kind of a plan."""
    return next(kind for kind in KINDS.values() if isinstance(plan, kind.plan))


def kept(folder: Path) -> Mapping[str, tuple[Any, Sequence[Any]]]:
    """Plan and blocks of every run beside a sweep that a folder holds, by the kinds' names. Raises UsageError."""
    return {name: kind.load(folder) for name, kind in KINDS.items() if (folder / kind.file).exists()}
