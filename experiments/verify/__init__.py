"""Recomputes a recording: every row, figure and sentence from its blocks; and names what differs.

A recording is what a sweep left in its folder. It passes if its blocks are as they were written, and if it ended at a
look as its own rules have it. All that is computed from the blocks must be what the folder holds. Of an earlier version
(``files.EDITION``) that is every row; its report and figures have the digests that ``TEXTS_FILE`` has of them, which
shows an accident, and no forgery: the digests lie beside what they are of. It is judged by the limits that it states;
where they are not this version's, they are named. A factor that it lacks came later. Left out: whether the blocks are
true.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from experiments.design.factors import FACTORS
from experiments.design.former import FORMER
from experiments.design.levels import shown
from experiments.design.sweep import Sweep
from experiments.judge.ratios import is_robbed_block
from experiments.judge.verdicts import judge
from experiments.measure.runner import repeats_max
from experiments.results import alone, cells, cold, files, foretold, received, rows, stress
from experiments.results.foretold import FORETOLD_FILE
from experiments.results.observed import Block
from experiments.show.version import without

TEXTS_FILE = "texts.sha256"
"""Digests of the report and the figures of a recording whose edition is over; ``sha256sum --check`` reads it."""

Computed = Callable[[Path], Mapping[str, str]]
"""What a folder's figures and report should say, by the files' names."""


def differences(folder: Path, computed: Computed) -> Iterator[str]:
    """What is not as it should be, a line each. Raises UsageError for a folder that cannot be read or was edited."""
    sweep, every = files.read_sweep(folder), files.read_blocks(folder)
    yield from cut_short(sweep, files.counting(every))
    yield from repeated(sweep, every)
    yield from unfinished(folder)
    yield from told_late(folder, every)
    yield from (f"{folder / files.SWEEP_FILE}: judged by other limits: {each}" for each in files.other_limits(sweep))
    table = _as_its_version_had(sweep, rows.table(sweep, files.counting(every)), folder / rows.ROWS_FILE)
    if files.edition(folder) < files.EDITION:
        yield from _numbers_differ(folder / rows.ROWS_FILE, table)
        yield from _texts_edited(folder, computed(folder))
        return
    for name, should in {rows.ROWS_FILE: table, **computed(folder)}.items():
        yield from _text_differs(folder / name, should)


def earlier(folder: Path, computed: Computed) -> str | None:
    """A sentence on a recording of an earlier version whose texts would differ today; else None.

    Raises as ``differences``.
    """
    if files.edition(folder) == files.EDITION:
        return None
    texts = computed(folder)
    others = sum(bool(list(_text_differs(folder / name, should))) for name, should in texts.items())
    told = f"{others} of {len(texts)} texts and figures are as that version wrote them"
    return f"{folder}: of an earlier version; every row is computed anew, {told}" if others else None


def cut_short(sweep: Sweep, blocks: Sequence[Block]) -> Iterator[str]:
    """Whether it ended where its looks let it end: at the first that decides, or at the last."""
    looks = ", ".join(map(str, sweep.looks))
    if [block.number for block in blocks] != list(range(1, len(blocks) + 1)):
        yield f"the blocks' numbers have gaps: {' '.join(str(block.number) for block in blocks)}"
    if len(blocks) not in sweep.looks:
        yield f"the sweep was cut short: {len(blocks)} blocks, its looks are at {looks}"
    elif len(blocks) < sweep.looks[-1] and not judge(sweep, blocks).decided:
        yield f"the sweep was cut short: undecided after {len(blocks)} blocks, its looks are at {looks}"
    for look in sweep.looks:  # before a load's limit was known to settle a comparison, its verdict was waited for
        if look < len(blocks) and judge(sweep, blocks[:look]).as_clients_see_it.decided:
            yield f"the sweep went on: it was decided after {look} blocks, and has {len(blocks)}"


def unfinished(folder: Path) -> Iterator[str]:
    """What is kept beside the sweep and was broken off: fewer blocks than its own plan has."""
    for name, read in BESIDE.items():
        if (folder / name).exists():
            planned, seen = read(folder)
            if seen < planned:
                yield f"{folder / name}: broken off after {seen} of {planned} blocks"


def told_late(folder: Path, every: Sequence[Block]) -> Iterator[str]:
    """Whether what was foretold was written after the first block began."""
    if not (folder / FORETOLD_FILE).exists():
        return
    written_at, _ = foretold.load(folder)
    if every and datetime.fromisoformat(written_at) > datetime.fromisoformat(every[0].started_at):
        yield f"{folder / FORETOLD_FILE}: written at {written_at}, the first block began at {every[0].started_at}"


def _alone(folder: Path) -> tuple[int, int]:
    plan, seen = alone.load(folder)
    return plan.repetitions, len(seen)


def _cold(folder: Path) -> tuple[int, int]:
    plan, seen = cold.load(folder)
    return plan.blocks, len(seen)


def _received(folder: Path) -> tuple[int, int]:
    plan, seen = received.load(folder)
    return plan.blocks, len(seen)


def _cells(folder: Path) -> tuple[int, int]:
    plan, seen = cells.load(folder)
    return plan.blocks, len(seen)


def _stress(folder: Path) -> tuple[int, int]:
    plan, seen = stress.load(folder)
    return plan.repetitions, len(seen)


BESIDE: Mapping[str, Callable[[Path], tuple[int, int]]] = {
    alone.ALONE_FILE: _alone,
    cold.COLD_FILE: _cold,
    received.RECEIVED_FILE: _received,
    cells.CELLS_FILE: _cells,
    stress.STRESS_FILE: _stress,
}
"""Files beside a sweep: how many blocks each has planned, and how many it has."""


def repeated(sweep: Sweep, every: Sequence[Block]) -> Iterator[str]:
    """Whether blocks were run again by the rule alone: since time was stolen from them, and not for what they said."""
    attempts: dict[int, list[Block]] = {}
    for block in every:
        attempts.setdefault(block.number, []).append(block)
    for number, of_one in attempts.items():
        if any(not is_robbed_block(sweep.limits, block) for block in of_one[:-1]):
            yield f"block {number} was run again, and had not been robbed of time"
    again = len(every) - len(attempts)
    if again > repeats_max(sweep):
        yield f"{again} blocks were run again, allowed: {repeats_max(sweep)}"


def _as_its_version_had(sweep: Sweep, table: str, recorded: Path) -> str:
    """The rows without the factors that the recorded ones lack, as they came later: every arm is at their default. A
    factor that the recorded ones have under its former name is under that."""
    try:
        header = recorded.read_text(encoding="utf-8").partition("\n")[0].split(",")
    except OSError:
        return table
    lacking = FACTORS.keys() - set(header)
    former = {FORMER[name].now: name for name in header if name in FORMER and FORMER[name].now in lacking}
    later = {name for name in lacking - former.keys() if _is_at_default(name, sweep)}
    if not later and not former:
        return table
    text = io.StringIO()
    columns = [former.get(name, name) for name in rows.COLUMNS if name not in later]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in csv.DictReader(io.StringIO(table)):
        then = {name: shown(FORMER[name].written(FACTORS[now].read(row[now]))) for now, name in former.items()}
        writer.writerow(row | then)
    return text.getvalue()


def _is_at_default(name: str, sweep: Sweep) -> bool:
    levels = (dict(arm.setting.levels) for arm in sweep.arms)
    return all(each[name] == FACTORS[name].default_among(each) for each in levels)


def _texts_edited(folder: Path, texts: Iterable[str]) -> Iterator[str]:
    """The texts of an earlier version that are not as they were when the edition ended."""
    try:
        lines = (folder / TEXTS_FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    digests = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in dict.fromkeys((*texts, *digests)):
        try:
            content = (folder / name).read_bytes()
            digest = sha256(without(content.decode()).encode() if name.endswith(".md") else content).hexdigest()
        except OSError as error:
            yield f"{folder / name}: {error.strerror}"
            continue
        if digests.get(name) != digest:
            yield f"{folder / name}: not what an earlier version wrote, by {TEXTS_FILE}"


def _numbers_differ(file: Path, table: str) -> Iterator[str]:
    """The first row in which a file of rows is not what it should be, the arms' names left out."""
    try:
        has = file.read_text(encoding="utf-8")
    except OSError as error:
        yield f"{file}: {error.strerror}"
        return
    heads = has.partition("\n")[0], table.partition("\n")[0]
    if heads[0] != heads[1]:
        yield f"{file} line 1: {_cell(*heads)}"
        return
    pairs = zip(csv.DictReader(io.StringIO(has)), csv.DictReader(io.StringIO(table)), strict=False)
    for number, (mine, theirs) in enumerate(pairs, 2):
        for name in (name for name in mine if name != "arm" and mine[name] != theirs.get(name)):
            yield f"{file} line {number}: {name} {mine[name]}, computed {theirs.get(name)}"
            return
    if has.count("\n") != table.count("\n"):
        yield f"{file}: {has.count(chr(10))} lines, computed: {table.count(chr(10))}"


def _text_differs(file: Path, should: str) -> Iterator[str]:
    """The first line in which a file is not what it should be."""
    try:
        has, should = without(file.read_text(encoding="utf-8")), without(should)
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


def _cell(has: str, should: str) -> str:
    """Where two lines part, in a few words."""
    place = next((n for n, (a, b) in enumerate(zip(has, should, strict=False)) if a != b), min(len(has), len(should)))
    begin = max(0, place - 20)
    return f"has …{has[begin : place + 30]!r}, computed …{should[begin : place + 30]!r}"
