"""How sure a percentile of one run is: intervals from order statistics, and which percentiles a run carries.

Of n independent values, the number below the true percentile is binomial, whatever the distribution; so two of the
values in order, with ranks taken from the binomial quantiles, hold the percentile between them with at least the
confidence asked for. (Le Boudec, "Performance Evaluation of Computer and Communication Systems", 2010, section 2.2;
David and Nagaraja, "Order Statistics", 2003, section 7.1.) No normality is assumed, and no interval crosses zero.

Requests of one run are not independent: slow ones come together. The ranks are therefore those of ``effective`` values,
n ÷ design effect, spread over the n values that there are; ``clients.load.record.dependence`` measures the design
effect of being above a percentile. A percentile with fewer than 10 effective values beyond it is not carried: it would
be the place of a handful of moments in one run, and must not be reported.

Such an interval speaks of its run alone. How runs differ is for ``stats`` to say, over blocks.

Percentiles are in percent; their value is the one of rank ⌈percent × n⌉, as HDR histograms have it. Values are in
whatever unit they were given in. Pure. Left out: interpolation between values.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

CONFIDENCE = 0.95

BEYOND_MIN = 10
"""Effective values that must lie beyond a percentile for it to be reported."""

Values = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PercentileEstimate:
    """A percentile of one run, with its 95 % interval. An end beyond the values there are is infinite."""

    percent: float
    value: float
    low: float
    high: float
    effective: float
    """Independent values that the run is worth."""
    carried: bool
    """Whether there are enough of them beyond the percentile for it to be reported."""


def effective_count(count: int, design_effect: float) -> float:
    """How many independent values ``count`` dependent ones are worth: never more than there are.

    ``design_effect`` is how many times the variance of their mean exceeds that of independent values (Kish 1965).
    """
    if not design_effect > 0:
        raise ValueError(f"a design effect of {design_effect:g}, allowed: over 0")
    return count / max(1.0, design_effect)


def is_carried(percent: float, effective: float) -> bool:
    """Whether so many effective values carry a percentile: at least 10 lie beyond it, on its scarcer side."""
    return effective * min(percent, 100 - percent) >= BEYOND_MIN * 100 * (1 - 1e-12)  # 99.9 is no binary fraction


def of_values(
    ascending: Values, percent: float, effective: float, confidence: float = CONFIDENCE
) -> PercentileEstimate:
    """A percentile of values in ascending order. ValueError for none, for a percent not within 0 to 100 (exclusive)."""
    return of_histogram(ascending, np.ones(len(ascending), np.int64), percent, effective, confidence)


def of_histogram(
    values: Values, counts: Counts, percent: float, effective: float, confidence: float = CONFIDENCE
) -> PercentileEstimate:
    """A percentile of a histogram: ``values`` ascending, and how many there are of each (not summed up).

    Its ends are values of the histogram, so they are as exact as its buckets are narrow.
    """
    if not 0 < percent < 100:
        raise ValueError(f"percentile {percent:g}, allowed: over 0 and under 100")
    up_to = np.cumsum(counts)
    n = int(up_to[-1]) if len(up_to) else 0
    if not n:
        raise ValueError("no values to take a percentile of")
    effective = min(effective, float(n))

    def at(rank: int) -> float:
        if rank < 1:
            return -math.inf
        return float(values[int(np.searchsorted(up_to, rank))]) if rank <= n else math.inf

    low, high = _ranks(percent / 100, n, effective, confidence)
    middle = min(n, max(1, math.ceil(percent / 100 * n - 1e-9)))
    return PercentileEstimate(percent, at(middle), at(low), at(high), effective, is_carried(percent, effective))


def _ranks(share: float, n: int, effective: float, confidence: float) -> tuple[int, int]:
    """The ranks, from 1, of the interval's ends among n values; 0 or n + 1 where there is no such value."""
    whole = math.floor(effective)
    if whole < 1:
        return 0, n + 1
    low = int(scipy.stats.binom.ppf((1 - confidence) / 2, whole, share))
    high = int(scipy.stats.binom.ppf((1 + confidence) / 2, whole, share)) + 1
    spread = n / whole
    return math.floor(low * spread), n + 1 if high > whole else math.ceil(high * spread)
