"""Reports of receivers: every block of a plan, kept as ``received.json`` in the folder; and a row for each run.

Left out: what is computed over blocks.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.design.received import Received, ReceivedCell
from experiments.design.setting import setting
from experiments.results import apart
from experiments.results.apart import Levels
from experiments.results.observed import RoundSeen

RECEIVED_FILE = "received.json"


@dataclass(frozen=True, slots=True)
class Told:
    """One run, as the receiver saw it and as the sender did. Times are nanoseconds, added up."""

    seconds: tuple[int, ...]
    """Messages that came in each whole second since the first."""
    timed: int
    """Messages that the receiver timed: all but the first."""
    answer_ns: int
    """Of those: from when a message had come until its reply was sent."""
    cycle_ns: int
    """Of those: the same from before the receive, so that waiting for the message is in it."""
    answered: int
    """Messages that the sender had a reply to, all but the first; 0 where nothing comes back."""
    response_ns: int
    """Of those: from the send to the whole reply, at the sender."""


@dataclass(frozen=True, slots=True)
class ReceivedSeen:
    """One run, and the machine during it."""

    cell: int
    """By its place in the plan."""
    told: Told
    machine: RoundSeen


@dataclass(frozen=True, slots=True)
class ReceivedBlock:
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
    runs: tuple[ReceivedSeen, ...]


@dataclass(frozen=True, slots=True)
class ReceivedRow:
    """One run of one block. A mean is None where nothing is counted in it."""

    block: int
    cell: ReceivedCell
    received_hz: float
    """Messages a second, mean of the whole seconds."""
    seconds: tuple[int, ...]
    """Messages of each of them."""
    answer_us: float | None
    cycle_us: float | None
    response_us: float | None


def rows(plan: Received, block: ReceivedBlock, left_out: Sequence[int] = ()) -> Iterator[ReceivedRow]:
    """A row for each run. ``left_out``: runs of the block that do not count."""
    for place, each in enumerate(block.runs):
        if place in left_out:
            continue
        told = each.told
        yield ReceivedRow(
            block=block.number,
            cell=plan.cells[each.cell],
            received_hz=statistics.fmean(told.seconds),
            seconds=told.seconds,
            answer_us=_mean_us(told.answer_ns, told.timed),
            cycle_us=_mean_us(told.cycle_ns, told.timed),
            response_us=_mean_us(told.response_ns, told.answered),
        )


def _mean_us(total_ns: int, count: int) -> float | None:
    return total_ns / count / 1000 if count else None


@dataclass(frozen=True, slots=True)
class _CellFile:
    levels: Levels
    seconds: int
    blocks: int | None


@dataclass(frozen=True, slots=True)
class _ReceivedFile:
    study: str
    part: str
    cells: tuple[_CellFile, ...]
    blocks: int
    seed: int
    seen: tuple[ReceivedBlock, ...]


def save(folder: Path, plan: Received, seen: Sequence[ReceivedBlock]) -> None:
    """Writes ``received.json``. Raises OSError."""
    cells = tuple(_CellFile(dict(each.setting.levels), each.seconds, each.blocks) for each in plan.cells)
    file = _ReceivedFile(plan.study, plan.part, cells, plan.blocks, plan.seed, tuple(seen))
    apart.write(folder / RECEIVED_FILE, file)


def load(folder: Path) -> tuple[Received, tuple[ReceivedBlock, ...]]:
    """Content of ``received.json``. UsageError where there is none that can be read."""
    file = apart.read(folder / RECEIVED_FILE, _ReceivedFile)
    cells = tuple(ReceivedCell(setting(**each.levels), each.seconds, each.blocks) for each in file.cells)
    return Received(file.study, file.part, cells, file.blocks, file.seed), file.seen
