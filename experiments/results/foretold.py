"""Predictions for a sweep's arms, with their time: ``foretold.json`` in its folder, written before its first block.

Numbers have six digits, so that another machine's arithmetic computes the same file. Left out: what it was made from
beside the demands; the blocks of that lie in a folder inside.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from experiments.design.demands import Demands
from experiments.design.foretold import Foretold
from experiments.design.setting import setting
from experiments.results import apart
from experiments.results.apart import Levels
from experiments.results.files import write_at_once

FORETOLD_FILE = "foretold.json"


@dataclass(frozen=True, slots=True)
class _OneFile:
    """One arm; see ``Foretold``."""

    levels: Levels
    demands: Demands
    workers: int
    cores: float
    processes: int
    capacity_hz: float
    limit: str
    throughput_hz: float
    response_s: float | None
    """None: infinite."""
    useful_workers: int
    knee_clients: float


@dataclass(frozen=True, slots=True)
class _ForetoldFile:
    written_at: str
    foretold: tuple[_OneFile, ...]


def text(foretold: Sequence[Foretold], written_at: str) -> str:
    """The file's text. ``written_at``: ISO 8601, as blocks have it."""
    return apart.text(_ForetoldFile(written_at, tuple(map(_kept, foretold))))


def save(folder: Path, foretold: Sequence[Foretold], written_at: str) -> None:
    """Writes ``foretold.json``. Raises OSError."""
    write_at_once(folder / FORETOLD_FILE, text(foretold, written_at).encode())


def load(folder: Path) -> tuple[str, tuple[Foretold, ...]]:
    """When it was written, and what was foretold. UsageError where there is none that can be read."""
    file = apart.read(folder / FORETOLD_FILE, _ForetoldFile)
    return file.written_at, tuple(map(_read, file.foretold))


def _kept(one: Foretold) -> _OneFile:
    return _OneFile(
        levels=dict(one.setting.levels),
        demands=Demands(*map(_rounded, astuple(one.demands))),
        workers=one.workers,
        cores=one.cores,
        processes=one.processes,
        capacity_hz=_rounded(one.capacity_hz),
        limit=one.limit,
        throughput_hz=_rounded(one.throughput_hz),
        response_s=_rounded(one.response_s) if math.isfinite(one.response_s) else None,
        useful_workers=one.useful_workers,
        knee_clients=_rounded(one.knee_clients),
    )


def _read(one: _OneFile) -> Foretold:
    return Foretold(
        setting=setting(**one.levels),
        demands=one.demands,
        workers=one.workers,
        cores=one.cores,
        processes=one.processes,
        capacity_hz=one.capacity_hz,
        limit=one.limit,
        throughput_hz=one.throughput_hz,
        response_s=math.inf if one.response_s is None else one.response_s,
        useful_workers=one.useful_workers,
        knee_clients=one.knee_clients,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
