"""Cold runs, as they were seen: every block of a plan, kept as ``cold.json`` in the folder; and a row for each cell.

Left out: what is computed over blocks.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clients.load.record.cold_run import ColdRun
from experiments.design.cold import Cold, ColdCell
from experiments.design.setting import setting
from experiments.results import apart
from experiments.results.apart import Levels
from experiments.results.observed import RoundSeen

COLD_FILE = "cold.json"


@dataclass(frozen=True, slots=True)
class ColdSeen:
    """One run, and the machine during it."""

    cell: int
    """By its place in the plan."""
    run: ColdRun
    machine: RoundSeen


@dataclass(frozen=True, slots=True)
class ColdBlock:
    """One block, its runs in the order in which they ran."""

    number: int
    """From 1."""
    started_at: str
    """ISO 8601, a label."""
    duration_s: float
    pinned: bool
    calibration_us: float
    """A fixed piece of work on the server's core, before the block."""
    cores: int
    runs: tuple[ColdSeen, ...]


@dataclass(frozen=True, slots=True)
class ColdRow:
    """One cell in one block: means over those of its runs that were answered whole."""

    block: int
    cell: ColdCell
    runs: int
    errors: int
    """Calls of all its runs that got no valid reply; such a run is in no mean here."""
    connect_us: float
    first_call_us: float
    rest_us_mean: float | None
    """Of the other calls; None for runs of one call."""
    mean_us: float
    """Of all calls of a run, the first among them."""
    with_connect_us: float
    """The same with connecting added, spread over the calls."""


def rows(plan: Cold, block: ColdBlock, left_out: Sequence[int] = ()) -> Iterator[ColdRow]:
    """A row for each cell of which a run was answered whole. ``left_out``: runs of the block that do not count."""
    counting = [each for place, each in enumerate(block.runs) if place not in left_out]
    for place, cell in enumerate(plan.cells):
        own = [each.run for each in counting if each.cell == place]
        whole = [each for each in own if not each.errors and each.rest == cell.calls - 1]
        first_ns = [each.first_ns for each in whole if each.first_ns is not None]
        if not first_ns:
            continue
        connect_us = statistics.fmean(each.connect_ns for each in whole) / 1000
        first_us = statistics.fmean(first_ns) / 1000
        rest_us = statistics.fmean(each.rest_ns for each in whole) / 1000
        yield ColdRow(
            block=block.number,
            cell=cell,
            runs=len(whole),
            errors=sum(sum(each.errors.values()) for each in own),
            connect_us=connect_us,
            first_call_us=first_us,
            rest_us_mean=rest_us / (cell.calls - 1) if cell.calls > 1 else None,
            mean_us=(first_us + rest_us) / cell.calls,
            with_connect_us=(connect_us + first_us + rest_us) / cell.calls,
        )


@dataclass(frozen=True, slots=True)
class _CellFile:
    levels: Levels
    calls: int
    runs: int


@dataclass(frozen=True, slots=True)
class _ColdFile:
    study: str
    part: str
    cells: tuple[_CellFile, ...]
    blocks: int
    seed: int
    warm_up_calls: int
    seen: tuple[ColdBlock, ...]


def save(folder: Path, plan: Cold, seen: Sequence[ColdBlock]) -> None:
    """Writes ``cold.json``. Raises OSError."""
    cells = tuple(_CellFile(dict(each.setting.levels), each.calls, each.runs) for each in plan.cells)
    beside = plan.blocks, plan.seed, plan.warm_up_calls
    apart.write(folder / COLD_FILE, _ColdFile(plan.study, plan.part, cells, *beside, tuple(seen)))


def load(folder: Path) -> tuple[Cold, tuple[ColdBlock, ...]]:
    """Content of ``cold.json``. UsageError where there is none that can be read."""
    file = apart.read(folder / COLD_FILE, _ColdFile)
    cells = tuple(ColdCell(setting(**each.levels), each.calls, each.runs) for each in file.cells)
    plan = Cold(file.study, file.part, cells, file.blocks, file.seed, file.warm_up_calls)
    return plan, file.seen
