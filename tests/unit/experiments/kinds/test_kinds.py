"""Kinds of run: files can be read back, and one line adds a kind."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from experiments.design.limits import Limits
from experiments.design.setting import Setting, setting
from experiments.kinds import KINDS, Kind, Plan, kept, kind_of, unfinished
from experiments.kinds.block import Block, Run
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.runner import run_beside
from experiments.results.environment import ENVIRONMENT_FILE
from experiments.show import content
from experiments.studies.study import Part
from stock_service.rpc.errors import UsageError
from tests.unit.experiments import cells_seen, stress_seen
from tests.unit.experiments.apart_seen import ALONE, COLD, cold_block, cold_run, keep, repetition
from tests.unit.experiments.verify import edited

RUNS: Sequence[tuple[Plan, Sequence[object]]] = (
    (ALONE, [repetition(number, 130.5, (15, 17.25, 29), 0.0001) for number in (1, 2)]),
    (COLD, [cold_block(1, [(0, cold_run(1)), (2, cold_run(100, errors={"unavailable": 3}))])]),
    (cells_seen.plan(), [cells_seen.block(number, cells_seen.plan()) for number in (1, 2)]),
    (stress_seen.PLAN, [stress_seen.repetition(1), stress_seen.repetition(2)]),
)


@pytest.mark.parametrize(("plan", "blocks"), RUNS, ids=[kind_of(plan).name for plan, _ in RUNS])
def test_a_run_is_read_back_as_it_was_written(tmp_path: Path, plan: Plan, blocks: Sequence[Any]) -> None:
    """Reading a run gives an equal plan and equal blocks."""
    keep(tmp_path, plan, blocks)
    assert kept(tmp_path) == {kind_of(plan).name: (plan, tuple(blocks))}


@pytest.mark.parametrize(
    "written", [b'{"format": 1}', b'{"format": 1, "study": "s"}', b'{"format": 2}', b"{}", b"nothing"]
)
def test_a_file_that_is_no_such_plan_is_refused(tmp_path: Path, written: bytes) -> None:
    """A file without a plan's fields, of another version, or of other content is refused with its name."""
    (tmp_path / "cold.json").write_bytes(written)
    with pytest.raises(UsageError, match=r"cold\.json"):
        KINDS["cold"].load(tmp_path)


@dataclass(frozen=True, slots=True)
class Pings:
    """Plan of the new kind."""

    servers: tuple[Setting, ...]
    blocks: int

    @property
    def lasts_s(self) -> float:
        """One second for each block."""
        return float(self.blocks)

    def order(self, number: int) -> tuple[int, ...]:
        """Places of the servers, in order."""
        return tuple(range(len(self.servers)))


@dataclass(frozen=True, slots=True)
class Pinged:
    """Number of pings of all blocks."""

    pings: int


def observed(plan: Pings, number: int, _: Bench) -> Iterator[Run[int]]:
    """Each server has as many pings as the number of the block."""
    return (Run(place, number) for place in plan.order(number))


def judged(_: Pings, blocks: Sequence[Block[int]], __: Limits) -> Pinged:
    """The sum of all pings."""
    return Pinged(sum(run.seen for block in blocks for run in block.runs))


@pytest.mark.slow
def test_a_line_adds_a_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kind can be run, resumed, written, judged for a study's part and verified, by its line in the table."""
    for room, name, does in (("measure", "runs", observed), ("judge", "judged", judged)):
        module = ModuleType(f"experiments.{room}.pings")
        setattr(module, name, does)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    line = Kind("pings", "pings", Pings, int)
    monkeypatch.setitem(cast(dict[str, Kind[Any, Any]], KINDS), line.name, line)
    folder, plan, on = tmp_path / "try", Pings((setting(transport="sockets"),), 2), bench(CATALOG)
    part = Part("A part", edited.try_sweep, edited.answers, runs=lambda _: (plan,))
    sweep = part.sweep(edited.STUDY.scales["quick"])
    edited.measured(folder, sweep, edited.of_two_attempts(sweep))
    (folder / ENVIRONMENT_FILE).unlink()  # of another machine
    told: list[int] = []
    run_beside(plan, folder, False, on, told.append)
    run_beside(plan, folder, True, on, told.append)
    assert told == [0, 1]
    assert content.read(folder, {sweep.part: part}).seen.of(Pinged) == Pinged(3)
    assert not list(unfinished(folder))
    keep(folder, plan, line.load(folder)[1][:1])
    assert list(unfinished(folder)) == [f"{folder / 'pings.json'}: broken off after 1 of 2 blocks"]
