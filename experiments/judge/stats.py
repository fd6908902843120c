"""Statistics over blocks: intervals, tests, and the number of blocks that a decision needs. The functions are pure.

The unit is the block and not the request, because requests of one block are not independent. A comparison of two arms
has one value in each block: the logarithm of a ratio. The interval of a comparison is Student's t interval of these
values. A difference must also pass an exact sign-flip test: if two arms are equal, each block's value is as likely to
be positive as negative (Fisher, "The Design of Experiments", 1935, section 21). Holm's correction covers a family of
tests. The family is declared before the data is seen (Holm 1979, "A simple sequentially rejective multiple test
procedure").

scipy loads a subpackage only when code uses the subpackage's name. So no module here imports a subpackage by name, and
a command that judges nothing starts at once. Quantiles come from ``scipy.special``, since ``scipy.stats`` needs a
second or two to load.
"""

import math
import sys
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
"""Smallest number of runs for a range, a deviation between runs, or a prediction interval."""

POWER = 0.8
"""Power: the probability that the number of blocks from ``blocks_needed`` decides a test, if mean and spread stay
equal."""

_ROUNDING = 1e-12
"""Two sums count as equal up to this difference. The unit is the sum of the values' magnitudes."""

_BLOCKS_LOOKED_AT = 1000
"""Largest number of blocks that ``blocks_needed`` tries."""

_LOG_MAX = math.log(sys.float_info.max)
"""Logarithm of the largest float. The exponential of a larger number counts as infinite."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean or ratio of ``n`` values, with an interval. The interval of one value is unbounded.

    A ratio is the exponential of the mean of logarithms.
    """

    value: float
    low: float
    high: float
    n: int

    def over(self, unit: float) -> "Estimate":
        """Copy of the estimate in another unit. ``unit`` is the size of the new unit in the present unit. For example,
        1000 changes µs to ms."""
        return Estimate(self.value / unit, self.low / unit, self.high / unit, self.n)

    def under(self, above: float) -> "Estimate":
        """Estimate of ``above`` ÷ this value. This value must be positive. If the interval of this value begins at 0,
        the new interval has no upper end."""
        return Estimate(above / self.value, above / self.high, above / self.low if self.low else math.inf, self.n)


def exact(value: float) -> Estimate:
    """Estimate with an unbounded interval, for a value whose error is unknown, such as a value from a document."""
    return Estimate(value, -math.inf, math.inf, 1)


@dataclass(frozen=True, slots=True)
class Deviation:
    """Standard deviation of a comparison's true log-ratio from run to run, computed from earlier runs."""

    tau: float
    """Estimate of the standard deviation. A value of 0.01 is about 1 % of the ratio."""
    freedom: int
    """Degrees of freedom: number of runs minus number of versions."""
    runs: int
    """Number of earlier runs."""
    tau_high: float
    """Upper limit of ``tau``, at a confidence of 95 %."""
    over_s: float
    """Shortest time in seconds over which the runs of one version extend: from the start of the first run to the start
    of the last run."""

    @property
    def reach(self) -> float:
        """With a probability of 95 %, the log-ratios of two runs that lie ``over_s`` apart differ by this value or
        less."""
        return students(self.freedom, 0.95) * math.sqrt(2) * self.tau


def mean_interval(values: Sequence[float], confidence: float) -> Estimate:
    """Mean of independent values, with Student's t interval. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values to take a mean of")
    seen, n = np.asarray(values, dtype=np.float64), len(values)
    mean = float(seen.mean())
    half = students(n - 1, confidence) * float(seen.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Estimate(mean, mean - half, mean + half, n)


def positive_interval(values: Sequence[float], confidence: float) -> Estimate:
    """Mean of values that are never negative. The interval begins at 0 or above. Raises ValueError for no values."""
    estimate = mean_interval(values, confidence)
    return replace(estimate, low=max(0.0, estimate.low))


def median_interval(values: Sequence[float], confidence: float) -> Estimate:
    """Median of independent values, with an interval between two of the values. Raises ValueError for no values.

    The interval goes from the k-th least value to the k-th greatest value. k is as large as the confidence allows, for
    any distribution of the values. At 95 %, the interval of ten values goes from the 2nd value to the 9th value. With
    five values or fewer, the interval is unbounded (David and Nagaraja, *Order Statistics*, 2003, section 7.1).
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
    """Ratio over blocks: the exponential of the mean log-ratio. The interval's ends are the exponentials of the t
    interval's ends."""
    mean = mean_interval(block_log_ratios, confidence)
    value, low, high = (math.exp(log) if log < _LOG_MAX else math.inf for log in (mean.value, mean.low, mean.high))
    return Estimate(value, low, high, mean.n)


def geometric_interval(values: Iterable[float | None], confidence: float) -> Estimate | None:
    """Geometric mean of positive values, with its interval. Values of None or 0 are left out. None if no value
    remains."""
    logs = [math.log(each) for each in values if each]
    return ratio_interval(logs, confidence) if logs else None


def sign_flip_p(values: Sequence[float]) -> float:
    """Two-sided p-value of the hypothesis that the mean is 0, by the exact sign-flip test.

    There are 2^n ways to give signs to the n values. The p-value is the share of these ways in which the sum is at
    least as far from 0 as the sum of the values. For speed, only the 2^(n ÷ 2) sums of each half of the values are
    computed; the sorted sums are counted by bisection. The p-value is at least 2 ÷ 2^n. The p-value is 1 for fewer than
    two values, and if a value is not finite. Raises ValueError for more values than ``BLOCKS_MAX``.
    """
    if len(values) > BLOCKS_MAX:
        raise ValueError(f"{len(values)} blocks, allowed: up to {BLOCKS_MAX}")
    return _sign_flip_p(tuple(values))


@lru_cache(16384)
def _sign_flip_p(values: tuple[float, ...]) -> float:
    """The p-value of ``sign_flip_p``. The cache saves time, since several comparisons and looks test equal values."""
    seen = np.asarray(values, dtype=np.float64)
    if len(seen) < 2 or not np.isfinite(seen).all():
        return 1.0
    as_far = abs(seen.sum()) - _ROUNDING * np.abs(seen).sum()  # rounding makes equal sums differ
    if as_far <= 0:
        return 1.0
    half = len(seen) // 2
    first, second = _signed_sums(seen[:half]), np.sort(_signed_sums(seen[half:]))
    above = len(first) * len(second) - int(np.searchsorted(second, as_far - np.sort(first), side="left").sum())
    return 2.0 * above / 2.0 ** len(seen)  # all signs reversed: as many sums are as far below 0


def _signed_sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums of the values, one for each way to give signs to the values."""
    sums = np.zeros(1)
    for value in values:
        sums = np.add.outer((value, -value), sums).ravel()
    return sums


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values by Holm's method, in the order of ``p_values``."""
    ranked = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    adjusted[ranked] = np.maximum.accumulate(np.sort(p_values) * np.arange(len(p_values), 0, -1)).clip(max=1.0)
    return adjusted.tolist()


def trimmed_mean(values: Sequence[float] | npt.NDArray[np.float64], share: float) -> float:
    """Mean without the least and the greatest values: at each end ``share`` of the values is left out (Yuen 1974).
    Raises ValueError for no values."""
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    if not len(ascending):
        raise ValueError("no values to take a mean of")
    cut = int(share * len(ascending))
    return float(ascending[cut : len(ascending) - cut].mean())


def blocks_min(family: int, level: float) -> int:
    """Smallest number of blocks that can show a difference in a family of ``family`` tests, with the clearest data.

    With n blocks, the least p of the sign-flip test is 2 ÷ 2^n. Holm's correction multiplies the least p of a family by
    the family's size.
    """
    n = 2
    while family * 2.0 ** (1 - n) >= level:
        n += 1
    return n


def blocks_needed(values: Sequence[float], family: int, level: float, about: tuple[float, float]) -> int | None:
    """Total number of blocks with which a test is decided with 80 % power, if mean and spread stay equal.

    None if the number is over 1000, or if there are fewer than two values. ``values`` has a logarithm for each block:
    log(the block's ratio ÷ the tested value). ``about`` is the zone of ratios that count as no difference. A number n
    of blocks is enough if one of two results has a probability of at least 80 %:

    - The test finds a difference, even at the strictest step of Holm's correction, which is Bonferroni's correction.
      The condition is ``abs(mean) > (t_strict + t_power) * deviation / sqrt(n)``, with two quantiles of Student's t.
    - The test finds no difference: the interval lies inside the zone. The probability that the interval leaves the zone
      is the sum of the probabilities at both ends.
    """
    if len(values) < 2:
        return None
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    low, high = (math.log(limit) for limit in about)

    def decides(n: int) -> bool:
        error, (strict, plain, power) = deviation / math.sqrt(n), _quantiles(n, family, level)
        if error == 0 or abs(mean) > (strict + power) * error:
            return True
        leaves = scipy.special.stdtr(n - 1, [plain - (mean - low) / error, plain - (high - mean) / error])
        return bool(leaves.sum() <= 1 - POWER)

    fewest = max(blocks_min(family, level), len(values) + 1)
    n = bisect_left(range(_BLOCKS_LOOKED_AT + 1), True, lo=fewest, key=decides)  # power never falls with more blocks
    return n if n <= _BLOCKS_LOOKED_AT else None


@lru_cache(8192)
def _quantiles(n: int, family: int, level: float) -> tuple[float, float, float]:
    """Three quantiles of Student's t for n values: for the strictest step of Holm's correction, for a two-sided test at
    ``level`` without correction, and for the power of 80 %."""
    strict, plain, power = scipy.special.stdtrit(n - 1, [1 - level / family / 2, 1 - level / 2, POWER]).tolist()
    return strict, plain, power


@lru_cache(1024)
def students(freedom: int, confidence: float) -> float:
    """Two-sided quantile of Student's t. With the probability ``confidence``, a variable with this distribution lies
    between minus the quantile and plus the quantile."""
    return float(scipy.special.stdtrit(freedom, (1 + confidence) / 2))
