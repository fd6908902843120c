"""Cells as they were seen: every block of a plan, kept as ``cells.json`` in the folder. Left out: what is computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.design.cells import Cell, CellRatio, Cells
from experiments.design.setting import setting
from experiments.results import apart
from experiments.results.apart import Levels
from experiments.results.observed import RoundSeen

CELLS_FILE = "cells.json"


@dataclass(frozen=True, slots=True)
class CellSeen:
    """One cell in one block. Times and bytes are of its counted requests; what is of the load is of the warm-up too."""

    requests: int
    """Answered as they should be, of those that count."""
    errors: int
    """Of the load."""
    total_s: float
    """From the first counted request's begin to the last one's end."""
    response_us: float
    connect_us: float
    """A mean, as ``response_us``; what is left of that is processing."""
    received_bytes: int
    sent_bytes: int
    load_requests: int
    """Answered in the whole load …"""
    load_s: float
    """… which took so long …"""
    server_cpu_s: float
    """… and so much of the server's processor time …"""
    client_cpu_s: float
    """… and of the client's."""
    sampled_s: float
    """From the first sample to the last one: the server was at work at the first …"""
    sampled_cpu_s: float
    """… and took so much processor time until the last …"""
    cpu_samples: tuple[float, ...]
    """… which are these shares of a core, from each sample to the next one, of much the same length."""
    memory_samples_mib: tuple[float, ...]
    """Resident, at the end of each."""
    machine: RoundSeen


@dataclass(frozen=True, slots=True)
class CellBlock:
    """Every cell once, in the plan's order."""

    number: int
    """From 1."""
    started_at: str
    """ISO 8601, a label."""
    duration_s: float
    calibration_us: float
    """A fixed piece of work on the server's core, before the block."""
    cores: int
    memory_mib: float
    """Of the machine."""
    cells: tuple[CellSeen, ...]


@dataclass(frozen=True, slots=True)
class _CellFile:
    levels: Levels
    requests: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class _RatioFile:
    """A ratio: its cells by their places."""

    name: str
    title: str
    above: tuple[int, ...]
    below: tuple[int, ...]
    quantity: str
    family: str


@dataclass(frozen=True, slots=True)
class _CellsFile:
    study: str
    part: str
    cells: tuple[_CellFile, ...]
    ratios: tuple[_RatioFile, ...]
    blocks: int
    seed: int
    seen: tuple[CellBlock, ...]


def save(folder: Path, plan: Cells, seen: Sequence[CellBlock]) -> None:
    """Writes ``cells.json``. Raises OSError."""
    place = {cell: number for number, cell in enumerate(plan.cells)}

    def places(of: Sequence[Cell]) -> tuple[int, ...]:
        return tuple(place[each] for each in of)

    content = _CellsFile(
        study=plan.study,
        part=plan.part,
        cells=tuple(_CellFile(dict(each.setting.levels), each.requests, each.pinned) for each in plan.cells),
        ratios=tuple(
            _RatioFile(each.name, each.title, places(each.above), places(each.below), each.quantity, each.family)
            for each in plan.ratios
        ),
        blocks=plan.blocks,
        seed=plan.seed,
        seen=tuple(seen),
    )
    apart.write(folder / CELLS_FILE, content)


def load(folder: Path) -> tuple[Cells, tuple[CellBlock, ...]]:
    """Content of ``cells.json``. UsageError where there is none that can be read."""
    file = apart.read(folder / CELLS_FILE, _CellsFile)
    cells = tuple(Cell(setting(**each.levels), each.requests, each.pinned) for each in file.cells)

    def of(places: Sequence[int]) -> tuple[Cell, ...]:
        return tuple(cells[place] for place in places)

    ratios = tuple(
        CellRatio(each.name, each.title, of(each.above), of(each.below), each.quantity, each.family)
        for each in file.ratios
    )
    return Cells(file.study, file.part, cells, ratios, file.blocks, file.seed), file.seen
