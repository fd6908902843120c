"""Statistics over runs: intervals, tests, and the three verdicts.

The unit is the run, not the request: requests of one run are not independent. A comparison is the logarithm of a ratio
within a block, one per block; its 95 % interval is Student's t on those. A difference must also survive a sign-flip
test (if the two arms were the same, each block's log-ratio would as likely have the other sign), with Holm's correction
over the family of comparisons that was declared before the data was seen. The percentile bootstrap is a cross-check
alone: over 6 to 12 blocks it covers 86 to 92 %, not 95.

Verdicts, in this order: EQUIVALENT if the interval of the ratio lies inside 0.95 to 1.05; FASTER or SLOWER if it
excludes 1 and Holm's adjusted p is under 0.05; INCONCLUSIVE otherwise, with the number of blocks that would decide.
Ratios are of times (or of CPU-seconds): of A ÷ B, under 1, A is FASTER.

EQUIVALENT is Schuirmann's two one-sided t tests ("A comparison of the two one-sided tests procedure and the power
approach", 1987), each at 2.5 %: a ratio that is truly 0.95 or 1.05, or farther off, is called EQUIVALENT in at most
2.5 of 100 experiments. That is stricter than the usual equivalence test, whose 5 % goes with a 90 % interval. Holm's
correction does not touch it: of many ratios that are all truly at a limit, up to 2.5 % would be called EQUIVALENT.

numpy and scipy compute what they have; Holm's correction, which they do not have, is written here (Holm 1979, "A simple
sequentially rejective multiple test procedure"), the two one-sided tests on top of scipy's t distribution, and the
exact sign-flip test, which scipy has and takes much longer for. All is pure; chance comes from the seed that is given.
A part of scipy is loaded when it is first named, a second or two for its statistics: so no module here imports one by
name, and a command that judges nothing starts at once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy

CONFIDENCE = 0.95
EQUIVALENCE = (0.95, 1.05)
"""Within these two, a ratio counts as no difference."""

ALPHA = 0.05

ALPHA_EQUIVALENT = (1 - CONFIDENCE) / 2
"""Of each of the two one-sided tests behind EQUIVALENT, and so of both: that the interval lies inside says the same."""

BLOCKS_MIN = 6
"""Fewer blocks decide nothing: with 5, even a sign-flip test on one comparison cannot reach p < 0.05 (2 ÷ 2^5)."""

EXACT_MAX = 16
"""Up to so many blocks every one of the 2^n sign assignments is tried."""

FAMILY_MAX = 1638
"""Comparisons in a family, at most: beyond ``EXACT_MAX`` blocks the sign-flip test draws 2^16 times, and its least p,
2 ÷ (2^16 + 1), is then the floor whatever the number of blocks."""

DISAGREEMENT = 0.37
"""The two intervals disagree if their middles lie this ÷ √n of the bootstrap's half-width apart. Normal log-ratios do
so in 5 of 100 experiments of 6 blocks and in 2 of 100 of 12, simulated; with one block 6 deviations off, in over 60."""

_ROUNDING = 1e-12
"""Of the values' sum of magnitudes: by how much two sums may differ and be equal."""

_BLOCKS_LOOKED_AT = 1000
"""The search for the number of blocks that would decide ends here."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, or the ratio that a mean of logarithms stands for, with its 95 % interval, from ``n`` values.

    With one value the interval is unbounded.
    """

    value: float
    low: float
    high: float
    n: int


class Verdict(Enum):
    """How a comparison ended."""

    EQUIVALENT = "EQUIVALENT"
    FASTER = "FASTER"
    SLOWER = "SLOWER"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a declared family, judged."""

    name: str
    ratio: Estimate
    p: float
    """Of the sign-flip test, before correction."""
    p_holm: float
    verdict: Verdict
    blocks_needed: int | None
    """For INCONCLUSIVE: blocks in all that would decide, if what was seen so far holds; None: over 1000, or unknown."""
    p_equivalence: float = 1.0
    """Of the two one-sided tests against 0.95 and 1.05: under 0.025 where the interval lies inside them."""
    bootstrap: Estimate | None = None
    """The cross-check; None for a single block."""

    @property
    def disagreement(self) -> bool:
        """Whether the cross-check says something else than the t interval: see ``intervals_disagree``."""
        return self.bootstrap is not None and intervals_disagree(self.ratio, self.bootstrap)


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The mean of independent values with Student's t interval. ValueError for none at all."""
    if not values:
        raise ValueError("no values to take a mean of")
    mean, n = float(np.mean(values)), len(values)
    if n == 1:
        return Estimate(mean, -math.inf, math.inf, 1)
    half = _half_width(float(np.std(values, ddof=1)), n, confidence)
    return Estimate(mean, mean - half, mean + half, n)


def log_ratios(above: Mapping[int, float], below: Mapping[int, float]) -> list[float]:
    """``ln(above / below)`` for every block that has both, in the blocks' order. The values must be over 0."""
    return [math.log(above[block] / below[block]) for block in sorted(above.keys() & below.keys())]


def ratio_interval(block_log_ratios: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The ratio that the blocks' log-ratios speak for: exp of their mean, and of its t interval's ends."""
    mean = mean_interval(block_log_ratios, confidence)
    high = math.inf if math.isinf(mean.high) else math.exp(mean.high)
    return Estimate(math.exp(mean.value), math.exp(mean.low), high, mean.n)


def geometric_interval(values: Sequence[float]) -> Estimate:
    """The geometric mean of positive values, and its interval, positive too: for what is skewed, as waits are."""
    return ratio_interval([math.log(value) for value in values])


def bootstrap_ratio_interval(block_log_ratios: Sequence[float], seed: int, draws: int = 10_000) -> Estimate:
    """As ``ratio_interval``, by the percentile bootstrap: a cross-check that must not stand alone."""
    values = np.asarray(block_log_ratios)
    rng = np.random.default_rng(seed)
    means = rng.choice(values, size=(draws, len(values))).mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(np.exp(values.mean())), float(np.exp(low)), float(np.exp(high)), len(values))


def intervals_disagree(ratio: Estimate, bootstrap: Estimate) -> bool:
    """Whether the bootstrap's interval lies elsewhere than the t interval of the same blocks, on the log scale.

    That it is narrower is known and is no disagreement; that its middle is off the t interval's is: the log-ratios are
    then skewed, mostly by one block far from the others, and the t interval, symmetric, may be wrong about either end.
    Then look at the blocks. Fewer than three of them, or an unbounded interval, show nothing.
    """
    if ratio.n < 3 or math.isinf(ratio.high) or ratio.low == 0:
        return False
    middle, _ = _middle_and_half(ratio)
    other, narrow = _middle_and_half(bootstrap)
    return abs(other - middle) > DISAGREEMENT / math.sqrt(ratio.n) * narrow


def equivalence_p(block_log_ratios: Sequence[float], limits: tuple[float, float] = EQUIVALENCE) -> float:
    """p of two one-sided t tests: that the true ratio is at ``limits`` or outside them. 1 for fewer than two values.

    Under 0.025 exactly where the 95 % interval of ``ratio_interval`` lies inside the limits.
    """
    n = len(block_log_ratios)
    if n < 2:
        return 1.0
    mean, low, high = float(np.mean(block_log_ratios)), math.log(limits[0]), math.log(limits[1])
    error = float(np.std(block_log_ratios, ddof=1)) / math.sqrt(n)
    if not error:
        return 0.0 if low < mean < high else 1.0
    nearest = min(mean - low, high - mean)  # the larger p of the two is that of the nearer limit
    return float(scipy.stats.t.sf(nearest / error, n - 1))


def sign_flip_p(values: Sequence[float], seed: int) -> float:
    """Two-sided p of the mean being 0, by flipping signs: exact up to 16 values, then by 65,536 seeded draws.

    At least ``2 / 2**n``. 1 for fewer than two values.
    """
    if len(values) < 2:
        return 1.0
    if len(values) <= EXACT_MAX:
        return _exact_sign_flip_p(np.asarray(values, dtype=np.float64))
    result = scipy.stats.permutation_test(
        [list(values)],
        np.mean,
        permutation_type="samples",  # of one sample: signs
        n_resamples=2**EXACT_MAX,
        vectorized=True,
        batch=4096,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _exact_sign_flip_p(values: npt.NDArray[np.float64]) -> float:
    """The share of all assignments of signs whose sum is as far from 0 as the one seen (Fisher, "The Design of
    Experiments", 1935, section 21). As scipy's, and much faster; sums that differ by rounding alone are equal here.

    1 where a value is no number: nothing is less than that.
    """
    as_far = abs(values.sum()) - _ROUNDING * np.abs(values).sum()
    return 1.0 - float((np.abs(_signs(len(values)) @ values) < as_far).mean())


@lru_cache(4)
def _signs(n: int) -> npt.NDArray[np.float64]:
    """Every assignment of signs to n values, a row each: 8 MB for the most there are."""
    signs = np.where(np.arange(2**n)[:, np.newaxis] >> np.arange(n) & 1, -1.0, 1.0)
    signs.setflags(write=False)
    return signs


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    ranked = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(ranked):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def compare(family: Mapping[str, Sequence[float]], seed: int, absent: int = 0) -> list[Comparison]:
    """Judges a family of comparisons: each a name and its blocks' log-ratios.

    ``absent`` are declared too, and have no data: they count for Holm's correction as if nothing spoke for them.
    """
    p_values = [sign_flip_p(values, seed) for values in family.values()]
    adjusted = holm([*p_values, *[1.0] * absent])[: len(p_values)]
    comparisons: list[Comparison] = []
    for (name, values), p, p_holm in zip(family.items(), p_values, adjusted, strict=True):
        ratio = ratio_interval(values)
        verdict = judge(ratio, p_holm)
        needed = blocks_needed(values, len(family) + absent) if verdict is Verdict.INCONCLUSIVE else None
        bootstrap = bootstrap_ratio_interval(values, seed) if len(values) > 1 else None
        comparisons.append(
            Comparison(name, ratio, p, p_holm, verdict, needed, equivalence_p(values), bootstrap),
        )
    return comparisons


def judge(ratio: Estimate, p_holm: float) -> Verdict:
    """The verdict on one ratio of times, given its p after Holm's correction."""
    if ratio.n < BLOCKS_MIN:
        return Verdict.INCONCLUSIVE
    if EQUIVALENCE[0] < ratio.low and ratio.high < EQUIVALENCE[1]:
        return Verdict.EQUIVALENT
    if p_holm < ALPHA and ratio.high < 1:
        return Verdict.FASTER
    if p_holm < ALPHA and ratio.low > 1:
        return Verdict.SLOWER
    return Verdict.INCONCLUSIVE


def blocks_min(family_size: int) -> int:
    """The fewest blocks that can show a difference in a declared family: 6 for one comparison, 9 for 12, 12 for 72.

    However clear the data, the sign-flip test gives no p under ``2 / 2**n``, and Holm multiplies the least p of the
    family by its size: the product must be under 0.05. ValueError for none, or for over 1638 comparisons.
    """
    if not 1 <= family_size <= FAMILY_MAX:
        raise ValueError(f"a family of {family_size} comparisons, allowed: 1 to {FAMILY_MAX}")
    n = BLOCKS_MIN
    while family_size * 2.0 ** (1 - n) >= ALPHA:
        n += 1
    return n


def blocks_needed(block_log_ratios: Sequence[float], family_size: int) -> int | None:
    """How many blocks in all would decide, if mean and spread stay as they are; None: over 1000, or unknown.

    A difference must show at Holm's strictest step, which is Bonferroni's: a prediction on the safe side.
    """
    if len(block_log_ratios) < 2:
        return None
    mean, deviation = float(np.mean(block_log_ratios)), float(np.std(block_log_ratios, ddof=1))
    low, high = (math.log(limit) for limit in EQUIVALENCE)
    half = deviation * _half_widths(CONFIDENCE)
    inside = (low < mean - half) & (mean + half < high)
    apart = abs(mean) > deviation * _half_widths(1 - ALPHA / family_size)
    apart[: blocks_min(family_size)] = False
    decides = inside | apart
    decides[: max(BLOCKS_MIN, len(block_log_ratios) + 1)] = False
    return int(np.argmax(decides)) if decides.any() else None


def _half_width(deviation: float, n: int, confidence: float) -> float:
    """Half of Student's t interval of a mean of ``n`` values with this standard deviation."""
    return float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * deviation / math.sqrt(n)


@lru_cache(maxsize=64)
def _half_widths(confidence: float) -> npt.NDArray[np.float64]:
    """``_half_width`` of deviation 1 by the number of values, up to the last that is looked at; 0 under 2."""
    n = np.arange(2, _BLOCKS_LOOKED_AT + 1)
    found = np.zeros(_BLOCKS_LOOKED_AT + 1)
    found[2:] = scipy.stats.t.ppf((1 + confidence) / 2, n - 1) / np.sqrt(n)
    found.flags.writeable = False
    return found


def _middle_and_half(estimate: Estimate) -> tuple[float, float]:
    """Middle and half-width of an interval of a ratio, on the log scale."""
    low, high = math.log(estimate.low), math.log(estimate.high)
    return (low + high) / 2, (high - low) / 2
