"""``verify``: makes a folder of results anew from its runs' own records, and names what differs.

From the records (``runs.jsonl.gz``) come the rows of ``results.csv``, cell by cell; from the histograms in them, the
counts and sums that stand beside them; from every request's own times, where they were kept, the histograms. From the
rows come the figures and the report, byte by byte. The design and the environment are computed from nothing: each
record has their digests. So one digit changed anywhere is found, unless whoever changed it changed all that it was
computed from too, down to the times and their digests.

What is compared with is made in a scratch folder from the records alone: an edited cell of the results is one
difference, and not one of every figure and sentence besides.

Left out: whether what was measured is true (``gates``); how busy the machine was afterwards, which is added when the
runs are done; the figures' PNG, which are for looking at; and what the figures show, where another matplotlib is
installed than drew them: then ``not_compared`` says so, and the page must have the folder's own figures in it.
"""

import csv
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from clients.load.record.result import LoadResult
from clients.load.record.slices import Slices
from clients.load.record.times import Times
from experiments import environment, gallery, report
from experiments.environment import DRAWS, ENVIRONMENT_FILE, UNKNOWN
from experiments.gallery import FOLDER
from experiments.observation import rows
from experiments.report_html import page
from experiments.results import COLUMNS, RESULTS_FILE, rows_text
from experiments.run_records import (
    RAW_FOLDER,
    RUNS_FILE,
    RunRecord,
    counting,
    load_raw,
    load_records,
    raw_digest,
    torn_bytes,
)
from experiments.runner import DESIGN_FILE, design_digest, planned
from experiments.verify_attempts import attempt_faults
from experiments.verify_raw import refolded
from stock_service.rpc.errors import UsageError

ROUNDING = 1e-9
"""Relative: what adding up a million floats loses."""

SHOWN_MAX = 20
"""Differences that are worth naming one by one."""

_BEFORE = 40
"""Characters of a line that are shown before it differs, at most."""

_CELLS_MAX = 4
"""Cells of one line that are named."""


def differences(folder: Path) -> Iterator[str]:
    """Every difference, in a line each. Takes seconds. UsageError where there is nothing to verify."""
    records = load_records(folder)
    if not counting(records):
        raise UsageError(str(folder), "no whole run", "results of one run at least")
    torn = torn_bytes(folder)
    if torn:
        yield f"{RUNS_FILE}: its last {torn:,} bytes are no whole run, as after a crash; --resume drops them"
    edited = False
    for fault in _of_runs(folder, records):
        edited = True
        yield fault
    try:
        yield from _of_what_they_give(folder, records)
    except (ArithmeticError, LookupError, ValueError) as error:
        if not edited:
            raise
        yield f"the rest cannot be made of such runs: {error}"


def _of_runs(folder: Path, records: Sequence[RunRecord]) -> Iterator[str]:
    """What is wrong with the runs themselves."""
    yield from _design(folder, records)
    yield from _belongs(folder, records)
    for record in records:
        which = "" if record.counts else f", attempt {record.attempt}"
        yield from (f"run {record.run.run_id}{which}{fault}" for fault in _record(folder, record))
    yield from _unknown_raw(folder, records)


def _of_what_they_give(folder: Path, records: Sequence[RunRecord]) -> Iterator[str]:
    """What differs from the rows, figures and report that the runs give."""
    kept = counting(records)
    table = rows_text(row for one in kept for row in rows(one.study, one.run, one.seen, one.attempt))
    yield from _table(folder, table)
    with TemporaryDirectory() as scratch:
        anew = Path(scratch)
        (anew / RESULTS_FILE).write_text(table, encoding="utf-8")
        shutil.copy(folder / RUNS_FILE, anew)
        yield from _environment(folder, anew)
        yield from _figures(folder, anew)
        yield from _report(folder, anew)


def not_compared(folder: Path) -> str:
    """What was not compared with what the runs give, in words: the figures, unless the matplotlib that drew them is the
    one here, or unknown since nothing says what it was. Else nothing."""
    try:
        drew = environment.load(folder).packages.get(DRAWS, UNKNOWN)
    except UsageError:
        return ""
    here = version(DRAWS)
    return "" if drew == here else f"the figures, which {DRAWS} {drew} drew, and here is {here}"


def _design(folder: Path, records: Sequence[RunRecord]) -> Iterator[str]:
    """Whether the runs are those of the design, each once, in its order; all of them, if the sweep has ended; and each
    done again when it had to be."""
    if not (folder / DESIGN_FILE).exists():
        yield f"{DESIGN_FILE}: not there, so that nothing says what should have been run"
        return
    try:
        sweep = planned(folder)
    except UsageError as error:
        yield str(error)
        return
    runs = {run.run_id: run for run in sweep.design.runs()}
    places = {run_id: place for place, run_id in enumerate(runs)}
    numbered = [(number, record) for number, record in enumerate(records, start=1) if record.counts]
    found = [record.run.run_id for _, record in numbered]
    for place, (number, record) in enumerate(numbered):
        run_id, should = record.run.run_id, runs.get(record.run.run_id)
        if should is None or record.study != sweep.study:
            yield f"{RUNS_FILE} line {number}: run {run_id} of study {record.study} is none of {DESIGN_FILE}"
        elif record.run != should:
            yield f"{RUNS_FILE} line {number}: run {run_id} is not as {DESIGN_FILE} has it"
        if run_id in found[:place]:
            yield f"{RUNS_FILE} line {number}: run {run_id} is there twice"
        elif place and places.get(run_id, 0) < places.get(found[place - 1], 0):
            yield f"{RUNS_FILE} line {number}: run {run_id} comes after {found[place - 1]}, not before as planned"
    last = max((places.get(run_id, 0) for run_id in found), default=0)
    missing = [run_id for run_id in places if run_id not in set(found)]
    for run_id in missing:
        if _ended(folder) or places[run_id] < last:
            yield f"{RUNS_FILE}: run {run_id} of {DESIGN_FILE} is not there"
    yield from attempt_faults(records, len(runs))


def _belongs(folder: Path, records: Sequence[RunRecord]) -> Iterator[str]:
    """Whether the design and the environment are those that the runs were done with, where their records say it."""
    for name, digest in ((DESIGN_FILE, design_digest), (ENVIRONMENT_FILE, environment.digest)):
        noted = [record for record in records if name in record.belongs_to]
        try:
            should = digest(folder)
        except UsageError:  # not there or not to be read, which is said elsewhere
            continue
        others = [record.run.run_id for record in noted if record.belongs_to[name] != should]
        if others:
            others = list(dict.fromkeys(others))  # a run may have several attempts
            have = f"{len(others)} of {len(counting(records))} runs have another's digest"
            yield f"{name}: not the one that was written: {have}{f' ({others[0]})' if len(others) == 1 else ''}"


def _ended(folder: Path) -> bool:
    try:
        return environment.load(folder).after is not None
    except UsageError:
        return False


def _record(folder: Path, record: RunRecord) -> Iterator[str]:
    """Whether what is kept of a run is what was written, agrees with itself, and with its requests' own times."""
    if not record.as_written:
        yield f": its record in {RUNS_FILE} is not the one that was written: its digest is another"
    load = record.seen.load
    if load is None:
        return
    for name, part in load.parts.items():
        for kind, times in (("response", part.response), ("service", part.service)):
            yield from (f", {name}, {kind}: {fault}" for fault in _times(times))
        ended = sum(part.outcomes.values()) + sum(part.errors.values())
        timed = part.response.count + part.response.out_of_range
        if timed != ended:
            yield f", {name}: {timed} times of {ended} requests"
    for kind in ("connects", "first_calls", "late", "think"):
        yield from (f", {kind}: {fault}" for fault in _times(getattr(load, kind)))
    yield from (f", slices: {fault}" for fault in _slices(load))
    if record.counts:
        yield from (f", {RAW_FOLDER}: {fault}" for fault in _raw(folder, record, load))


def _times(times: Times) -> Iterator[str]:
    """Whether a distribution's exact numbers can be those of its histogram."""
    lowest, highest, counts = times.buckets()
    counted = int(counts.sum())
    if counted != times.count:
        yield f"{times.count} times, and {counted} in the histogram"
        return
    if not times.count:
        return
    squares_low, squares_high = (float(counts @ edge.astype(float) ** 2) for edge in (lowest, highest))
    for what, exact, low, high in (
        ("sum", times.sum_ns, int(counts @ lowest), int(counts @ highest)),
        ("least", times.min_ns, int(lowest[0]), int(highest[0])),
        ("greatest", times.max_ns, int(lowest[-1]), int(highest[-1])),
        ("sum of squares", times.squares, squares_low * (1 - ROUNDING), squares_high * (1 + ROUNDING)),
    ):
        if not low <= exact <= high:
            yield f"{what} {exact}, and {low} to {high} by the histogram (ns)"


def _slices(load: LoadResult) -> Iterator[str]:
    """Whether the slices have the requests of the histograms, as many, in the same coarse buckets, of the same sum."""
    responses = [part.response for part in load.parts.values()]
    timed = sum(times.count + times.out_of_range for times in responses)
    if int(load.slices.replies().sum()) != timed:
        yield f"{int(load.slices.replies().sum())} requests, {timed} in the histograms"
        return
    if any(times.out_of_range for times in responses):
        return
    total_ns, summed_ns = int(load.slices.sums_ns.sum()), sum(times.sum_ns for times in responses)
    if total_ns != summed_ns:
        yield f"a sum of {total_ns} ns, {summed_ns} by the histograms"
    shortest, longest = Slices(), Slices()
    for times in responses:
        lowest, highest, counts = times.buckets()
        for slices, edge in ((shortest, lowest), (longest, highest)):
            values = np.repeat(edge, counts)
            slices.add(np.zeros(len(values)), values)
    most, least = (np.cumsum(slices.counts.sum(axis=0)) for slices in (shortest, longest))
    up_to = np.cumsum(load.slices.counts.sum(axis=0))
    if np.any(up_to > most) or np.any(up_to < least):
        yield "times that are not those of the histograms"


def _raw(folder: Path, record: RunRecord, load: LoadResult) -> Iterator[str]:
    """Whether the requests' own times are those that were kept, and the histograms are theirs."""
    name = f"{RAW_FOLDER}/{record.run.run_id}.npz"
    try:
        raw = load_raw(folder, record.run.run_id)
    except (OSError, ValueError) as error:
        yield f"{name} cannot be read: {error}"
        return
    if raw is None:
        if record.raw_digest is not None:
            yield f"{name} is not there"
        return
    if raw_digest(raw) != record.raw_digest:
        yield f"{name} is not the one that was written: its digest is another"
    try:
        yield from refolded(record.run, load, raw)
    except (IndexError, ValueError) as error:
        yield f"{name} are no requests: {error}"


def _unknown_raw(folder: Path, records: Sequence[RunRecord]) -> Iterator[str]:
    known = {f"{record.run.run_id}.npz" for record in records}
    kept = (folder / RAW_FOLDER).glob("*.npz")
    yield from (f"{RAW_FOLDER}/{name}: of no run here" for name in sorted({path.name for path in kept} - known))


def _table(folder: Path, should: str) -> Iterator[str]:
    """Every cell of the results."""
    try:
        has = (folder / RESULTS_FILE).read_bytes().decode(errors="backslashreplace")
    except FileNotFoundError:
        yield f"{RESULTS_FILE}: not there"
        return
    if has == should:
        return
    lines = list(csv.reader(io.StringIO(should)))
    try:
        found = list(csv.reader(io.StringIO(has, newline="")))
    except csv.Error as error:
        yield f"{RESULTS_FILE}: {error}"
        return
    if not found or found[0] != lines[0]:
        yield f"{RESULTS_FILE} line 1: not the columns that rows have"
        return
    if len(found) != len(lines):
        yield f"{RESULTS_FILE}: {len(found)} lines, {len(lines)} by the runs"
    for number, (cells, right) in enumerate(zip(found, lines, strict=False), start=1):
        if cells != right:
            yield f"{RESULTS_FILE} line {number}: {_cells(cells, right)}"
    if found == lines:
        yield f"{RESULTS_FILE}: its cells are the runs', and not as the runner writes them"


def _cells(cells: Sequence[str], right: Sequence[str]) -> str:
    """What is wrong in a line of the results."""
    if len(cells) != len(right):
        return f"{len(cells)} cells, {len(right)} by the run"
    pairs = [pair for pair in zip(COLUMNS, cells, right, strict=True) if pair[1] != pair[2]]
    named = "; ".join(f"{name} is {_short(one)}, and {_short(new)} by the run" for name, one, new in pairs[:_CELLS_MAX])
    return named + (f"; {len(pairs) - _CELLS_MAX} more" if len(pairs) > _CELLS_MAX else "")


def _environment(folder: Path, anew: Path) -> Iterator[str]:
    """Whether it is there."""
    try:
        shutil.copy(folder / ENVIRONMENT_FILE, anew)
        environment.load(folder)
    except FileNotFoundError:
        yield f"{ENVIRONMENT_FILE}: not there, so that nothing says what machine it was"
    except UsageError as error:
        yield str(error)


def _figures(folder: Path, anew: Path) -> Iterator[str]:
    """Every figure, which is left in the scratch folder too: the folder's own, where they cannot be compared."""
    (anew / FOLDER).mkdir()
    unlike = not_compared(folder)
    for name, text in gallery.svg_texts(anew):
        svg = f"{FOLDER}/{name}.svg"
        if unlike and (folder / svg).exists():
            shutil.copy(folder / svg, anew / svg)
        else:
            (anew / svg).write_text(text, encoding="utf-8")
            yield from _same(folder, svg, text)
    known = {path.name for path in (anew / FOLDER).iterdir()}
    found = {path.name for path in (folder / FOLDER).glob("*.svg")}
    yield from (f"{FOLDER}/{name}: no run gives it" for name in sorted(found - known))


def _report(folder: Path, anew: Path) -> Iterator[str]:
    """Every line of the report; and the page, where there is one, with the scratch folder's figures in it."""
    text = report.markdown(anew)
    if not (folder / report.MARKDOWN).exists():
        yield f"{report.MARKDOWN}: not there; python -m experiments report writes it"
    else:
        yield from _same(folder, report.MARKDOWN, text)
    if (folder / report.HTML).exists():
        title = text.splitlines()[0].removeprefix("# ")
        yield from _same(folder, report.HTML, page(text, title, anew))


def _same(folder: Path, name: str, should: str) -> Iterator[str]:
    """Whether a file has this text; if not, the lines that differ."""
    try:
        has = (folder / name).read_bytes().decode(errors="backslashreplace")
    except FileNotFoundError:
        yield f"{name}: not there"
        return
    if has == should:
        return
    found, lines = has.split("\n"), should.split("\n")
    if len(found) != len(lines):
        yield f"{name}: {len(found)} lines, {len(lines)} by the results"
    for number, (one, new) in enumerate(zip(found, lines, strict=False), start=1):
        if one != new:
            yield f"{name} line {number}: {_differs(one, new)}"


def _differs(one: str, new: str) -> str:
    """Both lines, from the beginning of a word a little before where they part."""
    place = next((at for at, (a, b) in enumerate(zip(one, new, strict=False)) if a != b), min(len(one), len(new)))
    start = max(0, place - _BEFORE)
    if start:
        start = one.find(" ", start - 1, place) + 1 or start
    return f"has {_short(one[start:])}, and {_short(new[start:])} by the results"


def _short(text: str) -> str:
    return json.dumps(text if len(text) <= 120 else f"{text[:120]}…", ensure_ascii=False)
