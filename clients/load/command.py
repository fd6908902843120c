"""The load client's program: a load run for each number of clients, or a search for the highest rate.

Exit codes: 0; 1 where requests ended in errors; 2 for a bad option; 3 where no client could connect; 4 where a
``--fail-if`` holds, or ``--find-rate`` found no rate; 130 after Ctrl-C or SIGTERM, when what was measured until then is
still shown and written. Files are written anew after every run, each whole or not at all.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from clients.connecting import FAULT_EXIT, explained
from clients.load import fleet, output
from clients.load.floor import Floor, floor
from clients.load.live import live
from clients.load.options import check, parser, plan
from clients.load.output import Measured
from clients.load.plan import LoadPlan
from clients.load.result import ALL
from clients.load.search import Found, Trial, find_rate
from clients.load.summary import show, span
from clients.load.thresholds import Condition, broken, parse, replies_needed
from stock_service.command_line import USAGE_EXIT, refuse
from stock_service.errors import Fault, UsageError

PROGRAM = "python -m clients.load"

ERROR_EXIT = 1
BROKEN_EXIT = 4
"""For a limit that was not kept."""
INTERRUPTED_EXIT = 130
"""What shells give for a program that Ctrl-C ended."""

SEARCH_FROM_HZ, SEARCH_TO_HZ = 10.0, 1_000_000.0

ENOUGH = 1.2
"""A search begins where a trial has so many times the replies that its percentiles need: arrivals are random."""

LATE_US, LATE_SHARE = 100.0, 0.05
"""A trial whose sends are later than this at their 99th percentile, or than this share of the median, fails. Why they
are late cannot be told: the client was too slow, or the server kept all calls that its connections have room for."""

KEPT_UP = 0.99
"""A trial whose window saw fewer replies than this share of what was due in it fails: the server fell behind."""


LATE_WHY = (
    "the client may be too slow (give it --clients, or --cpus of its own), "
    "or the server had no room for more calls (--connections-per-client)"
)
"""What late sends may come from, and what to try."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; gives its exit code."""
    options = parser(PROGRAM).parse_args(arguments)
    try:
        check(options)
        plans = [plan(options, clients) for clients in options.clients]
        fleet.make_room(max(options.clients))
        if options.find_rate:
            _check_search(options)
        elif options.p99_ms is not None:
            raise UsageError("--p99-ms", options.p99_ms, "with --find-rate, or --fail-if 'p99>20ms' without")
    except UsageError as error:
        refuse(PROGRAM, error)
    session = _Session(options)
    with session.interrupts.listened_to():
        try:
            code = _search(session, plans[0]) if options.find_rate else _measure(session, plans)
        except KeyboardInterrupt:
            print(f"{PROGRAM}: interrupted", file=sys.stderr)
            code = INTERRUPTED_EXIT
        except Fault as fault:
            print(f"{PROGRAM}: {explained(fault, options.transport)}", file=sys.stderr)
            code = FAULT_EXIT
        session.interrupts.over = True
        faults = _write(options, session.runs, streams=False)
        sys.stdout.flush()
    faults += _write(options, session.runs, streams=True)  # by now Ctrl-C ends the program: nobody may read there
    for line in faults:
        print(f"{PROGRAM}: {line}", file=sys.stderr)
    return USAGE_EXIT if faults else code


class _Interrupts:
    """Ctrl-C and SIGTERM: the first of them raises KeyboardInterrupt, at once or once it may; later ones do nothing."""

    def __init__(self) -> None:
        self.over = False
        """Nothing is left to interrupt."""
        self._held = self._came = False

    @contextmanager
    def listened_to(self) -> Iterator[None]:
        """In the block; what the signals did before they do again afterwards. What ignored them still does."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            for number, was in before.items():
                if was is not signal.SIG_IGN:
                    signal.signal(number, self._note)
            yield
        finally:
            for number, was in before.items():
                signal.signal(number, was)

    @contextmanager
    def held(self) -> Iterator[None]:
        """What is done in the block is done whole: nothing that was measured is lost between a run and its summary."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._came:
            self._raise_once()

    def _note(self, *_: object) -> None:
        self._came = True
        if not self._held:
            self._raise_once()

    def _raise_once(self) -> None:
        if not self.over:
            self.over = True
            raise KeyboardInterrupt


class _Session:
    """The runs of one command line."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.interrupts = _Interrupts()
        self.runs: list[Measured] = []

    def run(self, asked: LoadPlan, floor_said: Floor | None) -> Measured:
        """One run, watched, and kept. Ctrl-C ends it early. To be called while interrupts are held."""
        started_at = output.now()
        with live(Console(stderr=True), asked) as watch:
            result = fleet.run(asked, watch)
        self.runs.append(Measured(asked, result, floor_said, started_at))
        return self.runs[-1]


def _measure(session: _Session, plans: Sequence[LoadPlan]) -> int:
    """A run for each plan."""
    code, options = 0, session.options
    floor_said = None if options.no_floor else _floor(plans[0])
    for each in plans:
        with session.interrupts.held():
            run = session.run(each, floor_said)
            show(run.plan, run.result, run.floor, Console())
            for line in broken(options.fail_if or (), run.result):
                print(f"{PROGRAM}: --fail-if {line}", file=sys.stderr)
                code = BROKEN_EXIT
            code = code or (ERROR_EXIT if run.result.errors else 0)
            _write(options, session.runs, streams=False)
        if run.result.interrupted:
            return INTERRUPTED_EXIT
    return code


def _search(session: _Session, base: LoadPlan) -> int:
    """Trials of rising rates."""
    options = session.options
    limits = _limits(options)

    def trial(rate_hz: float) -> Trial:
        with session.interrupts.held():
            run = session.run(replace(base, rate_hz=rate_hz), None)
            tried = _judged(rate_hz, run, limits)
            print(f"{rate_hz:10,.0f}/s  {tried.said}", file=sys.stderr)
        if run.result.interrupted:
            raise KeyboardInterrupt
        return tried

    lowest_hz = lowest_rate_hz(limits, base.duration_s)
    found = find_rate(trial, lowest_hz, SEARCH_TO_HZ)
    print(_conclusion(found, lowest_hz, options.p99_ms))
    return BROKEN_EXIT if found.rate_hz is None else 0


def lowest_rate_hz(limits: Sequence[Condition], duration_s: float) -> float:
    """The rate that a search begins with: one at which a trial can tell whether the limits are kept."""
    return max(SEARCH_FROM_HZ, ENOUGH * replies_needed(limits) / duration_s)


def _judged(rate_hz: float, run: Measured, limits: Sequence[Condition]) -> Trial:
    """What a trial showed of a rate."""
    every, late = run.result.requests[ALL], run.result.late_us
    faults = list(broken(limits, run.result))
    late_us = (late.p99_us or 0.0) if late else 0.0
    late_sends = late_us > max(LATE_US, LATE_SHARE * (every.p50_us or 0.0))
    due = every.count + sum(every.errors.values())
    if run.result.completed < KEPT_UP * due:
        faults.append(f"{run.result.completed:,} replies in time, of {due:,} due")
    said = f"p99 {span(every.p99_us)}, {'; '.join(faults) or 'kept'}{', sent late' if late_sends else ''}"
    return Trial(rate_hz, not faults and not late_sends, said, late_sends)


def _conclusion(found: Found, lowest_hz: float, p99_ms: float) -> str:
    """What a search found, in a line."""
    none = found.rate_hz is None
    why = f"; {'there' if none else 'above it'} requests were sent late: {LATE_WHY}" if found.late_sends else ""
    if none:
        return f"no rate from {lowest_hz:.0f}/s on was shown to keep a p99 of {p99_ms:g} ms{why}"
    return f"highest rate with a p99 of at most {p99_ms:g} ms: {found.rate_hz:.0f}/s, within 5 %{why}"


def _floor(asked: LoadPlan) -> Floor | None:
    """What this kind of client measures of a server that does nothing; None, said aloud, where that failed."""
    try:
        return floor(asked.transport, asked.client, asked.cpus)
    except Fault as fault:
        print(f"{PROGRAM}: no floor of the client measured: {fault}", file=sys.stderr)
        return None


def _check_search(options: argparse.Namespace) -> None:
    """Raises UsageError where the options do not make a search."""
    if options.p99_ms is None:
        raise UsageError("--find-rate", "no --p99-ms", "--p99-ms MS beside it, the limit to keep")
    if options.rate_hz is not None:
        raise UsageError("--find-rate", f"--rate-hz {options.rate_hz:g}", "one of the two: it looks for the rate")
    if len(options.clients) > 1:
        raise UsageError("--find-rate", "several numbers of clients", "one: --clients N")
    lowest_hz = lowest_rate_hz(_limits(options), options.duration_s)
    if lowest_hz > SEARCH_TO_HZ:
        least_s = options.duration_s * lowest_hz / SEARCH_TO_HZ
        allowed = f"{least_s:.3g} or more: a trial at {SEARCH_TO_HZ:g}/s must have replies enough for every percentile"
        raise UsageError("--duration-s", options.duration_s, allowed)


def _limits(options: argparse.Namespace) -> list[Condition]:
    """What every trial of a search must keep."""
    return [parse(f"p99>{options.p99_ms * 1000:f}us"), parse("errors>0.1%"), *(options.fail_if or ())]


_TEXTS = (("json", output.json_text), ("csv", output.csv_text), ("hlog", output.hlog_text))


def _write(options: argparse.Namespace, runs: Sequence[Measured], streams: bool) -> list[str]:
    """Writes the files that were asked for, or the streams, if anything was measured; what went wrong, in words."""
    faults = []
    for option, text in _TEXTS:
        path: Path | None = getattr(options, option)
        if path is None or not runs or output.is_stream(path) != streams:
            continue
        sys.stdout.flush()  # a stream may be the same
        try:
            output.write(path, text(runs))
        except OSError as error:
            faults.append(f"--{option}: got {str(path)!r}, which cannot be written: {error.strerror}")
    return faults
