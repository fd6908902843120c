"""The load client's program: a load run for each number of clients, or a search for the highest rate.

``EXITS`` has the exit codes. After Ctrl-C or SIGTERM the measurements so far are still shown and written. All files are
rewritten after every run. A reader never sees a partly written file.
"""

import argparse
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from clients.connecting import FAULT_EXIT, explained
from clients.load import output
from clients.load.history.as_json import to_json
from clients.load.history.operations import History
from clients.load.history.verdict import judged
from clients.load.hosts.merging import HostResult
from clients.load.live import live
from clients.load.options import (
    BROKEN_EXIT,
    ERROR_EXIT,
    INTERRUPTED_EXIT,
    REFUSED_EXIT,
    check,
    parser,
    plan,
    request_types,
)
from clients.load.output import Measured
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import ALL, LoadResult
from clients.load.run import checking, fleet
from clients.load.run.fleet import Progress, Watch
from clients.load.run.floor import Floor, floor
from clients.load.run.processes import make_room
from clients.load.run.search import HALVINGS_MAX, TRIALS_MAX, Found, Trial, find_rate
from clients.load.send import lean
from clients.load.summary import off_schedule, show, show_hosts, show_verdict, span, told
from clients.load.thresholds import Condition, broken, parse, replies_needed
from stock_service.rpc.errors import Fault, StockServiceError, Unavailable, UsageError
from stock_service.rpc.option_types import shown_address
from stock_service.rpc.process.command_line import USAGE_EXIT, refuse

PROGRAM = "python -m clients.load"

SEARCH_FROM_HZ, SEARCH_TO_HZ = 10.0, 1_000_000.0

ENOUGH = 1.2
"""Planned number of replies of a trial ÷ number of replies that the percentiles need. Arrivals are random, so a trial
that is planned without this reserve might get too few replies."""

PROBE_S = 1.0
"""Longest time in seconds for the connection that tests if a server listens. If the server has not refused the
connection by then, the clients start."""

LATE_US, LATE_SHARE = 100.0, 0.05
"""Two limits of the lateness of sends in a trial. ``LATE_US`` is in µs, ``LATE_SHARE`` is a share of the median
response time. A trial fails if the 99th percentile of the lateness is over both limits.

Sends are late if the client is too slow, or if the server allows no more calls on the connections. The lateness does
not show which of these two causes is true.
"""

KEPT_UP = 0.99
"""Smallest share of a trial's due requests that must have a reply within the trial's window. With a smaller share the
trial fails, since the server was too slow."""

LATE = (
    "sent late: try more --clients, separate --cpus or a quieter machine; "
    "if the server accepted no more calls, more --connections-per-client"
)
"""Message, with advice, on requests that were sent late."""

UNKEPT_WHY = "allow more with --p99-ms, lengthen --duration-s against single pauses, or use a quieter machine"
"""Advice if a limit was not kept."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; gives its exit code."""
    options = parser(PROGRAM).parse_args(arguments)
    try:
        check(options)
        if options.find_rate:
            _check_search(options)
        elif options.p99_ms is not None:
            raise UsageError("--p99-ms", options.p99_ms, "with --find-rate, or --fail-if 'p99>20ms' without")
        make_room(max(options.clients))
        own = request_types(options)
        plans = [plan(options, clients, own) for clients in options.clients]
        lean.check(plans[0])
    except UsageError as error:
        refuse(PROGRAM, error)
    except Fault as fault:  # a fault during the question to the server about the method of --call
        print(f"{PROGRAM}: {_in_words(fault, options)}", file=sys.stderr)
        return FAULT_EXIT
    session = _Session(options)
    with session.interrupts.listened_to():
        try:
            if options.cluster is None:
                _knock(plans[0])
            code = _search(session, plans[0]) if options.find_rate else _measure(session, plans)
        except KeyboardInterrupt:
            print(f"{PROGRAM}: interrupted", file=sys.stderr)
            code = INTERRUPTED_EXIT
        except Fault as fault:
            print(f"{PROGRAM}: {_in_words(fault, options)}", file=sys.stderr)
            code = FAULT_EXIT
        except UsageError as error:  # an error of the hosts
            print(f"{PROGRAM}: {error}", file=sys.stderr)
            code = USAGE_EXIT
        except StockServiceError as error:
            print(f"{PROGRAM}: refused: {error}", file=sys.stderr)
            code = REFUSED_EXIT
        session.interrupts.over = True
        faults = _write(options, session.runs, streams=False)
        sys.stdout.flush()
    faults += _write(options, session.runs, streams=True)  # a stream may block, so that Ctrl-C ends the program again
    for line in faults:
        print(f"{PROGRAM}: {line}", file=sys.stderr)
    return USAGE_EXIT if faults else code


def _in_words(fault: Fault, options: argparse.Namespace) -> str:
    """Text of a fault in one line. A fault of a stock server has advice at its end."""
    return explained(fault, options.transport) if options.call is None else str(fault)


class _Interrupts:
    """Handler of Ctrl-C and SIGTERM. The first signal raises KeyboardInterrupt. The exception comes at once, or at the
    end of a ``held`` block. Later signals do nothing."""

    def __init__(self) -> None:
        self.over = False
        """True if the run has ended, so that an interrupt has no effect."""
        self._held = self._came = False

    @contextmanager
    def listened_to(self) -> Iterator[None]:
        """Context in which the handler receives both signals. When the context ends, the earlier handlers are set
        again. A signal that was ignored before the context stays ignored."""
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
        """Context in which no signal raises an exception. After a signal, KeyboardInterrupt comes at the end of the
        context. So no result is lost if a signal comes between a run and the run's summary."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.look()

    def look(self) -> None:
        """Raises KeyboardInterrupt if a signal has come. Does nothing if ``over`` is true, as after the first
        KeyboardInterrupt."""
        if self._came and not self.over:
            self.over = True
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self._came = True
        if not self._held:
            self.look()


class _Session:
    """The runs that one command line asks for, and their results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.interrupts = _Interrupts()
        self.runs: list[Measured] = []
        self.history: History | None = None
        """History of the last run; None without ``--check``."""

    def run(self, asked: LoadPlan, floor_said: Floor | None) -> Measured:
        """Runs one plan, shows the progress, and keeps the result. Ctrl-C ends the run early. The caller must call this
        method in a ``held`` block of the interrupts.

        Blocks for the duration of the run. Raises a Fault if no request was answered.
        """
        started_at = datetime.now(UTC)
        beginning = None if asked.check is None else checking.begin(asked)
        with live(Console(stderr=True), asked) as watch:
            result, hosts = self._measured(asked, watch)
        self.runs.append(Measured(asked, result, floor_said, started_at, hosts))
        if result.unheard and not result.interrupted:
            first, (host, port) = len(self.runs) == 1, asked.address
            was = f"no server that speaks {asked.transport} answered" if first else "no server answers any more"
            raise Unavailable(f"{was} at {host}:{port}")
        if beginning is not None:
            self.history = checking.ended(asked, beginning, result)
        return self.runs[-1]

    def _measured(self, asked: LoadPlan, watch: Watch) -> tuple[LoadResult, tuple[HostResult, ...]]:
        """Result of the whole run. For a run on several hosts, also the result of each host."""
        if self.options.cluster is None:
            return fleet.run(asked, watch), ()
        from clients.load.hosts import cluster  # needs Dask

        def watched(progress: Progress) -> None:
            watch(progress)
            self.interrupts.look()

        return cluster.run(asked, shown_address(self.options.cluster), watched)


def _knock(asked: LoadPlan) -> None:
    """Makes one connection before the measurement, and closes the connection. Raises Unavailable if no server listens.

    Blocks for ``PROBE_S`` at most for each address of the server's name. A slow accept is not an error.
    """
    host, port = asked.address
    try:
        socket.create_connection(asked.address, PROBE_S).close()
    except (ConnectionRefusedError, socket.gaierror) as error:
        raise Unavailable(f"no connection to {host}:{port}: {error.strerror}") from error
    except OSError:
        pass  # the server is slow or full now; the clients report a lasting fault


def _measure(session: _Session, plans: Sequence[LoadPlan]) -> int:
    """Makes the run of each plan, one after the other. Returns the exit code."""
    code, options = 0, session.options
    floor_said = None if options.no_floor or options.cluster else _floor(plans[0])
    for each in plans:
        with session.interrupts.held():
            run = session.run(each, floor_said)
            show(run.plan, run.result, run.floor, Console())
            if run.hosts:
                show_hosts(run.hosts, Console())
            for line in unkept(options.fail_if or (), run.result):
                print(f"{PROGRAM}: {line}", file=sys.stderr)
                code = BROKEN_EXIT
            if session.history is not None and not _checked(session.history, options.history):
                code = BROKEN_EXIT
            code = code or (ERROR_EXIT if run.result.errors else 0)
            _write(options, session.runs, streams=False)
        if run.result.interrupted:
            return INTERRUPTED_EXIT
    return code


def _checked(history: History, path: Path | None) -> bool:
    """Prints the verdict on a history, and writes the history to ``path`` unless ``path`` is None. True for a
    linearizable history without an error of writing."""
    found = judged(history)
    show_verdict(found, Console())
    if path is not None:
        try:
            path.write_bytes(to_json(history))
        except OSError as error:
            print(f"{PROGRAM}: --history: {str(path)!r} cannot be written: {error.strerror}", file=sys.stderr)
            return False
    return found.finding == "linearizable"


def unkept(limits: Sequence[Condition], result: LoadResult) -> Iterator[str]:
    """A line for every limit that a run did not keep. One more line if the run's load differed from the requested load:
    such a run does not show whether the limits are kept under the requested load."""
    for line in broken(limits, result):
        yield f"--fail-if {line}"
    if limits and result.off_schedule is not None:
        yield f"--fail-if: it is unknown whether the limits are kept; {off_schedule(result.off_schedule)}"


def _search(session: _Session, base: LoadPlan) -> int:
    """Searches for the highest rate at which the limits are kept. The rate of the trials doubles until a trial fails,
    or is halved until a trial succeeds. Further trials have rates between a kept and a failed rate."""
    options = session.options
    limits = _limits(options)
    first_hz = first_rate_hz(limits, base.duration_s)
    least_hz = max(SEARCH_FROM_HZ, first_hz / 2**HALVINGS_MAX)

    def trial(rate_hz: float) -> Trial:
        with session.interrupts.held():
            duration_s = max(base.duration_s, ENOUGH * replies_needed(limits) / rate_hz)
            run = session.run(replace(base, rate_hz=rate_hz, duration_s=duration_s), None)
            tried = _judged(rate_hz, run, limits)
            print(f"{rate_hz:10,.0f}/s  {tried.said}", file=sys.stderr)
        if run.result.interrupted:
            raise KeyboardInterrupt
        return tried

    said = (
        f"first rate {first_hz:,.0f}/s, at which {base.duration_s:g} s have the {replies_needed(limits):,} replies "
        f"that a trial needs; no rate under {least_hz:,.0f}/s is tried, and at most {TRIALS_MAX} trials are made"
    )
    print(said, file=sys.stderr)
    found = find_rate(trial, least_hz, first_hz, SEARCH_TO_HZ)
    print(_conclusion(found, options.p99_ms))
    return BROKEN_EXIT if found.rate_hz is None else 0


def first_rate_hz(limits: Sequence[Condition], duration_s: float) -> float:
    """Rate of the first trial: the lowest rate at which a trial of ``duration_s`` seconds has enough replies to judge
    the limits."""
    return max(SEARCH_FROM_HZ, ENOUGH * replies_needed(limits) / duration_s)


def _judged(rate_hz: float, run: Measured, limits: Sequence[Condition]) -> Trial:
    """The trial of a rate, judged by the result of the run."""
    every, late = run.result.requests[ALL], run.result.late_us
    faults = list(broken(limits, run.result))
    late_us = (late.p99_us or 0.0) if late else 0.0
    late_sends = late_us > max(LATE_US, LATE_SHARE * (every.p50_us or 0.0))
    due = every.count + sum(every.errors.values())
    if run.result.completed < KEPT_UP * due:
        faults.append(f"{run.result.completed:,} replies in time, of {due:,} due")
    kept = not faults and not late_sends
    generator = ", sent late" if late_sends else ", sent off its schedule" if run.result.off_schedule else ""
    said = f"p99 {span(told(every.p99_us, every.count, 0.01))}, {'; '.join(faults) or 'kept'}{generator}"
    return Trial(rate_hz, kept, said, bool(generator))


def _conclusion(found: Found, p99_ms: float) -> str:
    """Result of a search, in one line. If the client was the limit, the line says so."""
    limit, rate_hz = f"a p99 of at most {p99_ms:g} ms", found.rate_hz
    if rate_hz is None:
        rates_hz = [tried.rate_hz for tried in found.trials]
        tried = f"in {len(rates_hz)} trials, from {min(rates_hz):,.0f}/s to {max(rates_hz):,.0f}/s"
        if found.late_sends:
            return f"limited by the client: no rate was shown to have {limit} {tried}; requests were {LATE}"
        return f"no rate was shown to have {limit} {tried}; {UNKEPT_WHY}"
    if found.late_sends:
        said = f"at least {rate_hz:.0f}/s, limited by the client, with {limit}; at higher rates requests were {LATE}"
    elif rate_hz >= SEARCH_TO_HZ:
        said = f"at least {rate_hz:.0f}/s, the highest rate that is tried, with {limit}"
    else:
        said = f"highest rate with {limit}: {rate_hz:.0f}/s, within 5 %"
    if any(tried.late_sends for tried in found.trials if tried.rate_hz == rate_hz):
        said += "; at this rate requests were sent off schedule, so that this is the rate of a different load"
    return said


def _floor(asked: LoadPlan) -> Floor | None:
    """The floor: the times that the same clients measure on a server that does nothing. If this measurement fails,
    prints a message and returns None."""
    try:
        return floor(asked.transport, asked.client, asked.cpus)
    except Fault as fault:
        print(f"{PROGRAM}: the client's floor was not measured: {fault}", file=sys.stderr)
        return None


def _check_search(options: argparse.Namespace) -> None:
    """Raises UsageError if an option of a search is missing, or two options exclude each other."""
    if options.p99_ms is None:
        raise UsageError("--find-rate", "no --p99-ms", "with --p99-ms MS, the limit to keep")
    if options.rate_hz is not None:
        raise UsageError("--find-rate", f"--rate-hz {options.rate_hz:g}", "no --rate-hz: the search chooses rates")
    if len(options.clients) > 1:
        raise UsageError("--find-rate", "several numbers of clients", "one number: --clients N")
    first_hz = first_rate_hz(_limits(options), options.duration_s)
    if first_hz > SEARCH_TO_HZ:
        least_s = options.duration_s * first_hz / SEARCH_TO_HZ
        allowed = f"{least_s:.3g} or more: a trial at {SEARCH_TO_HZ:g}/s must have enough replies for every percentile"
        raise UsageError("--duration-s", options.duration_s, allowed)


def _limits(options: argparse.Namespace) -> list[Condition]:
    """Limits that every trial of a search must keep."""
    p99_ms = f"{options.p99_ms:.6f}".rstrip("0").rstrip(".")
    return [parse(f"p99 > {p99_ms} ms"), parse("errors > 0.1 %"), *(options.fail_if or ())]


_TEXTS = (("json", output.json_text), ("csv", output.csv_text), ("hlog", output.hlog_text))


def _write(options: argparse.Namespace, runs: Sequence[Measured], streams: bool) -> list[str]:
    """Writes the results to the files that the options name; if ``streams`` is true, to the named streams instead.
    Writes nothing without a measurement. Returns a line for each error."""
    faults = []
    for option, text in _TEXTS:
        path: Path | None = getattr(options, option)
        if path is None or not runs or output.is_stream(path) != streams:
            continue
        sys.stdout.flush()  # the stream may be standard output
        try:
            output.write(path, text(runs))
        except OSError as error:
            faults.append(f"--{option}: got {str(path)!r}, which cannot be written: {error.strerror}")
    return faults
