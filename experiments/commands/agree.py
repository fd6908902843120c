"""``python -m experiments agree RESULTS…``: prints a table that combines whole runs from different hours.

A whole run is a run that ended at a look (a declared number of blocks). Only whole runs have verdicts. The command
reads folders of results and measures nothing. ``judge/agreement.py`` computes the numbers of the table, and this module
writes the table as text or as Markdown. For an incomplete run, and for runs of different sweeps, the command prints an
error of one line. If the runs of a comparison are of several versions, the table shows the verdicts, but no ratios.
Lines below the table name the sources that differ between versions.
"""

import argparse
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from experiments.judge.agreement import CONFIDENCE, Agreement, Pooled, agreements, differences
from experiments.judge.stats import SPREAD_FROM
from experiments.judge.verdicts import Judgement, judge
from experiments.results import earlier, environment, files
from experiments.results.earlier import EARLIER_FILE, EarlierRun, Ratio
from experiments.results.fingerprint import Sources
from experiments.show.numbers import counted, range_words, ratio_words, spread_words
from experiments.show.sentences import verdict_words
from experiments.show.tables import Table
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser

HEAD = ("comparison", "decided", "verdicts", "ratios", "pooled", "tau", "a further run", "contradictions")

LEGEND = (
    ("decided", "number of runs in which the verdict on the comparison is not INCONCLUSIVE"),
    ("verdicts", "verdicts of the runs, each verdict once"),
    ("ratios", "the least and the greatest ratio, with the number of runs; of two runs both ratios"),
    ("pooled", f"the mean ratio over these runs, with its {CONFIDENCE:.0%} interval (random effects)"),
    (
        "tau",
        f"standard deviation of the true ratios between runs, and its upper limit ({CONFIDENCE:.0%}); "
        "'none seen': chance alone explains the spread, and the true deviation is under the limit",
    ),
    ("a further run", f"{CONFIDENCE:.0%} prediction interval for the true ratio of one more run"),
    ("contradictions", "pairs of runs with opposite verdicts"),
)
"""Name and meaning of each column of the table. The first column has no entry."""

SEVERAL_VERSIONS = "of several versions"

THREE_NEEDED = f"{SPREAD_FROM} runs needed"

TAU_SHOWN = 0.0005
"""Smallest standard deviation that the column ``tau`` shows as a number. A smaller deviation would appear as 0.0%."""


def add_options(parser: Parser) -> None:
    """Adds the options of ``agree``."""
    parser.add_argument(
        "results", type=Path, nargs="+", metavar="RESULTS", help="folders that 'run' or 'compare --out' wrote"
    )
    add = parser.add_mutually_exclusive_group().add_argument
    add("--markdown", action="store_true", help="print the table in Markdown")
    keep = f"print no table; add the ratios of runs of any version to FILE, which is a study's {EARLIER_FILE}"
    add("--keep", type=Path, metavar="FILE", help=keep)


def run(options: argparse.Namespace) -> int:
    """Prints the table. With ``--keep``, adds the runs to a file instead. Returns the exit code. Raises UsageError,
    OSError.
    """
    if options.keep is not None:
        known = earlier.save(options.keep, [earlier_run(folder) for folder in options.results])
        print(f"{options.keep}: {counted(known, 'run')}")
        return 0
    print(table(options.results, options.markdown), end="")
    return 0


def earlier_run(folder: Path) -> EarlierRun:
    """Record of a folder's whole run, for the file of ``--keep``. Raises UsageError for a run without verdicts.

    A comparison is in the record if it is a headline comparison and has values in two or more blocks. For each such
    comparison the record has the mean log-ratio, and the variance of this mean.
    """
    judgement, of = whole_run(folder), environment.load(folder)
    logs = {each.comparison.name: list(each.log_ratios.values()) for each in judgement.comparisons("headline")}
    ratios = {
        name: Ratio(float(np.mean(each)), float(np.var(each, ddof=1)) / len(each))
        for name, each in logs.items()
        if len(each) > 1
    }
    version = sha256(repr(sorted(of.sources.items())).encode()).hexdigest() if of.sources else of.commit
    return EarlierRun(of.before.at, version, of.cpu_model, of.cores, ratios)


def table(folders: Sequence[Path], markdown: bool = False) -> str:
    """Text of the table and its legend, and of the sentences on versions and verdicts, with a line break at the end.

    Raises UsageError for fewer than two folders, a repeated folder, an incomplete run, and runs of different sweeps.
    """
    if len(folders) < 2:
        raise UsageError("RESULTS", " ".join(map(str, folders)) or None, "two folders of results or more")
    twice = [
        str(folder) for place, folder in enumerate(folders) if folder.resolve() in map(Path.resolve, folders[:place])
    ]
    if twice:
        raise UsageError("RESULTS", f"{twice[0]} twice", "each run once")
    runs = [whole_run(folder) for folder in folders]
    for folder, run in zip(folders[1:], runs[1:], strict=True):
        if found := differences(runs[0].sweep, run.sweep):
            raise UsageError(str(folder), found, f"a run of the same sweep as {folders[0]}")
    said = list(agreements(runs, [run_sources(folder) for folder in folders]))
    lines = [_cells(each, len(runs)) for each in said]
    named = "".join(f"\n{line}" for line in [*versions(said), summary(said, len(runs))])
    if markdown:
        shown = Table(HEAD, tuple(lines), len(HEAD)).markdown
        return f"{shown}\n{_legend('- **{}**: {}')}{named}\n"
    return f"{_text(lines)}{named}\n\n{_legend('  {}: {}')}"


def run_sources(folder: Path) -> Sources:
    """Fingerprints of the sources of a folder's run; empty if the folder has no fingerprints. Raises UsageError."""
    return environment.load(folder).sources if (folder / environment.ENVIRONMENT_FILE).exists() else {}


def versions(found: Sequence[Agreement]) -> Iterator[str]:
    """Yields a line for each run whose sources differ from the sources of the first run. The line names the differing
    sources, and gives the number of comparisons with arms that run these sources.
    """
    for place in sorted({place for each in found for place in each.apart}):
        apart = [each.apart[place] for each in found if place in each.apart]
        named = dict.fromkeys(name for names in apart for name in names)
        of = counted(len(apart), "comparison")
        yield f"Runs 1 and {place + 1} have different sources in {of}: {', '.join(named)}."


def summary(found: Sequence[Agreement], runs: int) -> str:
    """Sentences with three numbers of comparisons: comparisons that every run decided, comparisons whose runs are of
    several versions, and comparisons whose runs contradict each other.
    """
    decided, apart = sum(each.decided == runs for each in found), sum(bool(each.apart) for each in found)
    against = sum(bool(each.contradictions) for each in found)
    told = [f"Every one of the {runs} runs decided {decided} of the {counted(len(found), 'comparison')}."]
    if apart:
        told.append(f"{apart} {_has(apart)} runs of several versions, so their runs are not compared.")
    if apart < len(found):
        none, said = ("None", str(against)) if not apart else ("Of the others none", f"Of the others {against}")
        told.append(f"{said if against else none} {_has(against)} contradictory runs.")
    return " ".join(told)


def _has(number: int) -> str:
    return "have" if number > 1 else "has"


def whole_run(folder: Path) -> Judgement:
    """Judgement on a folder's run. Raises UsageError for a run that did not end at a look, since such a run has no
    verdicts.
    """
    sweep, blocks = files.read_sweep(folder), files.counting(files.read_blocks(folder))
    judgement = judge(sweep, blocks)
    if judgement.look is None:
        given = f"{len(blocks)} blocks, of a sweep with looks at {', '.join(map(str, sweep.looks))}"
        raise UsageError(str(folder), given, "a whole run, which has verdicts")
    return judgement


def _cells(one: Agreement, runs: int) -> tuple[str, ...]:
    pooled, tau, predicted = "", THREE_NEEDED, THREE_NEEDED
    if one.pooled is not None:
        pooled = "{} ({})".format(*ratio_words(one.pooled.ratio))
        if one.pooled.predicted is not None:
            tau = _tau_words(one.pooled)
            predicted = range_words(*one.pooled.predicted)
    against = ", ".join(f"runs {a + 1} and {b + 1}" for a, b in one.contradictions) or "none"
    spread = f"{spread_words([each.typical.value for each in one.judged])} ({counted(len(one.judged), 'run')})"
    together = (spread, pooled, tau, predicted, against)
    return (
        one.comparison.title,
        f"{one.decided} of {runs}",
        "; ".join(dict.fromkeys(map(verdict_words, one.judged))),
        *([SEVERAL_VERSIONS, *[""] * (len(together) - 1)] if one.apart else together),
    )


def _tau_words(pooled: Pooled) -> str:
    assert pooled.tau is not None
    assert pooled.tau_high is not None
    seen = f"{pooled.tau:.1%}" if pooled.tau >= TAU_SHOWN else "none seen"
    return f"{seen}, up to {pooled.tau_high:.1%}"


def _text(lines: Sequence[tuple[str, ...]]) -> str:
    """Text of the table in aligned columns, for a terminal."""
    table = [HEAD, *lines]
    widths = [max(len(line[place]) for line in table) for place in range(len(HEAD))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in table
    )


def _legend(line: str) -> str:
    """Legend of the table, with a line for each column. ``line``: format string, into which a column's name and meaning
    are put.
    """
    return "".join(f"{line}\n".format(name, meaning) for name, meaning in LEGEND)
