"""A load run on one screen: what was sent, how it was answered and how fast, and what to make of it.

Plain text, made by a pure function, so that a log and a terminal read the same. A figure that the data does not carry
is a dash. Warnings come last and begin with ``!``.
"""

from collections.abc import Iterator, Mapping

from clients.load.recorder import Distribution
from clients.load.result import ALL, LoadResult, RequestResult
from stock_service.model import Status

P999_COUNT_MIN = 10_000
"""Answers that a 99.9th percentile needs to have ten of them above it."""

LITTLE_TOLERANCE = 0.02
"""How far the closed loop's check may be from 1."""

_COLUMNS = ("request", "count", "errors", "per s", "mean", "p50", "p90", "p99", "p99.9", "max")


def summary(result: LoadResult) -> str:
    """The screen, without a newline at its end."""
    plan = result.plan
    what = f"{plan.clients} client{'s' if plan.clients > 1 else ''}"
    if plan.connections_per_client > 1:
        what += f" × {plan.connections_per_client} connections"
    head = f"{plan.transport} {plan.address[0]}:{plan.address[1]}, {what}, {plan.connection}, {result.duration_s:.2f} s"
    lines = [head, "", *_table(result), "", *_facts(result)]
    warnings = list(_warnings(result))
    if warnings:
        lines += ["", *(f"! {warning}" for warning in warnings)]
    return "\n".join(lines)


def _table(result: LoadResult) -> Iterator[str]:
    """Times in microseconds, a line for each request type and, where there are several, one for all."""
    names = [name for name in result.requests if name != ALL]
    if len(names) > 1:
        names.append(ALL)
    cells = [list(_COLUMNS), *(_cells(name, result.requests[name]) for name in names)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    for row in cells:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([row[0].ljust(widths[0]), *rest]) if first else ""
    yield "times in µs"


def _cells(name: str, request: RequestResult) -> list[str]:
    p999 = request.p999_us if request.count >= P999_COUNT_MIN else None
    times = (request.mean_us, request.p50_us, request.p90_us, request.p99_us, p999, request.max_us)
    errors = sum(request.errors.values())
    return [name, f"{request.count:,}", f"{errors:,}", f"{request.throughput_hz:,.0f}", *map(_us, times)]


def _facts(result: LoadResult) -> Iterator[str]:
    every = result.requests[ALL]
    yield f"outcomes       {_counts(every.outcomes)}"
    yield f"errors         {_counts(result.errors)} (of the whole run)"
    yield f"connecting     {_times(result.connect_us)}; first call {_times(result.first_call_us)}"
    if result.n_over_x_us is not None and result.little_ratio is not None:
        check = f"throughput × time ÷ N = {result.little_ratio:.3f}, should be 1"
        yield f"N/X            {_us(result.n_over_x_us)} µs; {check}"
    busiest, mean = result.client_cpu_share, result.client_cpu_share_mean
    yield f"client CPU     {busiest:.0%} of a core in the busiest process, {mean:.0%} on average"
    yield f"starved        {result.starved_clients} of {result.started_clients} clients got no reply in the window"


def _warnings(result: LoadResult) -> Iterator[str]:
    every = result.requests[ALL]
    if result.interrupted:
        yield "interrupted: this is what was measured until then"
    if result.load_limited:
        yield "the client took over 80 % of its core: these latencies are those of client and server together"
    if every.outcomes.get(Status.UNKNOWN_STOCK.name):
        yield "the server does not have all of these stocks: name those it has with --stocks"
    if every.out_of_range:
        yield f"{every.out_of_range:,} answers took under 1 ns or over 60 s: counted, but in no time here"
    if result.plan.connection == "per-request":
        yield "one connection per request: each time includes connecting"
    if not result.errors and result.little_ratio and abs(result.little_ratio - 1) > LITTLE_TOLERANCE:
        yield "throughput × time ÷ N is off by over 2 %: some clients began late or were starved; warm up for longer"


def _times(times: Distribution | None) -> str:
    return "none" if times is None else f"p50 {_us(times.p50_us)} µs, max {_us(times.max_us)} µs"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def _us(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
