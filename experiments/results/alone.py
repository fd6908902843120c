"""Servers by themselves, as they were looked at: every repetition of a plan, kept as ``alone.json`` in the folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.design.alone import Alone, LoneServer
from experiments.design.setting import setting
from experiments.results import apart
from experiments.results.apart import Levels

ALONE_FILE = "alone.json"


@dataclass(frozen=True, slots=True)
class HeldSeen:
    """A server that holds so many connections, on each of which one call was answered before."""

    connections: int
    resident_mib: float
    """At the end of the watch; shared pages counted whole, so that it depends on nobody else."""
    threads: int
    cpu_ns: int
    """Processor time of the server during the watch …"""
    watched_ns: int
    """… which took so long."""


@dataclass(frozen=True, slots=True)
class LoneSeen:
    """One start of a server."""

    ready_ms: float
    """From starting its process to its ready line."""
    held: tuple[HeldSeen, ...]
    """By ascending connections, none first."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """Every server once."""

    number: int
    """From 1."""
    started_at: str
    """ISO 8601, a label."""
    duration_s: float
    pinned: bool
    calibration_us: float
    """A fixed piece of work on the server's core, before the repetition."""
    steal_ticks: int
    """Of 10 ms, of all cores."""
    servers: tuple[LoneSeen, ...]
    """In the plan's order."""
    foreign_ticks: int | None = None
    """As of a round."""


@dataclass(frozen=True, slots=True)
class _ServerFile:
    levels: Levels
    held: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _AloneFile:
    study: str
    part: str
    servers: tuple[_ServerFile, ...]
    repetitions: int
    idle_s: float
    seed: int
    seen: tuple[Repetition, ...]


def save(folder: Path, plan: Alone, seen: Sequence[Repetition]) -> None:
    """Writes ``alone.json``. Raises OSError."""
    servers = tuple(_ServerFile(dict(each.setting.levels), each.held) for each in plan.servers)
    content = _AloneFile(plan.study, plan.part, servers, plan.repetitions, plan.idle_s, plan.seed, tuple(seen))
    apart.write(folder / ALONE_FILE, content)


def load(folder: Path) -> tuple[Alone, tuple[Repetition, ...]]:
    """Content of ``alone.json``. UsageError where there is none that can be read."""
    file = apart.read(folder / ALONE_FILE, _AloneFile)
    servers = tuple(LoneServer(setting(**each.levels), each.held) for each in file.servers)
    return Alone(file.study, file.part, servers, file.repetitions, file.idle_s, file.seed), file.seen
