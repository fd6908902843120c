"""Gates 11, 12 and 15: whether an interval is one, of independent values, and a family of tests was corrected."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from experiments.gates.evidence import ComparisonEvidence, FamilyEvidence, IntervalEvidence
from experiments.gates.refusal import Refusal, Scope
from experiments.stats import holm

BOOTSTRAP_MIN = 13
"""Over 6 to 12 blocks a percentile bootstrap of 95 % covers 86 to 92 % (measurement rules)."""

EFFECTIVE_MARGIN = 0.1
"""By how much the samples of an interval may exceed the effective ones, which are an estimate."""

_LAG_CHANCE = 2.326
"""Standard errors that independent values exceed once in a hundred, upwards."""


def lag_1(values: Sequence[float]) -> float:
    """The autocorrelation of neighbours; 0 for fewer than three values, or where all are the same."""
    mean = sum(values) / len(values) if values else 0.0
    off = [value - mean for value in values]
    power = sum(each * each for each in off)
    if len(values) < 3 or power == 0:
        return 0.0
    return sum(one * other for one, other in pairwise(off)) / power


def lag_1_allowed(n: int) -> float:
    """What ``lag_1`` of n independent values exceeds at most once in a hundred: 0.53 for 6 to 9, 0.50 for 12.

    Mean and variance of it are exact for normal values (Moran 1948, "Some theorems on time series II").
    """
    variance = (n**3 - 3 * n**2 + 4) / (n**2 * (n**2 - 1))
    return -1 / n + _LAG_CHANCE * math.sqrt(variance)


def dependent_blocks(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 11. The unit is the run; and neighbouring blocks must not resemble each other."""
    if comparison.interval.unit == "request":
        correlated = [abs(run.times.lag_1) for run in comparison.runs if run.times.lag_1 is not None]
        beside = f" (autocorrelation up to {max(correlated):.2f})" if correlated else ""
        requests = f"{comparison.interval.n:,.0f} requests of {len(comparison.runs)} runs"
        what = f"its interval counts {requests} as independent{beside}"
        yield Refusal(11, comparison.name, what, "take one value from each run", Scope.VERDICT)
    n = len(comparison.log_ratios)
    if n >= 3 and (found := lag_1(comparison.log_ratios)) > lag_1_allowed(n):
        what = f"the {n} blocks' log-ratios are autocorrelated: {found:.2f} (chance: up to {lag_1_allowed(n):.2f})"
        do = "something drifts between the arms: find it, or run blocks further apart"
        yield Refusal(11, comparison.name, what, do, Scope.VERDICT)


def dependent_requests(interval: IntervalEvidence) -> Iterator[Refusal]:
    """Gate 11 on an interval that stands alone: within one run, requests may be used at their effective number."""
    if interval.unit != "request":
        return
    if interval.effective is None:
        what = f"{interval.n:,.0f} requests are counted as independent, and what they are worth is not known"
    elif not interval.n <= (1 + EFFECTIVE_MARGIN) * interval.effective:
        what = f"{interval.n:,.0f} requests are counted as independent, and are worth {interval.effective:,.0f}"
    else:
        return
    yield Refusal(11, interval.name, what, "use the effective number, or one value from each run", Scope.INTERVAL)


def no_interval(interval: IntervalEvidence) -> Iterator[Refusal]:
    """Gate 12."""
    ends = f"{interval.low:.4g} to {'no end' if math.isinf(interval.high) else format(interval.high, '.4g')}"
    if interval.kind in ("standard deviation", "standard error"):
        what = f"{ends} is a {interval.kind}, called an interval"
        do = "give Student's t interval of the mean over runs, or call it what it is"
        yield Refusal(12, interval.name, what, do, Scope.INTERVAL)
    if interval.kind == "bootstrap" and interval.n < BOOTSTRAP_MIN:
        what = f"{ends} is a percentile bootstrap over {interval.n:g} values, which covers under 95 %"
        yield Refusal(12, interval.name, what, "give Student's t interval", Scope.INTERVAL)
    if interval.positive and not interval.low > 0:
        what = f"{ends} crosses zero, and the quantity is positive"
        do = "take the interval of the logarithm over runs, or of more runs"
        yield Refusal(12, interval.name, what, do, Scope.INTERVAL)


def interval_of_comparison(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 12 on a comparison's own interval."""
    for refusal in no_interval(comparison.interval):
        yield Refusal(12, comparison.name, refusal.what, refusal.do, Scope.VERDICT)


def uncorrected(comparison: ComparisonEvidence) -> Iterator[Refusal]:
    """Gate 15 on one comparison: a correction is there, and made p no smaller."""
    size, do = comparison.family_size, "apply Holm's correction to the whole family"
    if size < 2:
        return
    if comparison.p_holm is None:
        what = f"one of {size} comparisons, judged by p {comparison.p:.3g} as if it were the only one"
    elif comparison.p_holm < comparison.p * (1 - 1e-9):
        what = f"corrected for {size} comparisons, p went from {comparison.p:.3g} down to {comparison.p_holm:.3g}"
    else:
        return
    yield Refusal(15, comparison.name, what, do, Scope.VERDICT)


def family_uncorrected(family: FamilyEvidence) -> Iterator[Refusal]:
    """Gate 15 on a family: no comparison was added after the data was seen, and the correction is Holm's."""
    made, do = len(family.p), "declare every comparison first, and apply Holm's correction to all"
    if made > family.declared:
        what = f"{made} comparisons were made, and {family.declared} declared"
        yield Refusal(15, family.name, what, do, Scope.VERDICT)
    if family.p_adjusted is None:
        if family.declared > 1:
            what = f"{family.declared} comparisons, none corrected: by chance alone 1 in 20 differs"
            yield Refusal(15, family.name, what, do, Scope.VERDICT)
        return
    absent = max(0, family.declared - made)
    right = holm([*family.p, *[1.0] * absent])[:made]
    off = [(given, due) for given, due in zip(family.p_adjusted, right, strict=False) if given < due * (1 - 1e-9)]
    if off or len(family.p_adjusted) != made:
        what = f"p {off[0][0]:.3g} is given, and Holm's is {off[0][1]:.3g}" if off else "not every p is corrected"
        yield Refusal(15, family.name, what, do, Scope.VERDICT)
