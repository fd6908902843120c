"""The result of one load run: what all clients saw, put together.

Histograms are merged and counts added; nothing is averaged over clients. ``as_json`` is the whole of it, histograms
included in HdrHistogram's own compressed form, so that a result can be kept and merged with others later.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from clients.load.client_process import ClientReport
from clients.load.plan import LoadPlan
from clients.load.recorder import Distribution, Recorded, Times, merged
from clients.load.records import Window

ALL = "all"
"""The key of all request types together."""

JSON_FORMAT = 1
"""Raised when the meaning of a field changes."""

CLIENT_CPU_LIMIT = 0.8
"""The share of a core over which the load side takes part in what it measures."""

CLIENT_LOST = "client_lost"
"""The error kind of a client process that ended without a report."""


@dataclass(frozen=True, slots=True)
class RequestResult:
    """One request type: the requests sent in the window. Times are of those that were answered; None without any."""

    count: int
    """Requests answered, whatever the outcome."""
    outcomes: Mapping[str, int]
    """Answered requests by ``Status`` name."""
    errors: Mapping[str, int]
    """Requests that got no valid answer, by kind; they are in no time here."""
    throughput_hz: float
    """Answers a second."""
    latency: HdrHistogram
    """Response times in nanoseconds."""
    out_of_range: int
    """Answered requests that took under 1 ns or over 60 s: in ``count``, but in no time here."""
    mean_us: float | None
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None
    p999_us: float | None
    max_us: float | None
    min_us: float | None
    stddev_us: float | None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One load run. ``requests`` has every type of the mix, and ``all``."""

    plan: LoadPlan
    started_clients: int
    """Processes that reached the barrier."""
    starved_clients: int
    """Those of them that got no reply in the window; they are in no latency."""
    sending_connections: int
    """Connections that got a reply in the window."""
    starved_connections: int
    """The others."""
    duration_s: float
    """The measured window; shorter than planned where it was interrupted."""
    requests: Mapping[str, RequestResult]
    connect_us: Distribution | None
    """Making a connection: kept-alive ones all, others in the window."""
    first_call_us: Distribution | None
    """The first request on a client's connection; it is in no latency."""
    client_cpu_s: float
    """Processor time of all client processes in the window."""
    client_cpu_share: float
    """The busiest client process's share of a core."""
    client_cpu_share_mean: float
    throughput_hz: float
    """Answers a second, of all types."""
    think_us: float | None
    """From a reply to the next request of the same connection, mean."""
    little_ratio: float | None
    """Throughput × (response time + think time) ÷ sending connections: 1 where clock and counting are right and every
    connection sent all the time."""
    n_over_x_us: float | None
    """Sending connections ÷ throughput: what a closed loop's mean latency must be, but for think time."""
    errors: Mapping[str, int]
    """By kind, of the whole run: those of connecting and warm-up included."""
    interrupted: bool

    @property
    def load_limited(self) -> bool:
        """Whether the client was so busy that the latency is that of client and server together."""
        return self.client_cpu_share > CLIENT_CPU_LIMIT


def combine(
    plan: LoadPlan, window: Window, reports: Sequence[ClientReport], lost: int = 0, interrupted: bool = False
) -> LoadResult:
    """The result of a run from what its processes reported; ``lost`` ended without a report."""
    duration_s = max(0, window.end_ns - window.start_ns) / 1e9
    recorded = [report.recorded for report in reports if report.recorded is not None]
    requests = {name: _request(name, recorded, duration_s) for name in plan.mix}
    requests[ALL] = _all(recorded, duration_s)
    spans = [span for each in recorded for span in each.spans]
    sending = [span for span in spans if span.replies]
    served = sum(any(span.replies for span in each.spans) for each in recorded)
    started = len(reports) + lost
    errors = merged(
        [
            *(each.errors for each in recorded),
            *({report.fault.code.name.lower(): 1} for report in reports if report.fault is not None),
            *([{CLIENT_LOST: lost}] if lost else []),
        ]
    )
    every = requests[ALL]
    response_s = (every.mean_us or 0.0) / 1e6
    think_s = None
    if every.count:
        spanned_s = sum(span.last_done_ns - span.first_sent_ns for span in sending) / 1e9
        think_s = max(0.0, spanned_s / every.count - response_s)
    n_over_x_s = len(sending) / every.throughput_hz if every.throughput_hz else None
    cpu_s = [report.cpu_s for report in reports]
    return LoadResult(
        plan=plan,
        started_clients=started,
        starved_clients=started - served,
        sending_connections=len(sending),
        starved_connections=started * plan.connections_per_client - len(sending),
        duration_s=duration_s,
        requests=requests,
        connect_us=_distribution([each.connects for each in recorded]),
        first_call_us=_distribution([each.first_calls for each in recorded]),
        client_cpu_s=sum(cpu_s),
        client_cpu_share=max(cpu_s, default=0.0) / duration_s if duration_s else 0.0,
        client_cpu_share_mean=sum(cpu_s) / len(cpu_s) / duration_s if cpu_s and duration_s else 0.0,
        throughput_hz=every.throughput_hz,
        think_us=None if think_s is None else think_s * 1e6,
        little_ratio=None if think_s is None or not n_over_x_s else (response_s + think_s) / n_over_x_s,
        n_over_x_us=None if n_over_x_s is None else n_over_x_s * 1e6,
        errors=errors,
        interrupted=interrupted,
    )


def as_json(result: LoadResult) -> dict[str, object]:
    """The result in values that ``json`` writes. Times in the units of their names; histograms in nanoseconds."""
    plan = {
        field.name: getattr(result.plan, field.name)
        for field in dataclasses.fields(result.plan)
        if field.name != "request_types"
    }
    document: dict[str, object] = {"format": JSON_FORMAT, "plan": plan | {"mix": dict(result.plan.mix)}}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        match field.name:
            case "plan":
                continue
            case "requests":
                document[field.name] = {name: _request_json(request) for name, request in value.items()}
            case "connect_us" | "first_call_us":
                document[field.name] = None if value is None else dataclasses.asdict(value)
            case _:
                document[field.name] = value
    return document | {"load_limited": result.load_limited}


def _request_json(request: RequestResult) -> dict[str, object]:
    values = {field.name: getattr(request, field.name) for field in dataclasses.fields(request)}
    return values | {"latency": str(request.latency.encode(), "ascii")}


def _request(name: str, recorded: Sequence[Recorded], duration_s: float) -> RequestResult:
    """One request type of all processes."""
    reports = [each.requests[name] for each in recorded]
    outcomes = merged(report.outcomes for report in reports)
    errors = merged(report.errors for report in reports)
    return _result(outcomes, errors, _merged_times([report.times for report in reports]), duration_s)


def _all(recorded: Sequence[Recorded], duration_s: float) -> RequestResult:
    """All request types of all processes."""
    reports = [report for each in recorded for report in each.requests.values()]
    outcomes = merged(report.outcomes for report in reports)
    errors = merged(report.errors for report in reports)
    return _result(outcomes, errors, _merged_times([report.times for report in reports]), duration_s)


def _result(outcomes: Mapping[str, int], errors: Mapping[str, int], times: Times, duration_s: float) -> RequestResult:
    count = sum(outcomes.values())
    said = times.distribution()
    return RequestResult(
        count=count,
        outcomes=outcomes,
        errors=errors,
        throughput_hz=count / duration_s if duration_s else 0.0,
        latency=times.histogram,
        out_of_range=said.out_of_range,
        mean_us=said.mean_us,
        p50_us=said.p50_us,
        p90_us=said.p90_us,
        p99_us=said.p99_us,
        p999_us=said.p999_us,
        max_us=said.max_us,
        min_us=said.min_us,
        stddev_us=said.stddev_us,
    )


def _merged_times(parts: Sequence[Times]) -> Times:
    total = Times()
    for part in parts:
        total.merge(part)
    return total


def _distribution(parts: Sequence[Times]) -> Distribution | None:
    total = _merged_times(parts)
    return total.distribution() if total.count else None
