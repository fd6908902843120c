"""``pages``: writes the numbers of the recordings into pages and notebooks, so nobody must type numbers.

The command writes the index of studies, each recorded report, and the outputs of each notebook (``notebooks.py``). On
the pages of ``filled_pages`` the command writes the text between ``<!--= FOLDERS QUANTITY -->`` and ``<!--/-->``.
FOLDERS is a pattern, such as ``STUDY/quick*``, for the names of recordings in ``experiments/studies/STUDY/recorded``.
A ``?`` after FOLDERS means that the recording may be missing. The text is then ``NOT_YET``. QUANTITY is either

- the name of a comparison, for its ratio. ``1÷`` before the name gives the inverse of the ratio, and ``interval`` after
  the name gives the interval of the ratio;
- ``latency of ARM`` or ``STAGE of ARM``: a mean time over all blocks of the first run. An arm is a server under a load;
- or one of ``QUANTITIES``.

With ``--check`` the command writes nothing, but prints the names of the pages that it would change.
"""

import argparse
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean

from experiments.commands import FAILED_EXIT, notebooks
from experiments.commands.index import HERE, ROOT, made, recordings
from experiments.commands.recording import read
from experiments.judge.points import points, stages
from experiments.judge.verdicts import Judged, Judgement
from experiments.results import environment
from experiments.results.files import SWEEP_FILE, write_at_once
from experiments.results.observed import ALL
from experiments.show import report
from experiments.show.content import Content
from experiments.show.figures.stages import STAGES
from experiments.show.numbers import counted, number, ratio_words, spread_words, time_unit
from experiments.show.report import index as index_page
from experiments.show.tables import Table
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser

MARKED = re.compile(r"<!--= (\S+) (.+?) -->(.*?)<!--/-->", re.DOTALL)
"""Pattern of a marked text. Its groups are the folders, the quantity, and the text between the two markers."""

MEASURING = ("compare", "recommend")
"""Commands that measure. Each command's README may have marked texts."""

WIDTH = 118
"""Maximum number of characters in a line of the answers that the command writes into a page."""

NOT_YET = "not recorded yet"

LATENCY = "latency"

BRACKETS = "Brackets: the interval over blocks."
"""Sentence that explains the brackets after a ratio."""

Runs = Sequence[tuple[Path, Content]]
"""Folder and content of each recording that a marker selects, in the order of the folders' names."""


def add_options(parser: Parser) -> None:
    """Adds the options of ``pages``."""
    parser.add_argument("--check", action="store_true", help="write nothing, and name the pages that differ")


def run(options: argparse.Namespace) -> int:
    """Writes the pages whose text would change, and prints their paths. With ``--check`` only prints the paths. Returns
    the exit code: ``FAILED_EXIT`` if ``--check`` found a page that would change. Blocks for a minute. Raises
    UsageError, OSError.
    """
    changed = {page: text for page, text in chain(written(), notebooks.written()) if text != _text(page)}
    for page, text in changed.items():
        if not options.check:
            write_at_once(page, text.encode())
        print(f"{page.relative_to(ROOT)}{': not what the recordings give' * options.check}")
    return FAILED_EXIT if options.check and changed else 0


def written() -> Iterator[tuple[Path, str]]:
    """Yields the file and the recomputed text of every page except the notebooks. Raises UsageError."""
    _read.cache_clear()
    yield HERE / "README.md", index_page.markdown(made({folder: _read(folder) for folder in recordings()}, HERE))
    for page in sorted(HERE.glob(f"*/recorded/*/{report.MARKDOWN}")):
        yield page, report.markdown(_read(page.parent))
    for page in filled_pages():
        yield page, filled(_text(page), page)


def filled_pages() -> Iterator[Path]:
    """Yields the pages that may have marked texts: the front page, pages of the studies, and the READMEs of commands
    that measure.
    """
    yield ROOT / "README.md"
    yield from sorted(HERE.glob("*/*.md"))
    yield from (page for name in MEASURING if (page := HERE.parent / name / "README.md").exists())


def filled(text: str, page: Path) -> str:
    """Text of a page, with the present numbers of the recordings between its markers. Raises UsageError for a marker
    whose recording or quantity does not exist.
    """

    def one(found: re.Match[str]) -> str:
        folders, quantity, _ = found.groups()
        return f"<!--= {folders} {quantity} -->{_said(folders, quantity, page)}<!--/-->"

    return MARKED.sub(one, text)


def _said(folders: str, quantity: str, page: Path) -> str:
    """Text for a quantity, to write between two markers. ``page``: the page's file, for the text of a UsageError."""
    study, _, name = folders.removesuffix("?").partition("/")
    found = sorted(HERE.glob(f"./{study}/recorded/{name}/{SWEEP_FILE}"))
    if not found and folders.endswith("?"):
        return NOT_YET
    if not name or not found:
        raise UsageError(str(page), folders, "a recording, as STUDY/quick")
    runs = [(file.parent, _read(file.parent)) for file in found]
    if quantity in QUANTITIES:
        return QUANTITIES[quantity](runs)
    stage, _, arm = quantity.partition(" of ")
    is_time = stage in (LATENCY, *STAGES)
    return _time(runs[0][1].judgement, stage, arm, page) if is_time else _ratio(runs, quantity, page)


def _time(judgement: Judgement, stage: str, name: str, page: Path) -> str:
    """Mean time of an arm, as text with a unit: the latency of its requests, or the duration of a stage that its server
    recorded. Raises UsageError if the arm has no such time.
    """
    sweep, blocks = judgement.sweep, judgement.blocks
    means_us: list[float] = []
    for arm in (each for each in sweep.arms if each.name == name):
        if stage != LATENCY:
            means_us += [getattr(each, stage).mean_us for each in stages(sweep, blocks, arm).get(ALL, ())]
        elif (mean_us := points(sweep, blocks)[arm, ALL].mean_us) is not None:
            means_us.append(mean_us.value)
    if not means_us:
        raise UsageError(str(page), f"{stage} of {name}", ", ".join((LATENCY, *STAGES)) + " of an arm that has it")
    unit, us = time_unit([fmean(means_us)])
    return f"{number(fmean(means_us) / us)} {unit}"


def _ratio(runs: Runs, quantity: str, page: Path) -> str:
    """Text of a comparison's typical ratio: the ratio of a single run, or the smallest and the largest ratio of several
    runs. If the quantity ends in ``interval``, the text is the interval of each run. Raises UsageError if a run does
    not have the comparison.
    """
    of = quantity.removeprefix("1÷ ")
    name = of.removesuffix(" interval")
    for folder, content in runs:
        if name not in content.judgement.judged:
            raise UsageError(str(page), f"{name} of {folder.name}", ", ".join((*content.judgement.judged, *QUANTITIES)))
    ratios = [content.judgement.judged[name].typical for _, content in runs]
    if of != quantity:
        ratios = [each.under(1.0) for each in ratios]
    if name != of:
        return " and ".join(ratio_words(each)[1] for each in ratios)
    return ratio_words(ratios[0])[0] if len(ratios) == 1 else spread_words([each.value for each in ratios])


def _minutes(runs: Runs) -> str:
    """Duration of each run in whole minutes, rounded up. A run lasts from the first to the last record of the machine's
    state in its folder and subfolders.
    """
    return " and ".join(dict.fromkeys(str(math.ceil(_took_s(folder) / 60)) for folder, _ in runs))


def _took_s(folder: Path) -> float:
    """Duration in seconds of a run and of the runs in its subfolders. Raises UsageError for a folder without a record
    of the machine.
    """
    seen = [environment.load(file.parent) for file in folder.glob(f"**/{environment.ENVIRONMENT_FILE}")]
    moments = [datetime.fromisoformat(at.at) for each in seen for at in (each.before, each.after) if at is not None]
    if not moments:
        raise UsageError(str(folder), "minutes", f"a recording with {environment.ENVIRONMENT_FILE}")
    return (max(moments) - min(moments)).total_seconds()


def _versions(runs: Runs) -> str:
    """Versions of the servers in the runs, in words. A version of several runs is named only once."""
    return "; ".join(dict.fromkeys(content.seen.version.words for _, content in runs))


def _first(runs: Runs) -> str:
    """The first answer of the first run. Raises UsageError for a part without answers."""
    folder, content = runs[0]
    if not content.answers:
        raise UsageError(str(folder), "first", "a recording of a part with answers")
    return content.answers[0].sentence


def _answers(runs: Runs) -> str:
    """Lines with every answer of the first run. If there are several runs, the smallest and the largest ratio over all
    runs follow each answer.
    """
    (_, first), *others = runs
    lines = [f"{_begun(runs)}, {_versions(runs)}.", ""]
    for place, answer in enumerate(first.answers, 1):
        said = f"{place}. **{answer.question}** {answer.sentence}"
        if others and answer.deciding:
            ratios = (f"{each.comparison.title} {_in_all(each, runs)}" for each in answer.deciding)
            said += f" In {counted(len(runs), 'run')}: {'; '.join(ratios)}."
        lines.append(said)
    lines += ["", " ".join(filter(None, (BRACKETS, first.reach, *_changes(runs))))]
    wrapped = (
        textwrap.wrap(line, WIDTH, subsequent_indent="   " * bool(re.match(r"\d+\. ", line))) or [""] for line in lines
    )
    return "\n" + "".join(f"{line}\n" for each in wrapped for line in each)


def _begun(runs: Runs) -> str:
    blocks = " and ".join(dict.fromkeys(str(len(content.judgement.blocks)) for _, content in runs))
    return f"{counted(len(runs), 'run').capitalize()} of {blocks} blocks" if runs[1:] else f"One run of {blocks} blocks"


def _changes(runs: Runs) -> Iterator[str]:
    """Yields one sentence if sources have changed since the runs. The sentence names the first changed source, and
    gives the number of other changed sources.
    """
    first, *others = dict.fromkeys(place for _, content in runs for place in content.seen.version.changed) or [""]
    if first:
        yield f"Changed since: {first}{f' and {len(others)} more' * bool(others)}."


def _in_all(judged: Judged, runs: Runs) -> str:
    """Text of the smallest and the largest ratio of a comparison over all runs. If some runs have no ratio of the
    comparison, the text also has the number of runs with a ratio.
    """
    every = [content.judgement.judged.get(judged.comparison.name) for _, content in runs]
    ratios = [each.typical.value for each in every if each is not None]
    return spread_words(ratios) + f" (of {counted(len(ratios), 'run')})" * (len(ratios) < len(runs))


QUANTITIES: Mapping[str, Callable[[Runs], str]] = {
    "answers": _answers,
    "first": _first,
    "version": _versions,
    "minutes": _minutes,
    "runs": lambda runs: counted(len(runs), "run"),
    "pairs": lambda runs: _table(("A/A pair", "ratio of each run"), _pairs(runs)),
    "recordings": lambda runs: _table(("recording", "servers"), _recordings(runs)),
}
"""Functions that write each quantity, except ratios and times.

``answers``: all answers of the first run. ``first``: only the first answer of the first run. ``version``: the versions
of the runs. ``minutes``: the runs' durations. ``runs``: the number of runs. ``pairs``: a table of A/A pairs.
``recordings``: a table of the runs' folders and versions.
"""


def _pairs(runs: Runs) -> Iterator[tuple[str, str]]:
    """Yields the lines of the table of A/A pairs (two servers with one setting). A line has the name of a pair in the
    first run, and the smallest and the largest ratio of this pair over all runs.
    """
    for each in runs[0][1].judgement.judged.values():
        if each.comparison.kind == "same":
            yield each.comparison.title.removeprefix("A/A: "), _in_all(each, runs)


def _recordings(runs: Runs) -> Iterator[tuple[str, str]]:
    for folder, content in runs:
        yield f"`{folder.name}`", content.seen.version.words


def _table(head: tuple[str, str], lines: Iterator[tuple[str, str]]) -> str:
    return f"\n\n{Table(head, tuple(lines), 2).markdown}\n"


@cache
def _read(folder: Path) -> Content:
    """Content of a recording. The content is cached, since several pages use the same content."""
    return read(folder)


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else ""
