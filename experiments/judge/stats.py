"""Statistics over blocks: intervals, tests, and how many blocks would decide. Pure.

The unit is the block, not the request: requests of one block are not independent. A comparison has one value a block,
the logarithm of a ratio. Its interval is Student's t on these values. A difference must also survive an exact sign-flip
test: if the arms were the same, each block's value would as likely have the other sign. Its source is Fisher, "The
Design of Experiments", 1935, section 21. Holm's correction goes over the family of tests, which is declared before the
data is seen (Holm 1979, "A simple sequentially rejective multiple test procedure").

numpy and scipy compute what they have. A part of scipy is loaded when it is first named: so no module here imports one
by name, and a command that judges nothing starts at once. Quantiles are from ``scipy.special``, as ``scipy.stats`` has
them from there, and takes a second or two to load.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

import numpy as np
import numpy.typing as npt
import scipy

from experiments.design.limits import BLOCKS_MAX

SPREAD_FROM = 3
"""Runs from which on there is a range, a deviation between runs and a prediction interval."""

POWER = 0.8
"""Probability that the stated number of blocks decides, if mean and spread stay as they are."""

_ROUNDING = 1e-12
"""Largest difference of two sums that count as equal, as a share of the sum of the values' magnitudes."""

_BLOCKS_LOOKED_AT = 1000
"""Number of blocks at which the search for the number that decides ends."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, or the ratio that a mean of logarithms stands for, with its interval, from ``n`` values.

    With one value the interval is unbounded.
    """

    value: float
    low: float
    high: float
    n: int

    def over(self, unit: float) -> "Estimate":
        """The same estimate in another unit."""
        return Estimate(self.value / unit, self.low / unit, self.high / unit, self.n)


def exact(value: float) -> Estimate:
    """An estimate without an interval, such as a document's value."""
    return Estimate(value, -math.inf, math.inf, 1)


@dataclass(frozen=True, slots=True)
class Deviation:
    """Deviation of the true log-ratios between earlier runs of one version."""

    tau: float
    freedom: int
    """Number of runs minus number of versions."""
    runs: int
    tau_high: float
    """The upper limit of tau, with 95 %."""
    over_s: float
    """Time from the first run of a version to its last: the shortest such time of all versions."""

    @property
    def reach(self) -> float:
        """Largest change of a ratio's logarithm by a further run, as far away in time, with 95 %: the difference of two
        runs."""
        return float(scipy.special.stdtrit(self.freedom, 0.975)) * math.sqrt(2) * self.tau


def mean_interval(values: Sequence[float], confidence: float) -> Estimate:
    """Mean of independent values with Student's t interval. ValueError where there are none."""
    if not values:
        raise ValueError("no values to take a mean of")
    seen, n = np.asarray(values, dtype=np.float64), len(values)
    mean = float(seen.sum()) / n
    if n == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    half = _half_width(math.sqrt(float(np.square(seen - mean).sum()) / (n - 1)), n, confidence)
    return Estimate(mean, mean - half, mean + half, n)


def positive_interval(values: Sequence[float], confidence: float) -> Estimate:
    """Mean of values that are never negative, with an interval that ends at 0. ValueError where there are none."""
    estimate = mean_interval(values, confidence)
    return replace(estimate, low=max(0.0, estimate.low))


def median_interval(values: Sequence[float], confidence: float) -> Estimate:
    """Median of independent values, and its interval between two of them. ValueError where there are none.

    The interval goes from the k-th least to the k-th greatest. It covers the median with at least this confidence, for
    any distribution, and k is the largest possible. For 95 % and ten values it goes from the 2nd to the 9th. Five
    values are too few, so that it is unbounded (David and Nagaraja, *Order Statistics*, 2003, section 7.1).
    """
    if not values:
        raise ValueError("no values to take a median of")
    seen, n = sorted(values), len(values)
    beyond, tail = 0, 0.5**n
    while 2 * tail <= 1 - confidence and beyond < n / 2:
        beyond += 1
        tail += math.comb(n, beyond) * 0.5**n
    if not beyond:
        return Estimate(median(seen), -math.inf, math.inf, n)
    return Estimate(median(seen), seen[beyond - 1], seen[n - beyond], n)


def ratio_interval(block_log_ratios: Sequence[float], confidence: float) -> Estimate:
    """The ratio that the blocks' log-ratios stand for: exp of their mean, and of the ends of its t interval."""
    mean = mean_interval(block_log_ratios, confidence)
    high = math.inf if math.isinf(mean.high) else math.exp(mean.high)
    return Estimate(math.exp(mean.value), math.exp(mean.low), high, mean.n)


def geometric_interval(values: Iterable[float | None], confidence: float) -> Estimate | None:
    """Geometric mean of the values that are there and are not 0, with its interval; None where there is no such
    value."""
    logs = [math.log(each) for each in values if each]
    return ratio_interval(logs, confidence) if logs else None


def sign_flip_p(values: Sequence[float]) -> float:
    """Two-sided p-value of a mean of 0: the share of all sign assignments whose sum is at least as far from 0.

    Exact: the sums of either half's assignments, 2^(n ÷ 2) of them, are matched by sorting one half. At least 2 ÷ 2^n;
    1 for fewer than two values, or where one is no number. ValueError for over ``BLOCKS_MAX``.
    """
    if len(values) > BLOCKS_MAX:
        raise ValueError(f"{len(values)} blocks, allowed: up to {BLOCKS_MAX}")
    return _sign_flip_p(tuple(values))


@lru_cache(16384)
def _sign_flip_p(values: tuple[float, ...]) -> float:
    """The same p-value, cached: each look asks again for values that it shares with others."""
    seen = np.asarray(values, dtype=np.float64)
    if len(seen) < 2 or not np.isfinite(seen).all():
        return 1.0
    as_far = abs(seen.sum()) - _ROUNDING * np.abs(seen).sum()  # sums that differ by rounding alone are equal
    if as_far <= 0:
        return 1.0
    half = len(seen) // 2
    first, second = _signed_sums(seen[:half]), np.sort(_signed_sums(seen[half:]))
    above = len(first) * len(second) - int(np.searchsorted(second, as_far - np.sort(first), side="left").sum())
    return 2.0 * above / 2.0 ** len(seen)  # as many lie as far below: the other signs of each


def _signed_sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sum of the values under every assignment of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.add.outer((value, -value), sums).ravel()
    return sums


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    ranked = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(ranked):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def trimmed_mean(values: Sequence[float] | npt.NDArray[np.float64], share: float) -> float:
    """Mean without this share of the values at either end (Yuen 1974). ValueError where there are none."""
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    if not len(ascending):
        raise ValueError("no values to take a mean of")
    cut = int(share * len(ascending))
    return float(ascending[cut : len(ascending) - cut].mean())


def blocks_min(family: int, level: float) -> int:
    """Smallest number of blocks that can show a difference in a family of this many tests, with the clearest data.

    The sign-flip test gives no p under 2 ÷ 2^n, and Holm multiplies the least of a family by its size.
    """
    n = 2
    while family * 2.0 ** (1 - n) >= level:
        n += 1
    return n


def blocks_needed(values: Sequence[float], family: int, level: float, about: tuple[float, float]) -> int | None:
    """Number of blocks in all that decide with 80 % power, if mean and spread stay as they are; None: over 1000, or
    unknown.

    ``values`` are logarithms of ratios ÷ the tested value; ``about`` is the zone that counts as no difference. Power by
    the usual sum of two quantiles of Student's t; a difference must show at Holm's strictest step, which is
    Bonferroni's. An interval can leave that zone at either end: both probabilities are added.
    """
    if len(values) < 2:
        return None
    seen = np.asarray(values, dtype=np.float64)
    mean = float(seen.sum()) / len(seen)
    deviation = math.sqrt(float(np.square(seen - mean).sum()) / (len(seen) - 1))
    low, high = (math.log(limit) for limit in about)

    def decides(n: int) -> bool:
        error, (strict, plain, power) = deviation / math.sqrt(n), _quantiles(n, family, level)
        if abs(mean) > (strict + power) * error:
            return True
        return error == 0 or _share_beyond(n, (mean - low) / error - plain, (high - mean) / error - plain) <= 1 - POWER

    fewest = max(blocks_min(family, level), len(values) + 1)
    n = bisect_left(range(_BLOCKS_LOOKED_AT + 1), True, lo=fewest, key=decides)  # more blocks never decide worse
    return n if n <= _BLOCKS_LOOKED_AT else None


def _share_beyond(n: int, *ends: float) -> float:
    """Sum of the probabilities that Student's t, for n values, is over each of these ends."""
    return float(sum(scipy.special.stdtr(n - 1, -end) for end in ends))


@lru_cache(8192)
def _quantiles(n: int, family: int, level: float) -> tuple[float, float, float]:
    """Student's t for n values: at the family's strictest step, at the level itself, and for the power."""
    strict, plain, power = (
        float(scipy.special.stdtrit(n - 1, at)) for at in (1 - level / family / 2, 1 - level / 2, POWER)
    )
    return strict, plain, power


def _half_width(deviation: float, n: int, confidence: float) -> float:
    """Half of Student's t interval of a mean of ``n`` values with this standard deviation."""
    return _students(n, confidence) * deviation / math.sqrt(n)


@lru_cache(1024)
def _students(n: int, confidence: float) -> float:
    """Student's t for n values, two-sided."""
    return float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2))
