"""Trials of the service's promises: ``python -m tests.reliability [NAME ...]`` tries promises and prints each row at
once.

Without names all promises are tried, and their table is written to ``stock_service/RELIABILITY.md``. The exit code is 1
if a row falls short without an excuse, or further than its excuse (``promises.SHORT``). With the printed seed a run
repeats its random draws.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from experiments.results import environment
from tests.reliability.promises import PROMISES, SHORT, excused
from tests.reliability.rows import NO_GOAL, Row, worst
from tests.reliability.trying import AT_ONCE, Length, every

PAGE = Path(__file__).resolve().parents[2] / "stock_service" / "RELIABILITY.md"

EVERY_DAY = "make check-reliability"
MINUTES = 15
"""Longest time for all checks, in minutes."""

ROUNDS = 10
"""Number of times that ``--overnight`` tries each promise."""


def verdict(row: Row) -> str:
    """The word for a row in the column "kept"."""
    if row.states:
        return NO_GOAL
    if row.passed:
        return "yes"
    return "no, see below" if excused(row) else "NO"


def page(found: dict[str, list[Row]], took_s: dict[str, float], took_all_s: float, how: str, seed: int) -> str:
    """The table of all promises, and of the seconds that each took, in Markdown."""
    here = environment.look()
    rows = [row for rows in found.values() for row in rows]
    promised = [row for row in rows if not row.states]
    fallen = [row for row in promised if not row.passed]
    short, kept = [row for row in fallen if excused(row)], len(promised) - len(fallen)
    lines = [
        "# What the service promises, and what was found",
        "",
        f"`{how}` wrote this page. {kept} of {len(promised)} rows are kept. Each figure is of one run on one machine. "
        f"A row without a goal states what is beside a promise.",
        "",
        "| when | commit | Python | machine | kernel | seed |",
        "|---|---|---|---|---|---|",
        f"| {datetime.now(UTC):%Y-%m-%d %H:%M} UTC | {here.commit[:12]}{' with changes' if here.dirty else ''} "
        f"| {here.python} | {here.cpu_model}, {here.cores} cores | {here.kernel} | {seed} |",
        "",
        "| promise | what is tried | to reach | reached | kept |",
        "|---|---|---|---|---|",
    ]
    for name in PROMISES:
        for row in found[name]:
            cells = (name, row.promise, row.goal, row.figure, verdict(row))
            lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    if len(fallen) > len(short):
        lines += ["", "## What falls short", ""]
        lines += [f"- {row.promise}: {row.figure}, to reach {row.goal}." for row in fallen if row not in short]
    if short:
        lines += ["", "## What is known to fall short", ""]
        lines += [f"- {row.promise}: {SHORT[row.promise]}." for row in short]
    lines += ["", "## How long it took", "", f"Those marked * ran {AT_ONCE} at a time.", ""]
    lines += ["| promise | seconds |", "|---|---|"]
    lines += [f"| {name}{'' if PROMISES[name].timed else ' *'} | {took_s[name]:.0f} |" for name in PROMISES]
    allowed = f", of {MINUTES} minutes allowed" if how == EVERY_DAY else ""
    over = ": TOO LONG" if how == EVERY_DAY and took_all_s > MINUTES * 60 else ""
    lines.append(f"| all{allowed} | {took_all_s:.0f}{over} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> int:
    """Tries the promises. Gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description="Tries what the service promises.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(PROMISES)}; all without one")
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--seconds", action="store_true", help="a little of each, and no page is written")
    how_long.add_argument("--overnight", action="store_true", help=f"{ROUNDS} rounds, each with a seed of its own")
    parser.add_argument("--seed", type=int, help="what to draw from; printed where none is given")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in PROMISES]:
        parser.error(f"no promise is named {', '.join(unknown)}; allowed: {', '.join(PROMISES)}")
    names = [name for name in PROMISES if name in options.names or not options.names]
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    rounds: dict[str, list[list[Row]]] = {name: [] for name in names}
    took = dict.fromkeys(names, 0.0)
    began_s = time.monotonic()
    length = Length.OVERNIGHT if options.overnight else Length.SECONDS if options.seconds else Length.MINUTES
    for number in range(ROUNDS if options.overnight else 1):
        due = [name for name in names if not number or PROMISES[name].overnight is None]
        for name, rows, took_s in every(due, length, seed + number):
            rounds[name].append(rows)
            took[name] += took_s
            print(f"\n{name} ({took_s:.0f} s)", *rows, sep="\n  ", flush=True)
    found = {name: worst(rows, excused) for name, rows in rounds.items()}
    fallen = [row for rows in found.values() for row in rows if not row.passed and not excused(row)]
    if not options.names and not options.seconds:
        how = f"{EVERY_DAY}-overnight" if options.overnight else EVERY_DAY
        PAGE.write_text(page(found, took, time.monotonic() - began_s, how, seed), encoding="utf-8")
        print(f"\nwritten: {PAGE}")
    for row in fallen:
        print(f"falls short: {row}")
    return 1 if fallen else 0


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else a thousand programs compile all that they import, each anew
    sys.exit(main(sys.argv[1:]))
