"""``run all``: the main part of every study with its companions, one after the other; then the index of all studies.

Each study goes into a folder of its own, so that it can be resumed. A study that fails does not end the others: its
error is one line, and the exit code is 1. Left out: how a study is measured, which is a parameter, and the other parts
of studies.
"""

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from experiments.commands import index
from experiments.commands.recording import read
from experiments.design.sweep import Sweep
from experiments.measure.progress import duration
from experiments.results.files import SWEEP_FILE
from experiments.show import report
from experiments.show.content import Content
from experiments.verify import unfinished
from stock_service.rpc.errors import StockServiceError, UsageError

PROGRAM = "python -m experiments"

ALL = "all"

FAILED_EXIT = 1

KNOWN = (StockServiceError, OSError)
"""Errors of measuring whose cause lies outside of it."""

Measure = Callable[[str, Path], Content]
"""Measures a study's main part into a folder, or goes on where that was begun, and writes its report. Blocks."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A study to be measured."""

    name: str
    least_s: float
    """Seconds, about, if its first look decides."""
    most_s: float
    """Seconds, about, if only its last look decides."""
    others: tuple[str, ...]
    """Parts of the study that are not measured here."""
    sweep: Sweep | None = None
    """The sweep to be measured; None where these options do not fit it. Measuring it prints the reason."""
    beside: tuple[str, ...] = ()
    """Files and folders that measuring leaves beside the sweep's own."""


def run(planned: Sequence[Planned], left_out: Sequence[str], folder: Path, measure: Measure, again: str) -> int:
    """Measures what the folder lacks, writes the index, and prints an answer a study; gives the exit code. Blocks.

    ``left_out`` are lines on what cannot be measured here, ``again`` is the command that goes on. Raises
    KeyboardInterrupt, with every whole block kept; OSError where the index cannot be written.
    """
    done = {each.name for each in planned if is_whole(folder / each.name, each)}
    for line in (*announced(planned, folder, done), *left_out):
        print(line, flush=True)
    found: dict[str, Content] = {}
    failed: dict[str, str] = {}
    for number, each in enumerate(planned, 1):
        own = folder / each.name
        try:
            if each.name not in done:
                print(f"\n{each.name} ({number} of {len(planned)})", file=sys.stderr)
            found[each.name] = read(own) if each.name in done else measure(each.name, own)
        except Exception as error:  # whatever the error is, the other studies are measured
            failed[each.name] = _line(error)
            print(f"{each.name} failed: {failed[each.name]}", file=sys.stderr)
    print("\n" + "\n".join(concluded(planned, found, failed)))
    if failed:
        print(f"\nTo measure what failed: {again}")
    if found:
        print(f"\nIndex: {index.write(folder, {folder / name: each for name, each in found.items()}, failed)[0]}")
    return FAILED_EXIT if failed else 0


def is_whole(folder: Path, planned: Planned) -> bool:
    """True where the study was measured into the folder to its end: its report is there, with all its files."""
    if not all((folder / name).exists() for name in (report.MARKDOWN, *planned.beside)):
        return False
    try:
        seen = read(folder).seen
        broken_off = any(unfinished(folder))
    except UsageError:
        return False
    ended = all(len(each.blocks) in each.sweep.looks for each in (seen.main, *seen.after.values()))
    return ended and not broken_off and seen.main.sweep == planned.sweep


def announced(planned: Sequence[Planned], folder: Path, done: Set[str]) -> list[str]:
    """Lines before the start: the studies, the folder, the duration, and the studies that are left out."""
    to_do = [each for each in planned if each.name not in done]
    least_s, most_s = sum(each.least_s for each in to_do), sum(each.most_s for each in to_do)
    lines = [f"{len(planned)} studies into {folder}, one after the other; about {span(least_s, most_s)} in all:"]
    for each in planned:
        takes = "measured already" if each.name in done else f"about {span(each.least_s, each.most_s)}"
        lines.append(f"  {each.name:14} {takes}")
    lines += ["Each is its main part, with what is measured after it. These parts are not in it:"]
    lines += [f"  {each.name:14} {', '.join(each.others)}" for each in planned if each.others]
    return [*lines, f"A part by its name: {PROGRAM} run {next((e.others[0] for e in planned if e.others), 'NAME')}"]


def concluded(planned: Sequence[Planned], found: Mapping[str, Content], failed: Mapping[str, str]) -> list[str]:
    """A line for each study: its first answer, or the reason why it has none."""
    lines = []
    for each in planned:
        answers = found[each.name].answers if each.name in found else ()
        said = answers[0].sentence if answers else failed.get(each.name, "it has no answer")
        lines.append(f"{each.name}: {'failed: ' if each.name in failed else ''}{said}")
    return lines


def check_new(folder: Path) -> None:
    """Refuses a folder that holds results, unless ``--resume`` goes on with them. Raises UsageError."""
    if any(folder.glob(f"*/{SWEEP_FILE}")) or (folder / SWEEP_FILE).exists():
        raise UsageError(f"--out {folder}", "a folder with results", "--resume to go on with them, or another folder")


def span(least_s: float, most_s: float) -> str:
    """Two durations, or one if they are shown alike."""
    least, most = duration(least_s), duration(most_s)
    return least if least == most else f"{least} to {most}"


def _line(error: Exception) -> str:
    """An error in one line, with its type where it is a bug of ours."""
    said = " ".join(str(error).split())
    return said if isinstance(error, KNOWN) else f"{type(error).__name__}: {said}"
