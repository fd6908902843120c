"""The result of one load run: the sum of all clients' measurements.

Histograms are merged and counts are added. No value is averaged over clients. A ``LoadResult`` has counts and times,
and computes every other number of the run from these counts and times. So a program that reads the counts and times
from JSON can compute every number again, and can merge results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import msgspec
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from clients.load.history.operations import Kept
from clients.load.plan.load_plan import LoadPlan
from clients.load.record.dependence import ArrivalCheck
from clients.load.record.recorder import ClientReport, RawRecords, RequestReport, Span, joined, merged
from clients.load.record.records import Window
from clients.load.record.times import Distribution, Times, total

ALL = "all"
"""Name in ``requests`` for all request types together."""

CLIENT_CPU_LIMIT = 0.8
"""Largest processor time of a client process, as a share of a core. If a client exceeds this limit, its own work makes
the measured times visibly longer.
"""

CLIENT_LOST = "client_lost"
"""Kind of error for a client process that ended without a report."""


@dataclass(frozen=True, slots=True)
class RequestResult:
    """Numbers of one request type, from the requests that were due in the window. The times include the times of failed
    requests, which end at the error. If there are no requests, every time is None.

    A response time begins when the request was due. A service time begins when the request was sent. In a closed loop
    the two times are equal.
    """

    count: int
    """Number of requests that were answered, with any outcome."""
    outcomes: Mapping[str, int]
    """Number of answered requests by the name of their ``Status``."""
    errors: Mapping[str, int]
    """Number of requests without a valid reply, by kind of error. The times below include these requests, whose times
    end at the error.
    """
    throughput_hz: float
    """Answered requests that were due in the window, divided by the window's seconds. A reply after the window counts,
    too. ``LoadResult.answered_hz`` counts replies in the window."""
    response: HdrHistogram
    """Response times in nanoseconds. ``service`` has the service times in nanoseconds."""
    service: HdrHistogram
    out_of_range: int
    """Number of requests that took under 1 ns or over 60 s. All times leave these requests out."""
    mean_us: float | None
    """Mean response time in µs. The next fields, up to ``stddev_us``, are also statistics of the response time."""
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None
    p999_us: float | None
    max_us: float | None
    min_us: float | None
    stddev_us: float | None
    service_us_mean: float | None
    service_us_p50: float | None
    service_us_p99: float | None


@dataclass(frozen=True)
class LoadResult:
    """The result of one load run. Values are for the measured window, if their description names no other period."""

    rate_hz: float | None
    """Declared rate, in requests a second; None in a closed loop."""
    connections_per_client: int
    duration_s: float
    """Duration of the measured window in seconds. An interrupted run has a shorter window than planned."""
    parts: Mapping[str, RequestReport]
    """Report of every request type of the mix. ``requests`` has the numbers computed from the reports."""
    connects: Times
    """Times of making a connection. If connections are kept, all connections of the run count. With a connection per
    request, only connections made in the window count."""
    first_calls: Times
    """Times of the first request on each connection. No latency includes these requests."""
    late: Times
    """In an open loop: the lateness of each request, from the due moment to the send."""
    think: Times
    """In a closed loop: the times from each reply to the next request on the reply's connection."""
    began: int
    """Number of requests of the whole run, counted at the send."""
    recorded: int
    """Number of requests of the whole run, counted when the records are folded. If ``recorded`` is smaller than
    ``began``, requests were lost."""
    arrivals: tuple[ArrivalCheck, ...]
    """In an open loop: one check for each client process, in the order of the clients. A check compares the client's
    sends with the declared process. A client with too few sends has no check."""
    started_clients: int
    """Number of client processes that were started, including lost processes."""
    served_clients: int
    """Number of client processes with at least one connection that got a reply. ``sending_connections`` says which
    replies count.
    """
    sending_connections: int
    """Number of connections that got a reply. In a closed loop, only replies in the window count. In an open loop,
    replies in the whole run count, since some connections may have no request in the window."""
    client_cpu_each_s: tuple[float, ...]
    """Processor time of each client process. In an open loop the time includes busy waiting for the next due moment."""
    errors: Mapping[str, int]
    """Number of errors of the whole run, by kind. Errors of connecting and of the warm-up are included."""
    interrupted: bool
    cores: int | None
    """Number of cores that the client processes together may use; None for an unknown number."""
    unanswered: int
    """Number of requests that were under way when the run was interrupted, or that were due and not sent. No latency
    includes these requests. Their times would have been the longest.
    """
    raw: RawRecords | None = None
    """Raw times of every request, if the plan asked for raw times; left out of JSON."""
    kept: Kept | None = None
    """Operations of the whole run, if the plan asked for a history; left out of JSON."""

    @property
    def loop(self) -> Literal["closed", "open"]:
        """Kind of the loop: ``closed`` or ``open``."""
        return "closed" if self.rate_hz is None else "open"

    @cached_property
    def requests(self) -> Mapping[str, RequestResult]:
        """Result of every request type of the mix, and of ``all``."""
        results = {name: _result([report], self.duration_s) for name, report in self.parts.items()}
        return results | {ALL: _result(list(self.parts.values()), self.duration_s)}

    @property
    def starved_clients(self) -> int:
        """Number of client processes that got no reply. No latency includes these processes."""
        return self.started_clients - self.served_clients

    @property
    def starved_connections(self) -> int:
        """Number of connections that got no reply, including the connections of lost client processes."""
        return self.started_clients * self.connections_per_client - self.sending_connections

    @property
    def unheard(self) -> bool:
        """True if no connection got a reply, and every error was a lost or refused connection. Then no server answers,
        or the server speaks another transport. False for a server that is only slow or full.
        """
        replies = self.served_clients or self.first_calls.count
        return not replies and "unavailable" in self.errors and self.errors.keys() <= {"unavailable", "never_sent"}

    @property
    def completed(self) -> int:
        """Number of replies that came within the window, for requests due at any time."""
        return sum(part.completed for part in self.parts.values())

    @property
    def throughput_hz(self) -> float:
        """Replies a second, of all request types. In an open loop, only replies within the window count: a slow server
        may answer many requests after the window."""
        if self.loop == "open" and self.duration_s:
            return self.completed / self.duration_s
        return self.requests[ALL].throughput_hz

    def answered_hz(self, name: str) -> float:
        """Throughput of one request type or of ``all``. The load client prints this value, and ``--fail-if`` tests it.
        In an open loop, replies within the window count. In a closed loop, answered requests that were sent in the
        window count.
        """
        if name == ALL or self.loop == "closed" or not self.duration_s:
            return self.throughput_hz if name == ALL else self.requests[name].throughput_hz
        return self.parts[name].completed / self.duration_s

    @property
    def connect_us(self) -> Distribution | None:
        """Statistics of the times of making a connection."""
        return self.connects.distribution() if self.connects.count else None

    @property
    def first_call_us(self) -> Distribution | None:
        """Statistics of the times of first calls."""
        return self.first_calls.distribution() if self.first_calls.count else None

    @property
    def late_us(self) -> Distribution | None:
        """Statistics of the lateness of sends; None in a closed loop."""
        return self.late.distribution() if self.late.count else None

    @property
    def client_cpu_s(self) -> float:
        """Processor time of all client processes in the window, in seconds."""
        return sum(self.client_cpu_each_s)

    @property
    def client_cpu_share(self) -> float:
        """Largest share of a core that one client process used."""
        return max(self.client_cpu_each_s, default=0.0) / self.duration_s if self.duration_s else 0.0

    @property
    def client_cpu_share_mean(self) -> float:
        """Mean share of a core that a client process used."""
        count = len(self.client_cpu_each_s)
        return self.client_cpu_s / count / self.duration_s if count and self.duration_s else 0.0

    @property
    def client_cores_share(self) -> float:
        """Processor time of all client processes together, as a share of the time of all cores that the processes may
        use. 0 for an unknown number of cores."""
        return self.client_cpu_s / self.duration_s / self.cores if self.cores and self.duration_s else 0.0

    @property
    def think_us(self) -> float | None:
        """In a closed loop: the mean time from a reply to the connection's next request, in µs."""
        return self.think.sum_ns / self.think.count / 1000 if self.think.count else None

    @property
    def n_over_x_us(self) -> float | None:
        """In a closed loop: sending connections ÷ throughput, in µs. By Little's law this quotient must equal the mean
        latency plus the think time."""
        if self.loop == "open" or not self.throughput_hz:
            return None
        return self.sending_connections / self.throughput_hz * 1e6

    @property
    def little_ratio(self) -> float | None:
        """In a closed loop: throughput × (response + think time) ÷ sending connections. By Little's law the ratio is 1
        if clock and counts are right, and if every connection sent all the time."""
        n_over_x_us, response_us = self.n_over_x_us, self.requests[ALL].mean_us
        if n_over_x_us is None or response_us is None or self.think_us is None:
            return None
        return (response_us + self.think_us) / n_over_x_us

    @property
    def off_schedule(self) -> str | None:
        """In an open loop: difference between the sends and the declared process, in words. None if no difference was
        found.

        A due request that was never sent is a difference, too. A client with too few sends is not checked. A difference
        has two possible causes: the client was too slow, or the server had no capacity for more calls.
        """
        for check in self.arrivals:
            if check.faults:
                return check.faults[0]
        unsent = self.requests[ALL].errors.get("never_sent", 0)
        if not unsent:
            return None
        return f"{unsent:,} request{' was' if unsent == 1 else 's were'} due and never sent"

    @property
    def load_limited(self) -> bool:
        """True if clients of a closed loop were so busy that their own work makes the measured latency visibly longer.

        Either one client was busy, or all clients together used most of their cores' time. Always False in an open
        loop: its senders spin, so lateness, not processor time, shows busy clients.
        """
        return self.loop == "closed" and max(self.client_cpu_share, self.client_cores_share) > CLIENT_CPU_LIMIT


def combine(
    plan: LoadPlan,
    window: Window,
    reports: Sequence[ClientReport],
    lost: int = 0,
    interrupted: bool = False,
    cores: int | None = None,
) -> LoadResult:
    """Makes the result of a run from the reports of the client processes, in any order. ``lost`` is the number of
    processes that ended without a report.
    """
    reports = sorted(reports, key=lambda report: report.client)
    recorded = [report.recorded for report in reports if report.recorded is not None]
    spans = [span for each in recorded for span in each.spans]
    errors = merged(
        [
            *(each.errors for each in recorded),
            *({report.fault.code.name.lower(): 1} for report in reports if report.fault is not None),
            *([{CLIENT_LOST: lost}] if lost else []),
        ]
    )
    served = [[_served(span, plan.loop) for span in each.spans] for each in recorded]
    return LoadResult(
        rate_hz=plan.rate_hz,
        connections_per_client=plan.connections_per_client,
        duration_s=max(0, window.end_ns - window.start_ns) / 1e9,
        parts={name: merged_requests([each.requests[name] for each in recorded], plan.loop) for name in plan.mix},
        connects=total([each.connects for each in recorded]),
        first_calls=total([each.first_calls for each in recorded]),
        late=total([each.late for each in recorded]),
        think=total([each.think for each in recorded]),
        began=sum(span.began for span in spans),
        recorded=sum(each.recorded for each in recorded),
        arrivals=tuple(each.arrivals for each in recorded if each.arrivals is not None),
        started_clients=len(reports) + lost,
        served_clients=sum(map(any, served)),
        sending_connections=sum(map(sum, served)),
        client_cpu_each_s=tuple(report.cpu_s for report in reports),
        errors=errors,
        interrupted=interrupted,
        cores=cores,
        unanswered=sum(report.unanswered for report in reports),
        raw=joined([each.raw for each in recorded if each.raw is not None]) if plan.keep_records else None,
        kept=None if plan.check is None else Kept([each for report in reports for each in report.history]),
    )


def to_json(result: LoadResult) -> dict[str, object]:
    """Converts all counts and times of a result to values for ``json``. Leaves out raw times and the history.
    Histograms are in HdrHistogram's own V2 form.
    """
    document: dict[str, object] = msgspec.to_builtins(replace(result, raw=None, kept=None), enc_hook=_encoded)
    del document["raw"], document["kept"]
    return document


def from_json(document: object) -> LoadResult:
    """Makes a result from a document of ``to_json``. Raises msgspec's ValidationError for any other document."""
    return msgspec.convert(document, LoadResult, dec_hook=_decoded)


def _encoded(value: object) -> object:
    """Function for msgspec that converts a ``Times`` object to values for JSON. Raises NotImplementedError for any
    other type."""
    if isinstance(value, Times):
        return value.to_json()
    raise NotImplementedError


def _decoded(_: type, value: Any) -> Times:
    """Function for msgspec that makes a ``Times`` object from its JSON. msgspec turns a ValueError or TypeError of this
    function into a ValidationError."""
    try:
        return Times.from_json(value)
    except KeyError as error:
        raise ValueError(f"no {error}") from error


def _served(span: Span, loop: str) -> bool:
    """True if a connection got a reply. In a closed loop, only replies in the window count. In an open loop, all
    replies before the window's end count.
    """
    return span.replies > 0 or (loop == "open" and span.heard)


def merged_requests(reports: Sequence[RequestReport], loop: str) -> RequestReport:
    """Adds up reports on one request type. The reports may come from several processes or hosts."""
    response = total([report.response for report in reports])
    service = None if loop == "closed" else total([report.timed_service for report in reports])
    outcomes, errors = merged(report.outcomes for report in reports), merged(report.errors for report in reports)
    return RequestReport(outcomes, errors, response, service, sum(report.completed for report in reports))


def _result(reports: Sequence[RequestReport], duration_s: float) -> RequestResult:
    """Makes the result of one request type, or of several types together."""
    response = total([report.response for report in reports])
    closed = all(report.service is None for report in reports)
    service = response if closed else total([report.timed_service for report in reports])
    outcomes = merged(report.outcomes for report in reports)
    count, said, served = sum(outcomes.values()), response.distribution(), service.distribution()
    return RequestResult(
        count=count,
        outcomes=outcomes,
        errors=merged(report.errors for report in reports),
        throughput_hz=count / duration_s if duration_s else 0.0,
        response=response.histogram(),
        service=service.histogram(),
        out_of_range=said.out_of_range,
        mean_us=said.mean_us,
        p50_us=said.p50_us,
        p90_us=said.p90_us,
        p99_us=said.p99_us,
        p999_us=said.p999_us,
        max_us=said.max_us,
        min_us=said.min_us,
        stddev_us=said.stddev_us,
        service_us_mean=served.mean_us,
        service_us_p50=served.p50_us,
        service_us_p99=served.p99_us,
    )
