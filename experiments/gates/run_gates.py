"""Gates 1, 3, 4, 5, 13, 14 and 19 on one run: what was timed, by what clock, of which requests, around what.

Each gate is a function from a run to its refusals, none if there is no fault. A field that is None was not seen, and
the gate does not look at it. Gate 6 is in ``law_gates``, gates 7 and 8 are in ``load_gates``.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from experiments.gates.evidence import MachineEvidence, Percentile, RunEvidence
from experiments.gates.law_gates import LAW_MARGIN, little_ratio
from experiments.gates.refusal import Refusal, Scope
from experiments.repetition import STEAL_SHARE_MAX

IDLE_SHARE_MAX = LAW_MARGIN
"""Of a timed interval: as much as gate 6 leaves to its laws."""

ERROR_SHARE_MAX = 0.001
"""0.1 % of the requests sent (measurement rules, gate 4)."""

BEYOND_MIN = 10
"""Independent samples that must lie beyond a percentile: then its rank is known to a third (1 ÷ √10)."""

CALIBRATION_DRIFT_MAX = 0.05
"""Between before and after: the margin within which a difference counts as none."""

CLOCKS: dict[str, Literal["elapsed", "processor"]] = {
    "perf_counter_ns": "elapsed",
    "perf_counter": "elapsed",
    "monotonic_ns": "elapsed",
    "monotonic": "elapsed",
    "CLOCK_MONOTONIC": "elapsed",
    "std::chrono::steady_clock": "elapsed",
    "std::time::Instant": "elapsed",
    "Go time.Since": "elapsed",  # reads the monotonic part of a time.Time
    "process_time_ns": "processor",
    "thread_time_ns": "processor",
    "CLOCK_PROCESS_CPUTIME_ID": "processor",
    "getrusage": "processor",
}
"""Clocks that run evenly, and what they count. Those of the calendar (``time.time``, gettimeofday, system_clock, and
libstdc++'s high_resolution_clock, which is system_clock by another name) can be set, and step."""

FIELD_UNIT = "us"

_CONVERT = "find which was not converted"


def timer_includes_idling(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 1. A timer that runs from one request's end to the next one's fills all of a paced run's time.

    One that starts when the request is due cannot: such a mean near the gap is the server's, close to its limit.
    """
    load, times = run.load, run.times
    do = "start the timer when the request is due or sent; publish this only as a labelled artefact"
    gap_us = load.connections / load.rate_hz * 1e6 if load.loop == "open" and load.rate_hz else None
    if times.start == "before receive":
        beside = f", near the {gap_us:,.0f} µs between two requests" if gap_us else ""
        what = f"the timer starts before the request is there: {times.mean_us:,.0f} µs with the idle wait in it{beside}"
    elif times.idle_us_mean is not None:
        if not times.idle_us_mean > IDLE_SHARE_MAX * times.mean_us:
            return
        what = f"{times.idle_us_mean:,.0f} of {times.mean_us:,.0f} µs are idle waiting"
    elif gap_us is not None and times.start != "due" and abs(times.mean_us / gap_us - 1) <= IDLE_SHARE_MAX:
        what = f"the times fill all of the {gap_us:,.0f} µs between two requests: {times.mean_us:,.0f} µs on average"
    else:
        return
    yield Refusal(1, run.run_id, what, do, Scope.LATENCY)


def fewer_connections_than_declared(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 3 on one run: the server must see a socket for each kept connection that got replies."""
    seen = run.seen.get("connections")
    if run.load.policy == "kept-alive" and isinstance(seen, int) and seen < run.load.sending:
        what = f"{run.load.sending} connections are declared to send, and the server saw {seen} sockets"
        yield Refusal(3, run.run_id, what, "find what shares a connection (a pooled channel), and repeat", Scope.RUN)


def replies_in_doubt(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 4."""
    replies = run.replies
    if not replies.validated:
        yield Refusal(4, run.run_id, "the replies were not validated", "check every reply, and repeat", Scope.RUN)
    if not replies.answered:
        yield Refusal(4, run.run_id, f"none of {replies.sent:,} requests was answered", "find out why", Scope.RUN)
        return
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(replies.errors.items()))
    if replies.failed > ERROR_SHARE_MAX * max(replies.sent, 1):
        share = f"{replies.failed / max(replies.sent, 1):.2%}, at most {ERROR_SHARE_MAX:.1%}"
        what = f"{replies.failed:,} of {replies.sent:,} requests failed ({share}): {kinds}"
        yield Refusal(4, run.run_id, what, "remove the cause, and repeat", Scope.RUN)
    if replies.failed and not replies.errors_timed:
        what = f"{replies.failed:,} failed requests ({kinds}) are left out of the latency"
        yield Refusal(4, run.run_id, what, "keep their times up to the failure in it", Scope.LATENCY)


def not_steady(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 5. With a connection per request, connecting belongs to every request and is no intruder."""
    replies = run.replies
    if run.load.policy == "kept-alive":
        inside = [
            f"{what}: {count}"
            for count, what in (
                (replies.connects_inside, "new connections"),
                (replies.first_calls_inside, "first calls"),
            )
            if count
        ]
        if inside:
            what = f"{', '.join(inside)}, among {replies.answered:,} timed requests"
            yield Refusal(5, run.run_id, what, "connect and warm up before the window; time them apart", Scope.LATENCY)
    if replies.steady is False:
        what = f"the window of {run.load.duration_s:g} s after {run.load.warm_up_s:g} s of warm-up has a trend"
        do = "warm up for longer (--profile paper), or repeat in a quieter hour"
        yield Refusal(5, run.run_id, what, do, Scope.LATENCY)


def percentiles_beyond_the_sample(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 13."""
    for percentile in run.times.percentiles:
        beyond = samples_beyond(percentile, run.replies.answered)
        if beyond < BEYOND_MIN * (1 - 1e-9):  # 0.1 % of 10,000 is 9.999… in binary
            worth = percentile.effective if percentile.effective is not None else run.replies.answered
            needed = math.ceil(BEYOND_MIN / (1 - percentile.rank / 100) - 1e-6)
            what = f"p{percentile.rank:g} has {beyond:.3g} of {worth:,.0f} independent samples beyond it"
            do = f"measure {needed:,} of them, or publish a lower percentile"
            yield Refusal(13, run.run_id, what, do, Scope.PERCENTILE, percentile.rank)


def samples_beyond(percentile: Percentile, answered: int) -> float:
    """Independent samples that lie beyond a percentile."""
    worth = percentile.effective if percentile.effective is not None else answered
    return worth * (100 - percentile.rank) / 100


def disturbed(evidence: RunEvidence | MachineEvidence) -> Iterator[Refusal]:
    """Gate 14, of one run or of a whole sweep."""
    around = evidence.surroundings
    where, scope = (evidence.run_id, Scope.RUN) if isinstance(evidence, RunEvidence) else (evidence.machine, Scope.ALL)
    if around.steal_share is not None and not around.steal_share <= STEAL_SHARE_MAX:
        what = f"the hypervisor took {around.steal_share:.1%} of the cores' time (allowed {STEAL_SHARE_MAX:.0%})"
        yield Refusal(14, where, what, "repeat when the neighbours are quiet", scope)
    before, after = around.calibration_us_before, around.calibration_us_after
    if before is not None and after is not None:
        least = min(before, after)
        drift = abs(after - before) / least if least > 0 else math.inf
        if not drift <= CALIBRATION_DRIFT_MAX:
            what = f"the calibration took {before:.4g} µs before and {after:.4g} µs after ({drift:.1%} apart)"
            yield Refusal(14, where, what, f"repeat; {CALIBRATION_DRIFT_MAX:.0%} apart is allowed", scope)


def wrong_clock_or_unit(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 19."""
    times = run.times
    counts = CLOCKS.get(times.clock)
    if counts is None:
        do = f"use one of {', '.join(sorted(name for name, kind in CLOCKS.items() if kind == times.called))}"
        yield Refusal(19, run.run_id, f"{times.clock} is not known to run evenly", do, Scope.LATENCY)
    elif counts != times.called:
        what = f"{times.clock} counts {counts} time, and is published as {times.called} time"
        yield Refusal(19, run.run_id, what, f"call it {counts} time", Scope.LATENCY)
    if times.unit != FIELD_UNIT:
        what = f"the times are in {times.unit}, and stand in fields of {FIELD_UNIT}"
        yield Refusal(19, run.run_id, what, "convert them", Scope.LATENCY)
    yield from _mixed_units(run)


def _mixed_units(run: RunEvidence) -> Iterator[Refusal]:
    """Times of one distribution that are not in the order that they must have are not in one unit."""
    times = run.times
    ranked = sorted(times.percentiles, key=lambda percentile: percentile.rank)
    line = [(f"p{percentile.rank:g}", percentile.us) for percentile in ranked]
    greatest = [("the maximum", times.max_us)] if times.max_us is not None else []
    pairs = [*pairwise(line)]
    pairs += [(below, (name, us)) for below in (*line[-1:], ("the mean", times.mean_us)) for name, us in greatest]
    for (low, low_us), (high, high_us) in pairs:
        if low_us > high_us * 1.001:  # a histogram's bucket is 0.1 % wide
            what = f"{low} is {low_us:,.4g} and {high} {high_us:,.4g}: they cannot be in one unit"
            yield Refusal(19, run.run_id, what, _CONVERT, Scope.LATENCY)
    if not all(math.isfinite(us) and us >= 0 for us in (times.mean_us, *(us for _, us in line + greatest))):
        do = "use a clock that is not set, and publish no mean of nothing"
        yield Refusal(19, run.run_id, "a time is under 0, or no number", do, Scope.LATENCY)
    ratio = little_ratio(run)
    for factor in (1e-6, 1e-3, 1e3, 1e6):
        if ratio is not None and abs(ratio / factor - 1) <= LAW_MARGIN:
            what = f"Little's law is off by a factor of {factor:g}, as where a unit was taken for another"
            yield Refusal(19, run.run_id, what, _CONVERT, Scope.LATENCY)
