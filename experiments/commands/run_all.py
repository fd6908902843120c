"""``run all``: measures the main parts of all studies, one after the other; then writes the index of all studies.

With a main part, the parts before and after it are measured. The further parts of the studies are not measured. Each
study has its own folder, so its measurement can be resumed. If a study fails, its error is printed in one line, and the
next study begins. At the end the exit code is 1. The module ``run`` passes the function that measures a study.
"""

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from experiments.commands import FAILED_EXIT, PROGRAM, index
from experiments.commands.recording import read
from experiments.design.sweep import Sweep
from experiments.kinds import unfinished
from experiments.measure.progress import duration
from experiments.results.files import SWEEP_FILE
from experiments.show import report
from experiments.show.content import Content
from experiments.studies.by_clients import SUFFIX
from stock_service.rpc.errors import StockServiceError, UsageError

ALL = "all"

Measure = Callable[[str, Path], Content]
"""Function that measures the named part into a folder, or resumes the measurement in the folder. Writes the report.
Blocks.
"""


@dataclass(frozen=True, slots=True)
class Planned:
    """Plan for measuring a study."""

    name: str
    """Name of the part to be measured: the study's name, with a suffix for the part that measures by numbers of
    clients.
    """
    least_s: float
    """Estimated duration in seconds if the sweep ends at its first look."""
    most_s: float
    """Estimated duration in seconds if the sweep ends at its last look."""
    others: tuple[str, ...]
    """Names of the study's parts that this run does not measure."""
    sweep: Sweep | None = None
    """Sweep to be measured; None if the options do not fit the part. In this case the measurement will print the
    reason.
    """
    beside: tuple[str, ...] = ()
    """Names of the files and folders that the measurement leaves besides the files of the sweep."""


def run(planned: Sequence[Planned], left_out: Sequence[str], folder: Path, measure: Measure, again: str) -> int:
    """Measures the studies that are not complete in the folder, and writes the index. Prints the first answer of each
    study. Returns the exit code. Blocks.

    ``left_out``: lines on servers that cannot be measured here. ``again``: the command that resumes this run. Raises
    KeyboardInterrupt after Ctrl-C, and OSError if the index cannot be written. Every whole block is kept.
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
        except Exception as error:  # after an error of any kind the next study is measured
            failed[each.name] = _line(error)
            print(f"{each.name} failed: {failed[each.name]}", file=sys.stderr)
    lines = concluded(planned, found, failed)
    if failed:
        lines.append(f"\nTo measure what failed: {again}")
    try:
        if found:  # written before anything is printed: the reader of the output may have gone
            why = {name.removesuffix(SUFFIX): reason for name, reason in failed.items()}
            page, _ = index.write(folder, {folder / name: each for name, each in found.items()}, why)
            lines.append(f"\nIndex: {page}")
    finally:
        print("\n" + "\n".join(lines))
    return FAILED_EXIT if failed else 0


def is_whole(folder: Path, planned: Planned) -> bool:
    """True if the folder has the whole planned measurement: the report, all planned files, and the planned sweep. Each
    sweep in the folder must have ended at a look.
    """
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
    """Lines to print before the start: the studies, the folder, the estimated duration, and the parts that are left
    out. ``done``: names of the studies that are measured already.
    """
    to_do = [each for each in planned if each.name not in done]
    least_s, most_s = sum(each.least_s for each in to_do), sum(each.most_s for each in to_do)
    lines = [f"{len(planned)} studies into {folder}, one after the other; about {span(least_s, most_s)} in all:"]
    for each in planned:
        takes = "measured already" if each.name in done else f"about {span(each.least_s, each.most_s)}"
        lines.append(f"  {each.name:14} {takes}")
    lines += ["Of each study the main part is measured, with the parts before and after it. These parts are left out:"]
    lines += [f"  {each.name:14} {', '.join(each.others)}" for each in planned if each.others]
    part = next((each.others[0] for each in planned if each.others), "NAME")
    return [*lines, f"This command measures one part: {PROGRAM} run {part}"]


def concluded(planned: Sequence[Planned], found: Mapping[str, Content], failed: Mapping[str, str]) -> list[str]:
    """Lines to print, one for each study: its first answer, or the reason why an answer is missing."""
    lines = []
    for each in planned:
        answers = found[each.name].answers if each.name in found else ()
        said = answers[0].sentence if answers else failed.get(each.name, "it has no answer")
        lines.append(f"{each.name}: {'failed: ' if each.name in failed else ''}{said}")
    return lines


def check_new(folder: Path) -> None:
    """Refuses a folder with results. Called only for a run without ``--resume``. Raises UsageError."""
    if any(folder.rglob(SWEEP_FILE)):
        raise UsageError(f"--out {folder}", "a folder with results", "--resume to go on with them, or another folder")


def span(least_s: float, most_s: float) -> str:
    """Text of the smallest and the largest duration. The text has only one duration if both would read the same."""
    least, most = duration(least_s), duration(most_s)
    return least if least == most else f"{least} to {most}"


def _line(error: Exception) -> str:
    """Text of an error in one line. If the error is a fault of this program, the text begins with the error's type."""
    said = " ".join(str(error).split())
    return said if isinstance(error, StockServiceError | OSError) else f"{type(error).__name__}: {said}"
