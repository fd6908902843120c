"""Summary of a load run for people: a table and a few lines, within one screen of 80 columns.

Times up to 9999 µs are in µs, longer times in ms or s. A percentile is shown if at least ten requests took longer than
the percentile. If the run has too few requests for a percentile, the percentile is a dash. If no request was answered,
every time is a dash. Warnings about doubtful numbers stand below the table.
"""

import math
import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import Console
from rich.table import Table

from clients.connecting import NO_STOCK
from clients.load.history.verdict import Verdict
from clients.load.hosts.merging import HostResult
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import ALL, CLIENT_CPU_LIMIT, LoadResult, RequestResult
from clients.load.record.times import Distribution
from clients.load.run.floor import Floor
from stock_service.trading.model import Status

ADVICE = {
    Status.UNKNOWN_STOCK.name: f": {NO_STOCK}",
    Status.SUSPENDED.name: ": no more shares fit under the volume limits; restart the server, or give it a "
    "--catalog of higher limits",
}
"""Advice by the outcome's name, for a run in which all replies have the same outcome, but not OK."""

BEYOND_MIN = 10
"""A percentile is shown only if at least this number of requests took longer."""

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:µs|ms|s)\b)")

PERCENTILES = {"p50": ("p50_us", 0.5), "p90": ("p90_us", 0.1), "p99": ("p99_us", 0.01), "p99.9": ("p999_us", 0.001)}
"""Percentiles of response times. Each has the name of a field in ``RequestResult``, and the share of replies above the
percentile."""

_COLUMNS = ("request", "count", "errors", "per s", "mean", *PERCENTILES, "max")


def show(plan: LoadPlan, result: LoadResult, floor: Floor | None, console: Console) -> None:
    """Prints a run's summary. ``floor``: the client's times on a server that does nothing."""
    _print(console, title(plan, result), "bold")
    console.print(_table(result))
    for line in notes(plan, result, floor):
        _print(console, line)
    for line in warnings(result):
        _print(console, line, "bold red")
    console.print()


def show_hosts(hosts: Sequence[HostResult], console: Console) -> None:
    """Prints each host's numbers and warnings, and the time between the starts of the hosts."""
    table = _columns("host", "clients", *_COLUMNS[1:])
    for host in hosts:
        every = host.result.requests[ALL]
        clients = str(host.result.started_clients)
        table.add_row(host.name, clients, *_cells(every, host.result.answered_hz(ALL)))
    console.print(table)
    within_ms = max(host.began_within_s for host in hosts) * 1e3
    _print(console, f"the hosts began within {within_ms:.1f} ms of each other")
    for host in hosts:
        for line in warnings(host.result):
            _print(console, f"host {host.name}: {line}", "bold red")
    console.print()


def _print(console: Console, line: str, style: str | None = None) -> None:
    """Prints a line. A long line is wrapped, and its later lines are indented. A number and its unit stay together."""
    kept = _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", line)
    for part in wrap(kept, console.width, subsequent_indent="  ", break_on_hyphens=False):
        console.print(part.replace("\N{NO-BREAK SPACE}", " "), style=style, markup=False, highlight=False)


def title(plan: LoadPlan, result: LoadResult) -> str:
    """Title of a run's summary, in one line."""
    host, port = plan.address
    clients = "1 client" if plan.clients == 1 else f"{plan.clients} clients"
    each = f" × {plan.connections_per_client} connections" if plan.connections_per_client > 1 else ""
    loop = "closed loop" if plan.rate_hz is None else f"{plan.rate_hz:g}/s {plan.arrivals}"
    return (
        f"{clients}{each} · {plan.client} · {loop} · {plan.transport} {host}:{port} · {plan.connection} · "
        f"{result.duration_s:.2f} s"
    )


def notes(plan: LoadPlan, result: LoadResult, floor: Floor | None) -> Iterator[str]:
    """Notes that stand below the table of every summary."""
    every = result.requests[ALL]
    count = every.count
    fewest = min((each.count for each in result.requests.values() if each.count), default=0)
    needed = {name: replies_for(beyond) for name, (_, beyond) in PERCENTILES.items()}
    lacking = [f"{name} {replies:,}" for name, replies in needed.items() if fewest < replies]
    if fewest and lacking:
        yield f"–: too few replies for a percentile; needed: {', '.join(lacking)}"
    if result.n_over_x_us is not None and result.think_us is not None and result.little_ratio is not None:
        yield (
            f"N/X {span(result.n_over_x_us)} (N {result.sending_connections}); mean response + think "
            f"{span((every.mean_us or 0.0) + result.think_us)}: ratio {result.little_ratio:.3f}"
        )
    if result.late_us is not None:
        yield (
            "a time begins when a request is due, a service time at its send: "
            f"p50 {span(told(every.service_us_p50, count, 0.5))}, p99 {span(told(every.service_us_p99, count, 0.01))}"
        )
        late = result.late_us
        yield (
            f"sent late: p50 {span(told(late.p50_us, late.count, 0.5))}, "
            f"p99 {span(told(late.p99_us, late.count, 0.01))}, max {span(late.max_us)}; "
            "per s: replies within the window"
        )
    waiting = ", busy waiting included" if result.loop == "open" else ""
    yield (
        f"client CPU: {result.client_cpu_share:.0%} of a core (busiest), {result.client_cpu_share_mean:.0%} (mean), "
        f"{result.client_cpu_s:.2f} s in all{waiting}"
    )
    if floor is not None:
        low, high = span(floor.floor_us_p50), span(floor.floor_us_p99)
        yield f"client's floor (times on a server that does nothing): p50 {low}, p99 {high}"
    yield f"connect: {_said(result.connect_us)} · first call: {_said(result.first_call_us)}"
    if plan.connection == "per-request":
        yield "response times include connecting: one connection per request"
    for name in plan.mix:
        outcomes = result.requests[name].outcomes
        if outcomes.keys() - {Status.OK.name}:
            yield f"outcomes of {name}: " + ", ".join(f"{outcome} {count:,}" for outcome, count in outcomes.items())


def show_verdict(found: Verdict, console: Console) -> None:
    """Prints the finding of ``--check``."""
    _print(console, verdict(found), None if found.finding == "linearizable" else "bold red")
    console.print()


def verdict(found: Verdict) -> str:
    """Line on the finding of ``--check``, with advice if too few requests overlapped."""
    said = f"checked: {found.requests:,} requests, {found.contended:.0%} of them overlapped a conflicting request"
    if found.unknown:
        said += f", {found.unknown:,} of unknown outcome"
    more = f" ({len(found.faults) - 1:,} more)" if len(found.faults) > 1 else ""
    why = f": {found.faults[0]}{more}" if found.faults else ""
    tried = "; try more --clients, fewer --stocks or more trades in --mix" if found.finding == "vacuous" else ""
    return f"{said}: {found.finding}{why}{tried}"


def warnings(result: LoadResult) -> Iterator[str]:
    """Warnings: reasons to doubt the numbers of a run."""
    if result.interrupted:
        yield f"interrupted: {result.unanswered:,} requests were under way or due; no latency includes them"
    if result.errors:
        counts = ", ".join(f"{kind} {count:,}" for kind, count in sorted(result.errors.items()))
        yield f"ERRORS of the whole run, connecting included (the table has only errors of the window): {counts}"
    yield from _not_ok(result)
    if result.starved_clients:
        yield (
            f"starved: {result.starved_clients} of {result.started_clients} clients got no reply; "
            "no latency includes them"
        )
    elif result.starved_connections:
        total = result.starved_connections + result.sending_connections
        yield f"starved: {result.starved_connections} of {total} connections got no reply; no latency includes them"
    if result.load_limited:
        yield f"{_busy(result)}: the latency includes the client's own time"
    if result.began != result.recorded:
        yield f"{abs(result.began - result.recorded):,} requests are not accounted for: do not trust this run"
    if result.off_schedule is not None:
        yield off_schedule(result.off_schedule)
    if result.requests[ALL].out_of_range:
        yield f"{result.requests[ALL].out_of_range:,} replies took over 60 s; no latency includes them"


def off_schedule(fault: str) -> str:
    """Warning on requests that were not sent at their times, with the cause and advice. ``fault`` is
    ``LoadResult.off_schedule``."""
    return (
        f"not the requested load: the sends did not follow the schedule ({fault}); lower --rate-hz, give "
        "client (--cpus) and server (taskset) a core each; if the server is full, more --connections-per-client"
    )


def _not_ok(result: LoadResult) -> Iterator[str]:
    """A line for each request type that got no OK reply, or a single line if no type got an OK reply. One more line if
    the server does not have some of the stocks."""
    asked = {name: request.outcomes for name, request in result.requests.items() if request.count}
    refused = [name for name, outcomes in asked.items() if not outcomes.get(Status.OK.name)]
    for name in [ALL] if ALL in refused else refused:
        count, to = result.requests[name].count, "" if name == ALL else f" to {name}"
        kinds = [outcome for outcome, times in asked[name].items() if times]
        if len(kinds) > 1:
            yield f"none of the {count:,} replies{to} was OK"
        else:
            said = f"all {count:,} replies{to} were" if count > 1 else f"the only reply{to} was"
            yield f"{said} {kinds[0]}{ADVICE.get(kinds[0], '')}"
    some = (outcomes for name, outcomes in asked.items() if name not in (*refused, ALL))
    unknown = sum(outcomes.get(Status.UNKNOWN_STOCK.name, 0) for outcomes in some)
    if unknown:
        yield f"UNKNOWN_STOCK {unknown:,} times: {NO_STOCK}"


def _busy(result: LoadResult) -> str:
    """Text on busy clients: one client that keeps its core busy, or all clients together."""
    if result.client_cpu_share > CLIENT_CPU_LIMIT:
        return f"a client used over {CLIENT_CPU_LIMIT:.0%} of a core"
    cores = "core" if result.cores == 1 else f"{result.cores} cores"
    return f"the clients used over {CLIENT_CPU_LIMIT:.0%} of their {cores}"


def told(percentile_us: float | None, count: int, beyond: float) -> float | None:
    """Returns ``percentile_us``, or None if fewer than ten of ``count`` requests lie above the percentile. ``beyond``
    is the share of requests above the percentile."""
    return percentile_us if count >= replies_for(beyond) else None


def replies_for(beyond: float) -> int:
    """Smallest number of replies with which a percentile is shown: ten replies lie above the percentile. ``beyond`` is
    the share of replies above the percentile."""
    return math.ceil(round(BEYOND_MIN / beyond, 6))


def span(time_us: float | None) -> str:
    """Text of a time: ``172 µs``, ``12.3 ms``, ``472 ms``, ``60.0 s``; a dash for None."""
    if time_us is None:
        return "–"
    if time_us < 9_999.5:
        return f"{time_us:.0f} µs"
    if time_us < 99_950:
        return f"{time_us / 1e3:.1f} ms"
    return f"{time_us / 1e3:.0f} ms" if time_us < 9_999_500 else f"{time_us / 1e6:.1f} s"


def _table(result: LoadResult) -> Table:
    table = _columns(*_COLUMNS)
    names = [*result.parts, ALL] if len(result.parts) > 1 else [*result.parts]
    for name in names:
        table.add_row(name, *_cells(result.requests[name], result.answered_hz(name)))
    return table


def _columns(first: str, *others: str) -> Table:
    """Table with its columns and without rows. ``first``: head of the first column."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(first, justify="left", no_wrap=True)
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _cells(request: RequestResult, answered_hz: float) -> Iterator[str]:
    """Cells of a row. If no request of the row was answered, the row has no times: times of failed requests tell
    nothing about the server."""
    yield f"{request.count}"
    yield f"{sum(request.errors.values())}"
    yield f"{answered_hz:.0f}"
    yield _short(request.mean_us if request.count else None)
    for field, beyond in PERCENTILES.values():
        yield _short(told(getattr(request, field), request.count, beyond))
    yield _short(request.max_us if request.count else None)


def _short(time_us: float | None) -> str:
    return span(time_us).replace(" ", "")


def _said(times: Distribution | None) -> str:
    return "none" if times is None else f"{times.count:,}, mean {span(times.mean_us)}, max {span(times.max_us)}"
