"""Gates 7 and 8: whether the load was the one that was declared.

Chance has its part in a random process: a count of n requests varies by √n. Where the schedule's own count is known,
the generator is held to that, and chance is none of its doing; otherwise what one run in a thousand would show by
chance alone is allowed beside the fixed margins. Those keep the gates from refusing a run of a million requests for
a difference that is sure and too small to matter. Limits are asked as "not within", so that a NaN is refused.
"""

import math
from collections.abc import Iterator

from experiments.gates.evidence import Arrivals, RunEvidence
from experiments.gates.refusal import Refusal, Scope

LATE_US_MAX = 100.0
"""p99 of the time from due to sent (measurement rules, gate 7)."""

LATE_SHARE_MAX = 0.05
"""The same, of the response time's p50, where that is more: with a median of 60 µs the other reading would allow 3 µs,
less than what it takes to send. What is late is in the response time in any case: that counts from when it was due."""

RATE_MARGIN = 0.01
"""1 % off the rate (measurement rules, gate 7)."""

NEVER_SENT = "never_sent"
"""The kind of error of a request that was due and that the generator could not send."""

CPU_SHARE_MAX = 0.8
"""Of the load side's core (measurement rules, gate 7)."""

VARIATION_MARGIN = 0.03
"""Of the gaps' coefficient of variation, which is 1 for Poisson: the mean wait in M/M/1 then changes by as much."""

CONSTANT_VARIATION_MAX = 0.05
"""Of the gaps of a constant schedule. A queue's mean wait goes by its square, here 0.0025, which is 1 for Poisson."""

KS_FLOOR = 0.02
"""A distance from the exponential distribution that is too small to matter, however sure it is."""

DISPERSION_MARGIN = 0.1
"""Of variance ÷ mean of the counts in slices, which is 1 for Poisson."""

_CHANCE = 3.29
"""Standard errors that chance exceeds once in a thousand, either way."""

_KS_CHANCE = 1.95
"""÷ √n: Kolmogorov and Smirnov's distance that chance exceeds once in a thousand."""


def load_not_kept(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 7."""
    if run.load.loop == "open":
        yield from _late(run)
        yield from _off_rate(run)
    share = run.load.cpu_share
    spins = run.load.loop == "open" and run.load.spinning
    if share is not None and not share <= CPU_SHARE_MAX and not spins:
        what = f"the load side took {share:.0%} of its core (allowed {CPU_SHARE_MAX:.0%})"
        do = "publish the latency as that of client and server together, and say nothing of the server's capacity"
        yield Refusal(7, run.run_id, what, do, Scope.CAPACITY)


def late_us_allowed(p50_us: float | None) -> float:
    """How late the p99 of sends may be, for that median response."""
    return LATE_US_MAX if p50_us is None else max(LATE_US_MAX, LATE_SHARE_MAX * p50_us)


def _late(run: RunEvidence) -> Iterator[Refusal]:
    late_us = run.load.late_us_p99
    p50_us = next((percentile.us for percentile in run.times.percentiles if percentile.rank == 50), None)
    if late_us is not None and not late_us <= late_us_allowed(p50_us):
        beside = "" if p50_us is None else f", with a median response of {p50_us:,.0f} µs"
        late = f"{late_us:,.0f}" if late_us >= 1000 else f"{late_us:.4g}"
        what = f"p99 of late sends is {late} µs (allowed {late_us_allowed(p50_us):,.0f}{beside})"
        yield Refusal(7, run.run_id, what, "lower the rate, spin, or use a stronger generator", Scope.RUN)


def _off_rate(run: RunEvidence) -> Iterator[Refusal]:
    """Of what was sent, answered or not: a server that answers less than it is offered is no fault of the load."""
    load, sent = run.load, run.replies.sent - run.replies.errors.get(NEVER_SENT, 0)
    if load.rate_hz is None:
        return
    wanted = load.rate_hz * load.duration_s if load.scheduled is None else load.scheduled
    allowed = RATE_MARGIN
    if load.scheduled is None and load.process == "poisson" and wanted > 0:
        allowed = max(allowed, _CHANCE / math.sqrt(wanted))
    off = sent / wanted - 1 if wanted > 0 else math.inf
    if not abs(off) <= allowed:
        what = f"{sent:,} requests were sent, {abs(off):.1%} {'under' if off < 0 else 'over'} the {wanted:,.0f} due"
        yield Refusal(7, run.run_id, what, "lower the rate, or use a stronger generator", Scope.RUN)


def arrivals_not_as_declared(run: RunEvidence) -> Iterator[Refusal]:
    """Gate 8."""
    load, seen = run.load, run.load.arrivals
    if load.loop != "open" or load.process is None or seen is None:
        return
    for what in _not_poisson(seen) if load.process == "poisson" else _not_constant(seen):
        do = f"mend the schedule, or declare what it is: not {load.process}"
        yield Refusal(8, run.run_id, what, do, Scope.RUN)


def _not_poisson(seen: Arrivals) -> Iterator[str]:
    chance = _CHANCE / math.sqrt(max(seen.count, 1))
    yield from _gap(seen, max(RATE_MARGIN, chance))
    if not abs(seen.variation - 1) <= max(VARIATION_MARGIN, chance):
        yield f"the gaps' coefficient of variation is {seen.variation:.3f}, and that of Poisson arrivals 1"
    limit = max(KS_FLOOR, _KS_CHANCE / math.sqrt(max(seen.count, 1)))
    if seen.ks_distance is not None and not seen.ks_distance <= limit:
        yield f"the gaps are {seen.ks_distance:.3f} away from the exponential distribution (allowed {limit:.3f})"
    if seen.dispersion is not None and seen.slices > 1:
        allowed = max(DISPERSION_MARGIN, _CHANCE * math.sqrt(2 / (seen.slices - 1)))
        if not abs(seen.dispersion - 1) <= allowed:
            yield f"the counts' variance is {seen.dispersion:.2f} of their mean, and that of Poisson arrivals 1"


def _not_constant(seen: Arrivals) -> Iterator[str]:
    yield from _gap(seen, RATE_MARGIN)
    if not seen.variation <= CONSTANT_VARIATION_MAX:
        yield (
            f"the gaps' coefficient of variation is {seen.variation:.3f} "
            f"(a constant schedule's is at most {CONSTANT_VARIATION_MAX})"
        )


def _gap(seen: Arrivals, allowed: float) -> Iterator[str]:
    declared_us = 1e6 / seen.rate_hz
    if not abs(seen.gap_us_mean / declared_us - 1) <= allowed:
        yield f"the mean gap is {seen.gap_us_mean:,.4g} µs, and the declared one {declared_us:,.4g} µs"
