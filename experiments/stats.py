"""Statistics over runs: intervals, tests, and the three verdicts.

The unit is the run, not the request: requests of one run are not independent. A comparison is the logarithm of a ratio
within a block, one per block; its 95 % interval is Student's t on those. A difference must also survive a sign-flip
test (if the two arms were the same, each block's log-ratio would as likely have the other sign), with Holm's correction
over the family of comparisons that was declared before the data was seen. The percentile bootstrap is a cross-check
alone: over 6 to 12 blocks it covers 86 to 92 %, not 95.

Verdicts, in this order: EQUIVALENT if the interval of the ratio lies inside 0.95 to 1.05; FASTER or SLOWER if it
excludes 1 and Holm's adjusted p is under 0.05; INCONCLUSIVE otherwise, with the number of blocks that would decide.
Ratios are of times (or of CPU-seconds): under 1, what stands above the line is FASTER.

numpy and scipy compute what they have; Holm's correction, which they do not have, is written here (Holm 1979, "A simple
sequentially rejective multiple test procedure"). Everything is pure; chance comes from the seed that is given.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
EQUIVALENCE = (0.95, 1.05)
"""Within these two, a ratio counts as no difference."""

ALPHA = 0.05

BLOCKS_MIN = 6
"""Fewer blocks decide nothing: with 5, even a sign-flip test on one comparison cannot reach p < 0.05 (2 ÷ 2^5)."""

EXACT_MAX = 16
"""Up to so many blocks every one of the 2^n sign assignments is tried."""

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


def sign_flip_p(values: Sequence[float], seed: int) -> float:
    """Two-sided p of the mean being 0, by flipping signs: exact up to 16 values, then by 65,536 seeded draws.

    At least ``2 / 2**n``. 1 for fewer than two values.
    """
    if len(values) < 2:
        return 1.0
    result = stats.permutation_test(
        [list(values)],
        np.mean,
        permutation_type="samples",  # of one sample: every assignment of signs
        n_resamples=2**EXACT_MAX,  # exact where there are no more assignments than this
        vectorized=True,
        batch=4096,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


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
        comparisons.append(Comparison(name, ratio, p, p_holm, verdict, needed))
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


def blocks_needed(block_log_ratios: Sequence[float], family_size: int) -> int | None:
    """How many blocks in all would decide, if mean and spread stay as they are; None: over 1000, or unknown.

    A difference must show at Holm's strictest step, which is Bonferroni's: a prediction on the safe side.
    """
    if len(block_log_ratios) < 2:
        return None
    mean, deviation = float(np.mean(block_log_ratios)), float(np.std(block_log_ratios, ddof=1))
    low, high = (math.log(limit) for limit in EQUIVALENCE)
    for n in range(max(BLOCKS_MIN, len(block_log_ratios) + 1), _BLOCKS_LOOKED_AT + 1):
        half = _half_width(deviation, n, CONFIDENCE)
        if low < mean - half and mean + half < high:
            return n
        reachable = family_size * 2.0 ** (1 - n) < ALPHA
        if reachable and abs(mean) > _half_width(deviation, n, 1 - ALPHA / family_size):
            return n
    return None


def _half_width(deviation: float, n: int, confidence: float) -> float:
    """Half of Student's t interval of a mean of ``n`` values with this standard deviation."""
    return float(stats.t.ppf((1 + confidence) / 2, n - 1)) * deviation / math.sqrt(n)
