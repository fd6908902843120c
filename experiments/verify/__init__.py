"""Verification of a recording: recomputes every row, figure and sentence from the blocks, and names each difference.

A recording is the folder of a measured sweep. A sweep is a measurement in blocks. A **part** is one measurement of a
study. A **look** is a number of blocks after which a sweep is judged. A recording passes under four conditions:

- The recorded sweep is the sweep that the part's design makes.
- No block was edited, and the blocks have no contradiction that ``blocks.py`` can find.
- The sweep ended at the first look that decided every headline comparison, or at the last look.
- The folder has all texts that are computed from the blocks, and all other measurements of the part.

The recording is judged by its recorded limits. A limit that this version has changed counts as a difference. A
recording need not have factors that were added later. Left out: a proof that the blocks were measured at all.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from experiments.design.arms import Arm, Group
from experiments.design.factors import FACTORS
from experiments.design.sweep import Sweep
from experiments.judge.verdicts import judge
from experiments.kinds import KINDS, Plan, kept, kind_of, prediction, unfinished
from experiments.kinds.block import Block as KindBlock
from experiments.kinds.prediction import FORETOLD_FILE
from experiments.results import environment, files, rows
from experiments.results.observed import Block
from experiments.show.version import without
from experiments.verify.blocks import block_faults, machine_faults, shape_faults, time_faults

GROWING = ("executor", "locking")
"""Factors whose lists of levels grow at the end, when the service gets new parts. A recording need not have later
levels."""


@dataclass(frozen=True, slots=True)
class Design:
    """Measurements of a part for one choice of profile, numbers of clients, hosts and numbers of blocks."""

    sweep: Sweep
    runs: Sequence[Plan]
    """Plans of the runs in the sweep's folder that are not sweeps."""
    parts: Sequence[str]
    """Names of the parts that are measured before or after the sweep. Each such part has a subfolder of its name."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected content of a folder. The folder's part determines this content."""

    texts: Mapping[str, Callable[[], str]]
    """Functions that recompute the report and the figures, by file name. Each text is computed when its function is
    called."""
    designs: Iterable[Design]
    """Possible designs of the part, the most probable design first. The folder's sweep must be the sweep of one of
    these designs. The iterable makes the designs one by one, and can be used once. Empty for an unknown part."""


Expecting = Callable[[Path], Expected]
"""Function that gives the expected content of a folder of results."""


def differences(folder: Path, expecting: Expecting) -> Iterator[str]:
    """Differences between a folder and its expected content, each as a sentence.

    If a block has ``shape_faults``, only these faults are given, since they prevent all computations. Raises UsageError
    if the blocks or the plan were edited or cannot be read.
    """
    sweep, every = files.read_sweep(folder), files.read_blocks(folder)
    if malformed := [f"{folder}: {said}" for said in shape_faults(sweep, every)]:
        yield from malformed
        return
    yield from (f"{folder}: {said}" for said in _faults(folder, sweep, every))
    yield from unfinished(folder)
    yield from told_late(folder, every)
    yield from (f"{folder / files.SWEEP_FILE}: judged by other limits: {each}" for each in files.other_limits(sweep))
    expected = expecting(folder)
    yield from _unlike_its_design(folder, sweep, expected)
    recorded = folder / rows.ROWS_FILE
    yield from _text_differs(recorded, rows.table(sweep, files.counting(every), _later_factors(sweep, recorded)))
    for name, should in expected.texts.items():
        yield from _text_differs(folder / name, should())


def _faults(folder: Path, sweep: Sweep, every: Sequence[Block]) -> Iterator[str]:
    """Faults of the sweep's end, the blocks, the record of the machine, and the runs that are not sweeps."""
    yield from cut_short(sweep, files.counting(every))
    yield from block_faults(sweep, every)
    if (folder / environment.ENVIRONMENT_FILE).exists():
        yield from machine_faults(environment.load(folder), every)
    else:
        yield f"no {environment.ENVIRONMENT_FILE}"
    for name, run in kept(folder).items():
        yield from (f"{KINDS[name].form.plan_file}: {said}" for said in _run_faults(*run))


def _run_faults(plan: Plan, seen: Sequence[KindBlock[Any]]) -> Iterator[str]:
    """Faults of a run that is not a sweep: gaps in the blocks' numbers, blocks that overlap in time, copied blocks,
    runs in a wrong order."""
    if [each.number for each in seen] != list(range(1, len(seen) + 1)):
        yield f"the blocks' numbers have gaps: {' '.join(str(each.number) for each in seen)}"
    yield from time_faults(seen)
    for place, one in enumerate(seen):
        for other in seen[:place]:
            if [run.seen for run in one.runs] == [run.seen for run in other.runs]:
                yield f"blocks {other.number} and {one.number} are the same"
        if plan.order(one.number) != tuple(run.place for run in one.runs):
            yield f"block {one.number}: its runs are not in the drawn order"


def _unlike_its_design(folder: Path, sweep: Sweep, expected: Expected) -> Iterator[str]:
    """Differences from the design: the part makes no such sweep, or files and folders are missing or wrong."""
    apart = list[list[str]]()
    for design in expected.designs:
        made = replace(_without_later(design.sweep, sweep), limits=sweep.limits)
        if made == sweep:
            break
        apart.append([*_unlike(sweep, made)])
    else:
        if apart:
            nearest = min(apart, key=len)
            yield f"{folder / files.SWEEP_FILE}: {sweep.part} is designed with other {', '.join(nearest)}"
        else:
            yield f"{folder}: no design of {sweep.part} is known here: report and design are not checked"
        return
    for plan in design.runs:
        form = kind_of(plan).form
        if not (folder / form.plan_file).exists():
            yield f"{folder / form.plan_file}: not there"
        elif files.read_plan(folder, form) != plan:
            yield f"{folder / form.plan_file}: {sweep.part} is designed with another plan"
    for name in design.parts:
        if not (folder / name / files.SWEEP_FILE).exists():
            yield f"{folder / name}: not there"
        elif files.read_sweep(folder / name).part != name:
            yield f"{folder / name}: holds the part {files.read_sweep(folder / name).part}"


def _without_later(design: Sweep, recorded: Sweep) -> Sweep:
    """The design without the arms of later levels. A later level comes after all recorded levels in the list of a
    factor in ``GROWING``.

    If every remaining arm is measured equally often in both sweeps, the result has the groups of the recorded sweep.
    These groups may differ, since an arm of a later level can take the place of an A/A pair's second server.
    """
    later = {arm for name in GROWING for arm in _behind(name, design, recorded)}
    if not later:
        return design
    kept = ((each, tuple(arm for arm in each.arms if arm not in later)) for each in design.groups)
    groups = tuple(replace(each, arms=arms) for each, arms in kept if len(arms) > 1 or arms == each.arms)
    compared = tuple(each for each in design.comparisons if not {each.above, each.below} & later)
    if _times(groups) == _times(recorded.groups):
        groups = recorded.groups
    with suppress(ValueError):  # ValueError is raised if the rest of the design could not be judged
        return replace(design, groups=groups, comparisons=compared)
    return design


def _behind(factor: str, design: Sweep, recorded: Sweep) -> Iterator[Arm]:
    """Arms of a design with a later level, which comes after every recorded level in the factor's list.

    A server that is not ours has a level outside the list. This level does not count as later.
    """
    place = {level: number for number, level in enumerate(FACTORS[factor].kind.levels.split("|"))}
    last = max(place.get(arm.setting.text(factor), -1) for arm in recorded.arms)
    return (arm for arm in design.arms if place.get(arm.setting.text(factor), -1) > last)


def _times(groups: Iterable[Group]) -> Counter[tuple[Arm, int, int]]:
    """Number of groups that contain an arm. The groups are counted separately for each arm, each value of ``times``,
    and each value of ``every``. A group is measured ``times`` times in every ``every``-th round."""
    return Counter((arm, group.times, group.every) for group in groups for arm in group.arms)


def _unlike(one: Sweep, other: Sweep) -> Iterator[str]:
    """Names of the fields in which two sweeps differ."""
    for each in fields(one):
        if each.compare and getattr(one, each.name) != getattr(other, each.name):
            yield each.name


def cut_short(sweep: Sweep, blocks: Sequence[Block]) -> Iterator[str]:
    """Faults of a sweep that did not end at the first look that decides every headline comparison, or else at the last
    look."""
    looks = ", ".join(map(str, sweep.looks))
    if [block.number for block in blocks] != list(range(1, len(blocks) + 1)):
        yield f"the blocks' numbers have gaps: {' '.join(str(block.number) for block in blocks)}"
    if len(blocks) not in sweep.looks:
        yield f"the sweep was cut short: {len(blocks)} blocks, its looks are at {looks}"
    elif len(blocks) < sweep.looks[-1] and not judge(sweep, blocks).decided:
        yield f"the sweep was cut short: undecided after {len(blocks)} blocks, its looks are at {looks}"
    for look in (each for each in sweep.looks if each < len(blocks)):
        if judge(sweep, blocks[:look]).decided:
            yield f"the sweep went on: it was decided after {look} blocks, and has {len(blocks)}"


def told_late(folder: Path, every: Sequence[Block]) -> Iterator[str]:
    """Yields a fault if the predictions were written after the first block had begun."""
    if not (folder / FORETOLD_FILE).exists():
        return
    written_at, _ = prediction.load(folder)
    if every and datetime.fromisoformat(written_at) > datetime.fromisoformat(every[0].started_at):
        yield f"{folder / FORETOLD_FILE}: written at {written_at}, the first block began at {every[0].started_at}"


def _later_factors(sweep: Sweep, recorded: Path) -> Set[str]:
    """Factors that were added after the recording. The recorded rows lack these factors, which have their defaults in
    all arms."""
    header = _text(recorded).partition("\n")[0].split(",") if recorded.exists() else ()
    return FACTORS.keys() - set(header) - {name for arm in sweep.arms for name, _ in arm.setting.said()}


def _text_differs(file: Path, should: str) -> Iterator[str]:
    """Yields a fault if a file cannot be read or differs from the expected text. The fault names the first different
    line."""
    try:
        has, should = without(_text(file)), without(should)
    except OSError as error:
        yield f"{file}: {error.strerror}"
        return
    if has == should:
        return
    for number, (mine, theirs) in enumerate(zip(has.splitlines(), should.splitlines(), strict=False), 1):
        if mine != theirs:
            yield f"{file} line {number}: {_cell(mine, theirs)}"
            return
    yield f"{file}: {len(has.splitlines())} lines, computed: {len(should.splitlines())}"


def _text(file: Path) -> str:
    """Text of a file. A byte that is not UTF-8 becomes the character U+FFFD, which no computed text has. Raises
    OSError."""
    return file.read_text(encoding="utf-8", errors="replace")


def _cell(has: str, should: str) -> str:
    """Text that quotes two lines around the first character that differs."""
    place = next((n for n, (a, b) in enumerate(zip(has, should, strict=False)) if a != b), min(len(has), len(should)))
    begin = max(0, place - 20)
    return f"has …{has[begin : place + 30]!r}, computed …{should[begin : place + 30]!r}"
