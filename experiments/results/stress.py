"""Stress as it was seen: every repetition of a plan, kept as ``stress.json`` in the folder. Left out: means."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.design.setting import setting
from experiments.design.stress import FinalState, Stress, StressKind
from experiments.results import apart
from experiments.results.apart import Levels

STRESS_FILE = "stress.json"


@dataclass(frozen=True, slots=True)
class KindSeen:
    """One kind on one server."""

    requests: int
    """Answered as they should be."""
    errors: int
    began_ns: int
    ended_ns: int
    """Of one clock for all kinds."""
    response_us: float
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class FinalSeen:
    """The keys of one final state, read one by one."""

    right: int
    wrong: int
    turns: tuple[int, ...]
    """Number of keys that stood at each turn."""


@dataclass(frozen=True, slots=True)
class StressSeen:
    """One server: its kinds and final states in the plan's order."""

    kinds: tuple[KindSeen, ...]
    final: tuple[FinalSeen, ...]


@dataclass(frozen=True, slots=True)
class StressRepetition:
    """Every server once, in the plan's order."""

    number: int
    """From 1."""
    started_at: str
    """ISO 8601, a label."""
    duration_s: float
    pinned: bool
    servers: tuple[StressSeen, ...]


@dataclass(frozen=True, slots=True)
class _StressFile:
    study: str
    part: str
    servers: tuple[Levels, ...]
    before: tuple[StressKind, ...]
    kinds: tuple[StressKind, ...]
    final: tuple[FinalState, ...]
    connections: int
    repetitions: int
    seen: tuple[StressRepetition, ...]


def save(folder: Path, plan: Stress, seen: Sequence[StressRepetition]) -> None:
    """Writes ``stress.json``. Raises OSError."""
    servers = tuple(dict(each.levels) for each in plan.servers)
    asked = plan.before, plan.kinds, plan.final, plan.connections, plan.repetitions
    apart.write(folder / STRESS_FILE, _StressFile(plan.study, plan.part, servers, *asked, tuple(seen)))


def load(folder: Path) -> tuple[Stress, tuple[StressRepetition, ...]]:
    """Content of ``stress.json``. UsageError where there is none that can be read."""
    file = apart.read(folder / STRESS_FILE, _StressFile)
    servers = tuple(setting(**levels) for levels in file.servers)
    asked = file.before, file.kinds, file.final, file.connections, file.repetitions
    return Stress(file.study, file.part, servers, *asked), file.seen
