"""A recording of a made-up study, and ways to edit it: for tests of ``verify``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from clients.load.record.cold_run import ColdRun
from experiments.commands import recording
from experiments.design.arms import Arm, Group
from experiments.design.sweep import Sweep
from experiments.kinds import KINDS
from experiments.kinds.block import Block as KindBlock
from experiments.kinds.cold import ColdCell, ColdPlan
from experiments.results import environment, files, rows
from experiments.results.environment import Environment
from experiments.results.observed import Answered, Block, RoundSeen
from experiments.show import report
from experiments.show.content import Answer, Seen
from experiments.studies.study import Part, Scale, Study
from tests.unit.experiments.apart_seen import cold_block, cold_run, keep
from tests.unit.experiments.judge.synthetic_blocks import (
    GRPC,
    SOCKETS,
    block,
    ratio,
    same,
    sweep,
    with_histograms,
    with_slices,
)
from tests.unit.experiments.show.test_report import BUSY, MACHINE

TWIN = same()

MEANS = {SOCKETS: 30.0, GRPC: 100.0, TWIN.above: 30.0}

ROBBED = 2
"""The block that was run again."""

LOST_TICKS, LOST_ROUNDS = 40, 10
"""Ticks stolen in each of the first attempt's rounds, up to a number, and in one round of block 3."""


def try_sweep(scale: Scale) -> Sweep:
    """The sweep: sockets ÷ gRPC, and an A/A pair of sockets."""
    return replace(sweep(ratio(), TWIN, rounds=scale.rounds, looks=scale.looks), seed=scale.seed)


def cold_plan(scale: Scale) -> ColdPlan:
    """Two cells, in a drawn order."""
    cells = tuple(ColdCell(each.setting, calls, 2) for each in (SOCKETS, GRPC) for calls in (1, 10))
    return ColdPlan("try", "try", cells, 3, scale.seed)


def answers(seen: Seen) -> Sequence[Answer]:
    """The only answer: the ratio, with its figure."""
    return (Answer("Which is faster?", "See.", tuple(seen.main.judged.values())[:1]),)


STUDY = Study(
    "try",
    "A question?",
    {
        "try": Part("A part", try_sweep, answers, runs=lambda scale: (cold_plan(scale),), after=("try_after",)),
        "try_after": Part("One after it", lambda scale: replace(try_sweep(scale), part="try_after"), answers),
    },
    {"quick": Scale(15, (10, 14), (1,), seed=1)},
)


@dataclass(slots=True)
class Recording:
    """A folder that a test edits, with its content."""

    folder: Path
    sweep: Sweep
    blocks: list[Block]

    def written(self) -> None:
        """Writes all files again from sweep and blocks, with new digests."""
        for name in (files.BLOCKS_FILE, rows.ROWS_FILE):
            (self.folder / name).unlink(missing_ok=True)
        files.write_plan(self.folder, files.SWEPT, self.sweep)
        for each in self.blocks:
            files.append_block(self.folder, each)
        kept = files.counting(self.blocks)
        (self.folder / rows.ROWS_FILE).write_text(rows.table(self.sweep, kept), encoding="utf-8")


def machine(every: Sequence[Block]) -> Environment:
    """The machine's accounts around blocks of 10 s each."""
    stolen_s = sum(each.steal_ticks for one in every for each in one.rounds) / 100
    before = replace(BUSY, cpu_steal_s=5.0, cpu_busy_s=10.0)
    last = 10 * every[-1].number
    after = replace(before, at=f"2026-01-01T00:{last // 60:02}:{last % 60:02}+00:00", cpu_steal_s=5.0 + stolen_s)
    return replace(MACHINE, before=before, after=replace(after, cpu_busy_s=200.0))


def measured(folder: Path, of: Sweep, every: Sequence[Block]) -> Recording:
    """Writes a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    environment.save(machine(every), folder)
    found = Recording(folder, of, list(every))
    found.written()
    return found


def of_two_attempts(of: Sweep) -> list[Block]:
    """Ten blocks; the second was robbed, and run again; the third lost a round."""
    every = [block(of, MEANS, number, 0.02) for number in range(1, 11)]
    whole = RoundSeen(0.2, 0)
    robbed = with_histograms(of, replace(every[1], rounds=[RoundSeen(0.2, LOST_TICKS)] * 10 + [whole] * 5))
    again = block(of, MEANS, ROBBED, 0.02, seed=2, attempt=2)
    every[2] = with_histograms(of, replace(every[2], rounds=[whole, RoundSeen(0.2, LOST_TICKS), *[whole] * 13]))
    return [every[0], robbed, again, *every[2:]]


def recorded(folder: Path) -> Path:
    """A folder of the study's main part, of the parts after it, and of cold runs."""
    of = try_sweep(STUDY.scales["quick"])
    measured(folder, of, of_two_attempts(of))
    after = replace(of, part="try_after", looks=(3,))
    measured(folder / "try_after", after, [block(after, MEANS, number, 0.02, seed=5) for number in range(1, 4)])
    plan = cold_plan(STUDY.scales["quick"])
    keep(folder, plan, [cold_of(plan, number) for number in range(1, 4)])
    report.write(folder, recording.read(folder))
    return folder


def cold_of(plan: ColdPlan, number: int) -> KindBlock[ColdRun]:
    """A block of cold runs, in their order, unlike any other."""
    runs = [
        (cell, cold_run(plan.cells[cell].calls, 500 + 10 * number + place))
        for place, cell in enumerate(plan.order(number))
    ]
    return replace(cold_block(number, runs), started_at=f"2026-01-01T00:02:{10 * number:02}+00:00")


COLD = KINDS["cold"].form

ColdEdit = Callable[[ColdPlan, list[KindBlock[ColdRun]]], tuple[ColdPlan, Sequence[KindBlock[ColdRun]]]]


def edit_cold(folder: Path, edit: ColdEdit) -> None:
    """Keeps a folder's cold runs as edited, with their digests."""
    plan, blocks = KINDS["cold"].load(folder)
    keep(folder, *edit(plan, list(blocks)))


def replaced(file: Path, old: str, new: str) -> None:
    """Puts one text in another's place, once."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def column(one: Block, name: str, place: int, value: int) -> Block:
    """A block with another value in a column."""
    values = list(getattr(one.slices, name))
    values[place] = value
    return with_slices(one, **{name: values})


def slower(one: Block, place: int, add_ns: int) -> Block:
    """A block with one slice that took longer, in its sums alone."""
    sums = {name: list(each) for name, each in one.slices.sums_ns.items()}
    for each in sums.values():
        each[place] += add_ns
    return with_slices(one, sums_ns=sums)


def answered(one: Block, change: Callable[[Answered], Answered]) -> Block:
    """A block in which the first arm's histograms were changed, of all request types alike."""
    first, *others = one.arms
    return replace(
        one, arms=[replace(first, answered={n: change(each) for n, each in first.answered.items()}), *others]
    )


def numbers(one: Answered, **changed: int) -> Answered:
    """A block with other numbers beside the histogram."""
    made = type(one.times).from_json(one.times.to_json() | changed)
    return replace(one, times=made)


def of_places(one: Block, places: Sequence[int]) -> Block:
    """A block of the slices at these places, in this order."""

    def taken(column: Any) -> Any:
        if isinstance(column, Mapping):
            return {kind: taken(each) for kind, each in column.items()}
        return [column[place] for place in places]

    return with_slices(one, **{each.name: taken(getattr(one.slices, each.name)) for each in fields(one.slices)})


def with_arms(of: Sweep, change: Callable[[Arm], Arm]) -> Sweep:
    """The sweep with other arms in the same places."""
    return replace(
        of,
        groups=tuple(Group(tuple(map(change, each.arms)), each.times, each.every) for each in of.groups),
        comparisons=tuple(replace(each, above=change(each.above), below=change(each.below)) for each in of.comparisons),
    )
