"""Gate 6: the laws that hold for every system, whatever it is. A run that breaks one has a wrong clock or count.

Little's law: in a closed loop N = X·(R + Z), with N the connections that send, X the replies a second from the counts,
R the mean of the times, Z the mean time from a reply to the next request, taken from the records. In an open loop N
is the number of requests under way, averaged over the window from the records. The utilisation law: X times the
processor time of a request is at most the server's cores. The asymptotic bounds, with D the time that one request
needs and Dmax the largest part of it that only one at a time can have: X ≤ min(N ÷ (D + Z), 1 ÷ Dmax) and
R ≥ max(D, N·Dmax − Z). See Lazowska and others, "Quantitative System Performance", 1984, chapters 3 and 5.

D is taken at one client: where a server needs less per request under load (it answers in batches), the bounds refuse
too, and rightly, since D is then not what it was taken for.
"""

from collections.abc import Iterator

from experiments.gates.evidence import RunEvidence
from experiments.gates.refusal import Refusal, Scope

LAW_MARGIN = 0.02
"""2 % (measurement rules, gate 6)."""

_DO = "check the clock, the unit and the counting of this run; publish none of it"


def laws_broken(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 6."""
    if not run.replies.answered:  # gate 4 has that
        return
    if not run.load.duration_s > 0:
        yield Refusal(6, run.run_id, f"{run.replies.answered:,} replies in {run.load.duration_s:g} s", _DO, Scope.RUN)
        return
    for what in (*_lost(run), *_throughput(run), *_little(run), *_utilisation(run), *_bounds(run)):
        yield Refusal(6, run.run_id, what, _DO, Scope.RUN)


def little_ratio(run: RunEvidence) -> float | None:
    """X·(R + Z) ÷ N; None where Z, or in an open loop N, was not seen."""
    times = run.times
    if run.load.loop == "open":
        if not times.in_flight_mean:
            return None
        return run.rate_hz * times.mean_us / 1e6 / times.in_flight_mean
    if times.think_us_mean is None or run.load.sending <= 0:
        return None
    return run.rate_hz * (times.mean_us + times.think_us_mean) / 1e6 / run.load.sending


def margin(run: RunEvidence) -> float:
    """2 %; more where the requests that the window cuts weigh more. Each connection has one at either end, of the mean
    length, or of the longest at most: a pause of 50 ms is 5 % of a window of a second."""
    if run.load.loop == "open":
        return LAW_MARGIN
    longest = (run.times.max_us or 0.0) / 1e6 / run.load.duration_s
    return max(LAW_MARGIN, run.load.sending / run.replies.answered, longest)


def _lost(run: RunEvidence) -> Iterator[str]:
    sent, answered, failed = run.replies.sent, run.replies.answered, run.replies.failed
    if sent != answered + failed:
        lost = sent - answered - failed
        yield f"{sent:,} requests were sent, and {answered:,} answered and {failed:,} failed: {lost:,} lost"


def _throughput(run: RunEvidence) -> Iterator[str]:
    if run.throughput_hz is not None and abs(run.throughput_hz / run.rate_hz - 1) > LAW_MARGIN:
        yield (
            f"{run.throughput_hz:,.0f}/s is published, and {run.replies.answered:,} replies in "
            f"{run.load.duration_s:g} s are {run.rate_hz:,.0f}/s"
        )


def _little(run: RunEvidence) -> Iterator[str]:
    ratio = little_ratio(run)
    if ratio is None or abs(ratio - 1) <= margin(run):
        return
    rate, times = f"{run.rate_hz:,.0f}/s", run.times
    if run.load.loop == "open":
        yield (
            f"Little's law: {rate} × {times.mean_us / 1000:.4g} ms are {ratio * (times.in_flight_mean or 0):.4g} "
            f"requests under way, and {times.in_flight_mean:.4g} were"
        )
    else:
        think_ms = (times.think_us_mean or 0.0) / 1000
        yield (
            f"Little's law: {rate} × ({times.mean_us / 1000:.4g} + {think_ms:.4g} ms) are "
            f"{ratio * run.load.sending:.4g} connections, and {run.load.sending} send"
        )


def _utilisation(run: RunEvidence) -> Iterator[str]:
    server = run.server
    if server.cpu_us_per_request is None:
        return
    busy = run.rate_hz * server.cpu_us_per_request / 1e6
    if busy > server.cores * (1 + LAW_MARGIN):
        yield (
            f"the utilisation law: {run.rate_hz:,.0f}/s × {server.cpu_us_per_request:.4g} µs keep {busy:.3g} cores "
            f"busy, and the server has {server.cores}"
        )


def _bounds(run: RunEvidence) -> Iterator[str]:
    times, load, allowed = run.times, run.load, margin(run)
    demand_us, largest_us = run.server.demand_us, run.server.demand_us_max
    think_us = times.think_us_mean
    if largest_us and run.rate_hz > (1 + LAW_MARGIN) * 1e6 / largest_us:
        yield f"a bound: {run.rate_hz:,.0f}/s, of which each takes {largest_us:.4g} µs that only one can have at a time"
    if demand_us and times.mean_us < (1 - LAW_MARGIN) * demand_us:
        yield f"a bound: answered in {times.mean_us:.4g} µs on average, and a request needs {demand_us:.4g} µs"
    if load.loop == "open" or think_us is None:
        return
    if demand_us and run.rate_hz > (1 + allowed) * load.sending / (demand_us + think_us) * 1e6:
        yield (
            f"a bound: {run.rate_hz:,.0f}/s from {load.sending} connections, each of which needs "
            f"{demand_us:.4g} + {think_us:.4g} µs for one"
        )
    if largest_us and times.mean_us < (1 - allowed) * (load.sending * largest_us - think_us):
        yield (
            f"a bound: answered in {times.mean_us:.4g} µs on average, and {load.sending} connections queue for "
            f"{largest_us:.4g} µs each"
        )
