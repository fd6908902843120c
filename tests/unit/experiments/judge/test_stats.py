"""Statistics over blocks: exact against brute force, against published tables, and against simulation."""

import itertools
import math
import random
from statistics import fmean, stdev

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from experiments.design.limits import BLOCKS_MAX
from experiments.judge.stats import (
    blocks_min,
    blocks_needed,
    holm,
    mean_interval,
    median_interval,
    ratio_interval,
    sign_flip_p,
    trimmed_mean,
)
from tests.unit.experiments.judge.synthetic_blocks import sweep
from tests.unit.experiments.known import known

VALUES = st.lists(st.integers(-50, 50).map(lambda each: each / 8), min_size=2, max_size=9)


def brute_force_p(values: list[float]) -> float:
    """p-value from every assignment of signs, one after the other. Exact, since the values are eighths."""
    seen = abs(sum(values))
    signs = list(itertools.product((1, -1), repeat=len(values)))
    return sum(abs(sum(s * v for s, v in zip(each, values, strict=True))) >= seen for each in signs) / len(signs)


@given(VALUES)
def test_the_sign_flip_test_is_exact(values: list[float]) -> None:
    """The sign-flip test equals brute force, with ties and zeros."""
    assert sign_flip_p(values) == pytest.approx(brute_force_p(values))


def test_the_sign_flip_test_has_a_least_p() -> None:
    """The least p is 2 ÷ 2^n, even if rounding makes sums unequal. Values without evidence have p = 1."""
    for n in (2, 10, 20, BLOCKS_MAX):
        assert sign_flip_p([0.1] * n) == pytest.approx(2.0 ** (1 - n))
    assert sign_flip_p([0.1, 0.2, 0.3, -0.1, -0.2, -0.3]) == 1
    assert [sign_flip_p(values) for values in ([], [3.0], [0.0] * 8, [1.0, math.nan], [1.0, math.inf])] == [1] * 5
    with pytest.raises(ValueError, match="41 blocks, allowed: up to 40"):
        sign_flip_p([1.0] * (BLOCKS_MAX + 1))


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_the_closed_test(p_values: list[float]) -> None:
    """Adjusted p: over all families with that test, the largest of family × its least p (closed Bonferroni)."""
    places = range(len(p_values))
    families = [chosen for size in places for chosen in itertools.combinations(places, size + 1)]
    closed = [
        max(min(1.0, len(f) * min(p_values[other] for other in f)) for f in families if place in f) for place in places
    ]
    assert holm(p_values) == pytest.approx(closed)


@pytest.mark.parametrize(
    ("n", "confidence", "t"), [(2, 0.95, 12.706), (10, 0.95, 2.262), (10, 0.9, 1.833), (21, 0.99, 2.845)]
)
def test_the_interval_of_a_mean_is_students(n: int, confidence: float, t: float) -> None:
    """The interval of a mean is the mean ± t · s ÷ √n, with t as in the table of Student's distribution."""
    values = [math.sin(each) for each in range(n)]
    half = t * stdev(values) / math.sqrt(n)
    found = mean_interval(values, confidence)
    assert (found.value, found.n) == pytest.approx((fmean(values), n))
    assert (found.low, found.high) == pytest.approx((fmean(values) - half, fmean(values) + half), abs=5e-4 * half)


@pytest.mark.parametrize(
    ("n", "ends"), [(5, (-math.inf, math.inf)), (6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15))]
)
def test_the_interval_of_a_median_is_between_two_values(n: int, ends: tuple[float, float]) -> None:
    """The interval of a median equals the tables for 95 % of Le Boudec, *Performance Evaluation*, 2010, table A.1."""
    found = median_interval([float(value) for value in range(n, 0, -1)], 0.95)
    assert (found.low, found.high) == ends
    assert (found.value, found.n) == ((n + 1) / 2, n)


def test_a_ratio_and_its_inverse_have_inverse_intervals() -> None:
    """A ratio and its inverse have inverse intervals. An interval is positive for any spread."""
    logs = [-3.0, 2.0, 0.5, 4.0]
    one, other = ratio_interval(logs, 0.95), ratio_interval([-value for value in logs], 0.95)
    assert (one.value, one.low, one.high) == pytest.approx((1 / other.value, 1 / other.high, 1 / other.low))
    assert 0 < one.low < one.value < one.high


def test_one_block_bounds_nothing_and_none_is_refused() -> None:
    """One block has no bounded interval. Two blocks far apart have an end beyond any float. No block is refused."""
    for logs in ([0.5], [-10.0, 11.0]):
        found = ratio_interval(logs, 0.9975)
        assert (found.value, found.low, found.high) == pytest.approx((math.exp(0.5), 0.0, math.inf))
    for refusing in (lambda: ratio_interval([], 0.95), lambda: trimmed_mean([], 0.2)):
        with pytest.raises(ValueError, match="no values"):
            refusing()


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=40), st.sampled_from((0.0, 0.1, 0.2, 0.4)))
def test_the_trimmed_mean_leaves_out_both_ends(values: list[float], share: float) -> None:
    """The trimmed mean leaves out this share of the values, rounded down, at each end."""
    kept = sorted(values)
    for _ in range(math.floor(share * len(values))):
        del kept[0], kept[-1]
    assert trimmed_mean(values, share) == pytest.approx(fmean(kept), abs=1e-9)


@pytest.mark.parametrize("level", [0.05, 0.025, 0.05 / 3])
@pytest.mark.parametrize("family", [1, 4, 12, 40])
def test_the_fewest_blocks_can_decide_and_one_less_cannot(family: int, level: float) -> None:
    """Equal blocks decide with the fewest blocks, and not with one less. A sweep takes the same bound."""
    n = blocks_min(family, level)
    others = [1.0] * (family - 1)
    assert holm([sign_flip_p([0.1] * n), *others])[0] < level
    assert holm([sign_flip_p([0.1] * (n - 1)), *others])[0] >= level
    assert sweep(looks=(n,)).has_verdicts == (n >= 6)


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "deviation", "family"), [(-0.1, 0.12, 4), (0.0, 0.06, 1)])
def test_so_many_blocks_decide_with_80_percent_power(
    mean: float, deviation: float, family: int, rng: random.Random
) -> None:
    """In a simulation, n blocks decide in 80 % of cases, and three quarters of n decide in fewer."""
    level, about = 0.05 / 3, (0.95, 1.05)
    pilot = [mean + deviation * each for each in (-1.0, 1.0)]  # of this mean and, once scaled, this deviation
    pilot = [mean + (value - mean) / math.sqrt(2) for value in pilot]
    assert [np.mean(pilot), np.std(pilot, ddof=1)] == pytest.approx([mean, deviation])
    n = known(blocks_needed(pilot, family, level, about))
    drawn = np.random.default_rng(rng.randrange(2**32)).normal(mean, deviation, (1500, n))
    at_n, before = (decided(drawn[:, :blocks], family, level, about) for blocks in (n, 3 * n // 4))
    assert at_n >= 0.75
    assert before < min(0.9, at_n)


def decided(
    drawn: "np.ndarray[tuple[int, int], np.dtype[np.float64]]", family: int, level: float, about: tuple[float, float]
) -> float:
    """Share of the decided experiments. Each test is at the strictest step of its family."""
    n = drawn.shape[1]
    error, means = drawn.std(axis=1, ddof=1) / math.sqrt(n), drawn.mean(axis=1)
    half = scipy.special.stdtrit(n - 1, 1 - level / 2) * error
    p = 2 * scipy.special.stdtr(n - 1, -np.abs(means) / error)
    differs = (np.abs(means) > half) & (family * p < level)
    equal = (means - half > math.log(about[0])) & (means + half < math.log(about[1]))
    return float((differs | equal).mean())


def test_what_cannot_be_known_needs_no_number_of_blocks() -> None:
    """Too few values, and a ratio at the edge of no difference, have no number of blocks."""
    assert blocks_needed([0.1], 1, 0.05, (0.95, 1.05)) is None
    assert blocks_needed([-1.0, 1.0], 1, 0.05, (0.95, 1.05)) is None
