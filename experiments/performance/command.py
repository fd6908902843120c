"""The command ``performance``: measures every goal that it can, and prints it beside its goal, a row as it is there."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from experiments.design.alone import Alone, LoneServer
from experiments.design.setting import setting
from experiments.judge.stats import Estimate, median_interval
from experiments.measure import alone
from experiments.measure.bench import CATALOG, Bench, bench
from experiments.measure.load_programs import Absent, LoadProgram, load_programs
from experiments.measure.runner import check_free
from experiments.peers import PYTHON, is_built, peer_of, why_absent
from experiments.performance import budget, by_turns, catalog_size, durable
from experiments.performance.by_turns import Derived
from experiments.performance.table import ELSEWHERE, IDLE, IDLE_MIB, READY_S, SECTIONS, Section
from experiments.performance.turns import CONFIDENCE, LIMITED_SHARE, Found, Measuring, Plan, Turn, found, measure
from experiments.results import environment
from experiments.results.alone import Repetition
from experiments.results.files import write_at_once
from experiments.show.numbers import NOTHING, has_interval, number, percent, ratio_words
from stock_service.rpc.process.command_line import Parser

TABLE_FILE, TURNS_FILE = "performance.md", "turns.json"

QUICK, WHOLE = Plan(blocks=1, turns=6), Plan(blocks=2, turns=9)
"""Six turns are the fewest whose median has an interval."""

DURABLE, STOCKS = "durable", "stocks"

OWN_ROWS: Mapping[str, tuple[Derived, ...]] = {DURABLE: durable.ROWS, STOCKS: catalog_size.ROWS}
"""Of sections whose windows no sweep can hold. Each has one start of its servers, and the turns of one start."""

STARTS, QUICK_STARTS = 9, 6
"""Of each server, for its time to ready."""

_IDLE_S = 0.2

_HEADING = (
    "| what | metric | goal | figure | 95 % | reached | load program, of its core |",
    "|---|---|---|---|---|---|---|",
)

_LIMITED = " †"

_NOTE = (
    f"† The load program takes over {LIMITED_SHARE:.0%} of its core. That server could do more, so a ratio to it is no "
    "limit of the server: compare CPU a request."
)


_NAMES = (*(each.name for each in SECTIONS), *OWN_ROWS)


def add_options(parser: Parser) -> None:
    """What ``performance`` takes."""
    add = parser.add_argument
    add("--quick", action="store_true", help="one start of each server and six turns: four minutes instead of nine")
    add(
        "--section",
        choices=_NAMES,
        nargs="+",
        metavar="NAME",
        help=f"some rows alone: {', '.join(_NAMES)}",
    )
    add(
        "--budget",
        choices=tuple(budget.SPEECHES),
        help="instead: the processor time of a Lookup on a transport, stage by stage; half a minute",
    )
    add("--out", type=Path, metavar="FOLDER", help="where table, turns and environment go (default: a new one)")


def run(options: argparse.Namespace) -> int:
    """Measures and prints; gives the exit code. Blocks. Raises ProgramFailed, UsageError, a Fault."""
    if options.budget is not None:
        _print_budget(options.budget)
        return 0
    folder = options.out or Path("results") / f"performance-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    environment.save(environment.look(), folder)
    wanted = _NAMES if options.section is None else options.section
    plan = QUICK if options.quick else WHOLE
    lines: list[str] = []
    turns: dict[str, list[Turn]] = {}

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    for line in _HEADING:
        say(line)
    with load_programs(("c", "h2load")) as programs:
        there = {name: each for name, each in programs.items() if not isinstance(each, Absent)}
        on = bench(CATALOG, load_programs=there)
        for section in (each for each in SECTIONS if each.name in wanted):
            how = Measuring(on, plan, dict(_left_out(section, programs)))
            turns[section.name] = measure(section, how, partial(_progress, section.name))
            _progress("", 0)
            for row in section.rows:
                say(row_line(row.what, row.metric, row.goal, row.at_least, found(row, turns[section.name], how)))
        for name, rows in OWN_ROWS.items():
            if name in wanted:
                turns[name] = _own_turns(name, on, programs["c"], plan.turns)
                _progress("", 0)
                for own in rows:
                    say(_own_line(own, turns[name], programs["c"]))
        if options.section is None:
            for line in _alone(on, QUICK_STARTS if options.quick else STARTS):
                say(line)
            for what, where in ELSEWHERE.items():
                say(f"| {what} | {where} | | | | | |")
    if any(_LIMITED in line for line in lines):
        say(f"\n{_NOTE}")
    write_at_once(folder / TABLE_FILE, "\n".join([*lines, ""]).encode())
    write_at_once(folder / TURNS_FILE, msgspec.json.encode(turns))
    environment.finish(folder)
    print(f"written to {folder}", file=sys.stderr)
    return 0


def _own_turns(name: str, on: Bench, program: LoadProgram | Absent, turns: int) -> list[Turn]:
    """The turns of a section that is no sweep; none where its load program is not here."""
    watch = partial(_progress, name)
    if name == STOCKS:
        return catalog_size.measure(on, turns, watch)
    return [] if isinstance(program, Absent) else durable.measure(on, program, turns, watch)


def _own_line(row: Derived, turns: list[Turn], program: LoadProgram | Absent) -> str:
    seen = by_turns.found(row, turns)
    if not turns and isinstance(program, Absent):
        seen = Found(None, absent=str(program))
    return row_line(row.what, row.metric, row.goal, row.at_least, seen)


def _print_budget(transport: str) -> None:
    name = budget.LOAD_PROGRAMS[transport]
    with load_programs((name,)) as programs:
        program = programs[name]
        found = budget.stages(transport)
        if isinstance(program, Absent):
            server = None
        else:
            server = budget.whole(transport, bench(CATALOG, load_programs={name: program}))
    print("\n".join(budget.table(found, server)))
    if isinstance(program, Absent):
        print(f"\nThe whole server was not loaded: {program}")


def _left_out(section: Section, programs: Mapping[str, LoadProgram | Absent]) -> Iterator[tuple[str, str]]:
    """Arms whose server or load program is not here, each with how to get it."""
    for name, of in section.arms.items():
        program = programs[of.text("client")]
        if isinstance(program, Absent):
            yield name, str(program)
        elif of["language"] != PYTHON:
            peer = peer_of(of.text("service"), of.text("language"), of.text("transport"))
            if not is_built(peer):
                yield name, why_absent(peer)


def _alone(on: Bench, starts: int) -> Iterator[str]:
    """The rows of servers by themselves."""
    transports = tuple(READY_S)
    ready = tuple(LoneServer(setting(transport=name)) for name in transports)
    seen = _looked(Alone("performance", "ready", ready, starts, _IDLE_S), on)
    for place, name in enumerate(transports):
        took_s = [each.servers[place].ready_ms / 1000 for each in seen]
        yield row_line(f"{name}, start to ready", "s", READY_S[name], False, Found(median_interval(took_s, CONFIDENCE)))
    holding = tuple(LoneServer(setting(transport=name), (IDLE,)) for name in IDLE_MIB)
    (once,) = _looked(Alone("performance", "idle", holding, 1, _IDLE_S), on)
    for (name, goal), server in zip(IDLE_MIB.items(), once.servers, strict=True):
        memory = Found(median_interval([server.held[-1].resident_mib], CONFIDENCE))
        yield row_line(f"{name}, {IDLE:,} idle connections", "MiB", goal, False, memory)


def _looked(plan: Alone, on: Bench) -> list[Repetition]:
    return [alone.measure(plan, number, on) for number in range(1, plan.repetitions + 1)]


def row_line(what: str, metric: str, goal: float | None, at_least: bool, seen: Found) -> str:
    """A line of the table."""
    aimed = NOTHING if goal is None else f"{'≥' if at_least else '≤'} {number(goal)}"
    if seen.figure is None:
        return f"| {what} | {metric} | {aimed} | {seen.absent} | | | |"
    value, ends = ratio_words(seen.figure)
    loads = " ÷ ".join(f"{percent(share)}{_LIMITED * (share > LIMITED_SHARE)}" for share in seen.load_shares)
    errors = f"; {seen.errors} errors" if seen.errors else ""
    reached = NOTHING if goal is None else _reached(goal, at_least, seen.figure)
    return f"| {what} | {metric} | {aimed} | {value} | {ends} | {reached} | {loads}{errors} |"


def _reached(goal: float, at_least: bool, figure: Estimate) -> str:
    """``yes`` or ``no`` where the whole interval says so; of a figure without one, by its value."""
    low, high = (figure.low, figure.high) if has_interval(figure) else (figure.value, figure.value)
    if low >= goal if at_least else high <= goal:
        return "yes"
    return "no" if (high < goal if at_least else low > goal) else "undecided"


def _progress(section: str, share: float) -> None:
    """A line on a terminal that is rewritten; without a section it is wiped out."""
    if sys.stderr.isatty():
        print(f"\r{f'{section}: {share:.0%}' if section else '':<40}\r", end="", file=sys.stderr, flush=True)
