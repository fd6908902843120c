"""Statistics: known values, scipy's values, coverage, and the three verdicts in their order."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy import stats as scipy_stats

from experiments import stats
from experiments.stats import Estimate, Verdict


def gauss(rng: random.Random, mean: float, deviation: float, n: int) -> list[float]:
    return [rng.gauss(mean, deviation) for _ in range(n)]


def test_a_mean_and_its_interval_are_those_of_the_textbook() -> None:
    """Values 1 to 5: mean 3, standard error √0.5, t(4) 2.7764."""
    estimate = stats.mean_interval([1, 2, 3, 4, 5])
    assert estimate.value == 3
    assert estimate.high - 3 == pytest.approx(2.776445 * math.sqrt(0.5), rel=1e-6)
    assert 3 - estimate.low == pytest.approx(estimate.high - 3)
    assert estimate.n == 5


def test_the_interval_is_the_one_that_scipy_gives() -> None:
    """Of nine values, by scipy's one-sample t test."""
    values = gauss(random.Random(3), 10, 2, 9)
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    estimate = stats.mean_interval(values)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))


def test_one_value_has_an_unbounded_interval_and_none_has_no_mean() -> None:
    """One run says nothing of how sure its mean is."""
    assert stats.mean_interval([4.0]) == Estimate(4.0, -math.inf, math.inf, 1)
    assert stats.ratio_interval([0.0]) == Estimate(1.0, 0.0, math.inf, 1)
    with pytest.raises(ValueError, match="no values"):
        stats.mean_interval([])


@pytest.mark.parametrize("n", [2, 6, 9])
def test_the_interval_of_a_ratio_covers_the_truth_in_95_of_100_experiments(n: int) -> None:
    """2,000 experiments of lognormal ratios: 93.5 to 96.5 % of the intervals cover; a normal quantile's do not."""
    rng = random.Random(n)
    covered = 0
    for _ in range(2000):
        ratio = stats.ratio_interval(gauss(rng, math.log(1.3), 0.2, n))
        covered += ratio.low < 1.3 < ratio.high
    assert 0.935 < covered / 2000 < 0.965


def test_log_ratios_are_taken_within_blocks_that_have_both_arms() -> None:
    """A drift that both arms share within a block is gone; a block with one arm does not count."""
    above = {1: 2.0, 2: 20.0, 3: 200.0, 4: 5.0}
    below = {3: 100.0, 2: 10.0, 1: 1.0, 9: 1.0}
    assert stats.log_ratios(above, below) == pytest.approx([math.log(2)] * 3)


def test_a_ratio_and_its_inverse_have_inverse_intervals() -> None:
    """Which arm stands above the line does not matter: the reason for logarithms."""
    values = gauss(random.Random(1), 0.2, 0.1, 8)
    ratio, inverse = stats.ratio_interval(values), stats.ratio_interval([-value for value in values])
    assert (1 / inverse.high, 1 / inverse.value, 1 / inverse.low) == pytest.approx((ratio.low, ratio.value, ratio.high))


def test_the_bootstrap_agrees_where_there_is_much_data_and_is_narrower_where_there_is_little() -> None:
    """Of 200 blocks, and of 6; and its seed repeats it."""
    rng = random.Random(2)
    much, little = gauss(rng, 0.1, 0.1, 200), gauss(rng, 0.1, 0.1, 6)
    t, bootstrap = stats.ratio_interval(much), stats.bootstrap_ratio_interval(much, seed=1)
    assert (bootstrap.low, bootstrap.high) == pytest.approx((t.low, t.high), abs=0.003)
    t, bootstrap = stats.ratio_interval(little), stats.bootstrap_ratio_interval(little, seed=1)
    assert bootstrap.high - bootstrap.low < t.high - t.low
    assert bootstrap == stats.bootstrap_ratio_interval(little, seed=1)


def exact_p(values: list[float]) -> float:
    """Two-sided p by all sign assignments, in the plainest way: how many means lie at least as far from 0."""
    means = [
        abs(np.mean([sign * value for sign, value in zip(signs, values, strict=True)]))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    return float(np.mean([mean >= abs(np.mean(values)) - 1e-12 for mean in means]))


@pytest.mark.parametrize("n", [2, 5, 9, 11])
def test_the_sign_flip_test_is_exact_up_to_16_blocks(n: int) -> None:
    """Its p is the one counted over every assignment of signs; also where sums are equal but for rounding."""
    values = gauss(random.Random(n), 0.1, 0.2, n)
    assert stats.sign_flip_p(values, seed=1) == exact_p(values)
    tied = [random.Random(n + place).choice((-0.3, 0.1, 0.2)) for place in range(n)]
    assert stats.sign_flip_p(tied, seed=1) == exact_p(tied)


def test_what_is_no_number_is_no_difference() -> None:
    """The least p there is would be a verdict."""
    assert stats.sign_flip_p([math.nan, 1.0, 2.0, 0.3, 0.4, 0.5], seed=1) == 1.0


@pytest.mark.parametrize("n", [6, 12, 16])
def test_the_exact_sign_flip_test_is_scipys(n: int) -> None:
    """Of values without ties."""
    values = gauss(random.Random(n), 0.03, 0.1, n)
    theirs = scipy_stats.permutation_test(
        [values], np.mean, permutation_type="samples", n_resamples=2**16, vectorized=True
    )
    assert stats.sign_flip_p(values, seed=1) == theirs.pvalue


def test_the_least_p_of_nine_blocks_survives_holm_over_twelve_comparisons() -> None:
    """And not over thirteen: so many blocks does a family need."""
    p = stats.sign_flip_p([0.1] * 9, seed=1)
    assert p == 2 / 2**9
    assert stats.holm([p] * 12)[0] < 0.05
    assert stats.holm([p] * 13)[0] > 0.05


def test_beyond_16_blocks_the_sign_flip_test_draws_with_its_seed() -> None:
    """The seed repeats it, and it stays near the t test's p."""
    values = gauss(random.Random(4), 0.05, 0.2, 20)
    p = stats.sign_flip_p(values, seed=1)
    assert p == stats.sign_flip_p(values, seed=1)
    assert p == pytest.approx(float(scipy_stats.ttest_1samp(values, 0).pvalue), abs=0.02)


def test_one_block_has_no_p_value_but_1() -> None:
    """There is nothing to compare its sign with."""
    assert stats.sign_flip_p([0.4], seed=1) == 1.0


def test_holm_adjusts_as_in_the_published_example() -> None:
    """p 0.01, 0.04, 0.03, 0.005 → 0.03, 0.06, 0.06, 0.02, as R's p.adjust(method="holm") gives."""
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_never_exceeds_1_and_keeps_the_order_of_the_p_values() -> None:
    """And an empty family has no p-values."""
    assert stats.holm([0.9, 0.8, 0.7]) == [1.0, 1.0, 1.0]
    assert stats.holm([]) == []


def ratio(low: float, high: float, n: int = 9) -> Estimate:
    return Estimate(math.sqrt(low * high), low, high, n)


@pytest.mark.parametrize(
    ("estimate", "p_holm", "verdict"),
    [
        (ratio(0.97, 1.03), 0.9, Verdict.EQUIVALENT),
        (ratio(1.01, 1.03), 0.001, Verdict.EQUIVALENT),  # first in the order: a difference too small to matter
        (ratio(0.70, 0.94), 0.01, Verdict.FASTER),
        (ratio(1.06, 1.40), 0.01, Verdict.SLOWER),
        (ratio(1.06, 1.40), 0.06, Verdict.INCONCLUSIVE),  # Holm does not let it pass
        (ratio(0.93, 1.03), 0.01, Verdict.INCONCLUSIVE),  # the interval holds 1
        (ratio(0.94, 1.04), 0.9, Verdict.INCONCLUSIVE),  # "no difference" is not to be had from two similar means
        (ratio(0.99, 1.01, n=5), 0.9, Verdict.INCONCLUSIVE),  # too few blocks
        (ratio(2.0, 2.1, n=5), 0.001, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts(estimate: Estimate, p_holm: float, verdict: Verdict) -> None:
    """The three, in the order of the specification."""
    assert stats.judge(estimate, p_holm) is verdict


def test_a_family_is_corrected_for_its_size() -> None:
    """The same data is a difference alone and none among thirteen, of which each has the least p that 9 blocks give."""
    values = [0.3, 0.31, 0.32, 0.29, 0.3, 0.28, 0.33, 0.3, 0.31]
    (alone,) = stats.compare({"a": values}, seed=1)
    assert alone.verdict is Verdict.SLOWER
    assert alone.ratio.value == pytest.approx(math.exp(np.mean(values)))
    family = stats.compare({str(number): values for number in range(13)}, seed=1)
    assert {comparison.verdict for comparison in family} == {Verdict.INCONCLUSIVE}
    assert {comparison.blocks_needed for comparison in family} == {10}


@pytest.mark.slow
def test_noise_alone_is_a_difference_in_at_most_5_of_100_families() -> None:
    """120 families of three A/A comparisons: 10 allows for chance; without Holm's correction it would be some 16."""
    rng = random.Random(11)
    families = [{name: gauss(rng, 0, 0.3, 8) for name in "abc"} for _ in range(120)]
    wrong = sum(
        any(comparison.verdict in (Verdict.FASTER, Verdict.SLOWER) for comparison in stats.compare(family, seed=1))
        for family in families
    )
    assert wrong <= 10


def test_the_blocks_needed_do_decide() -> None:
    """A sample of the predicted size, with the same mean and spread, has a verdict; one block fewer had not."""
    values = [0.15, -0.05, 0.2, 0.1, -0.02, 0.12]
    needed = stats.blocks_needed(values, family_size=3)
    assert needed is not None
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    for n, decides in ((needed, True), (needed - 1, False)):
        half = float(scipy_stats.t.ppf(1 - 0.05 / 3 / 2, n - 1)) * deviation / math.sqrt(n)
        assert (mean - half > 0) is decides


def test_blocks_needed_are_unknown_from_one_block_and_where_a_thousand_would_not_do() -> None:
    """None, not a guess."""
    assert stats.blocks_needed([0.3], family_size=1) is None
    assert stats.blocks_needed([3.0, -2.9, 3.1, -3.0], family_size=1) is None


def test_no_fewer_blocks_are_predicted_than_the_family_and_the_blocks_that_were_not_enough_ask_for() -> None:
    """Thirteen comparisons need ten blocks however clear the data; one needs six, and more than it has had."""
    clear = [0.3, 0.31, 0.3, 0.29, 0.3, 0.31, 0.3, 0.3]
    assert stats.blocks_needed(clear[:6], family_size=13) == 10
    assert stats.blocks_needed(clear[:3], family_size=1) == 6
    assert stats.blocks_needed(clear, family_size=1) == 9


def test_a_small_difference_is_decided_as_equivalent() -> None:
    """Mean 0.01, deviation 0.047: from 9 blocks on the interval lies within 0.95 to 1.05."""
    assert stats.blocks_needed([0.03, -0.05, 0.06, 0.0], family_size=1) == 9


@pytest.mark.slow
def test_the_equivalence_test_says_what_the_interval_says() -> None:
    """Its p is under 0.025 exactly where the 95 % interval lies inside 0.95 to 1.05, and is scipy's larger one."""
    rng = random.Random(5)
    inside = 0
    for _ in range(300):
        values = gauss(rng, rng.uniform(-0.06, 0.06), rng.uniform(0.01, 0.06), rng.randint(3, 12))
        p, interval = stats.equivalence_p(values), stats.ratio_interval(values)
        within = interval.low > 0.95 and interval.high < 1.05
        assert (p < stats.ALPHA_EQUIVALENT) is within
        above = scipy_stats.ttest_1samp(values, math.log(0.95), alternative="greater").pvalue
        below = scipy_stats.ttest_1samp(values, math.log(1.05), alternative="less").pvalue
        assert p == pytest.approx(max(above, below))
        inside += within
    assert 50 < inside < 250


def test_equivalence_is_not_to_be_had_from_one_block_and_is_plain_where_all_blocks_agree() -> None:
    """p 1 of one block; of blocks without any spread, 0 inside the limits and 1 outside."""
    assert stats.equivalence_p([0.0]) == 1.0
    assert stats.equivalence_p([0.01] * 6) == 0.0
    assert stats.equivalence_p([0.06] * 6) == 1.0


@pytest.mark.slow
def test_arms_that_differ_by_5_percent_are_called_equivalent_in_at_most_3_of_100_experiments() -> None:
    """4,000 experiments at the limit itself: 2.5 % by design; at the usual level of 5 % it would be twice as many."""
    rng = random.Random(6)
    wrong = sum(stats.equivalence_p(gauss(rng, math.log(1.05), 0.02, 9)) < stats.ALPHA_EQUIVALENT for _ in range(4000))
    assert 0.018 < wrong / 4000 < 0.032


def test_the_bootstrap_disagrees_where_one_block_is_far_off() -> None:
    """And not where the blocks lie evenly, however narrow its own interval."""
    even = [-0.1, -0.06, -0.02, 0.02, 0.06, 0.1]
    (good,) = stats.compare({"a": even}, seed=1)
    assert good.bootstrap is not None
    assert good.bootstrap.high - good.bootstrap.low < 0.8 * (good.ratio.high - good.ratio.low)
    assert not good.disagreement
    (bad,) = stats.compare({"a": [*even, 0.02, 0.0, 1.5]}, seed=1)
    assert bad.disagreement


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most"), [(6, 0.08), (12, 0.05)])
def test_the_bootstrap_seldom_disagrees_over_normal_blocks(n: int, most: float) -> None:
    """500 experiments each: about 5 of 100 with 6 blocks, 2 with 12."""
    rng = random.Random(n)
    disagreeing = 0
    for _ in range(500):
        values = gauss(rng, 0.1, 0.1, n)
        bootstrap = stats.bootstrap_ratio_interval(values, seed=1, draws=2000)
        disagreeing += stats.intervals_disagree(stats.ratio_interval(values), bootstrap)
    assert disagreeing / 500 <= most


def test_one_or_two_blocks_show_no_disagreement() -> None:
    """One block has no bootstrap, and two are always even."""
    (one,) = stats.compare({"a": [0.3]}, seed=1)
    assert one.bootstrap is None
    assert not one.disagreement
    (two,) = stats.compare({"a": [0.3, 0.5]}, seed=1)
    assert not two.disagreement


@pytest.mark.parametrize(("family_size", "blocks"), [(1, 6), (2, 7), (6, 8), (12, 9), (13, 10), (72, 12), (1638, 16)])
def test_the_fewest_blocks_are_those_whose_least_p_survives_holm(family_size: int, blocks: int) -> None:
    """One block fewer could show no difference, however large."""
    assert stats.blocks_min(family_size) == blocks
    assert stats.holm([2 / 2**blocks] * family_size)[0] < 0.05
    assert blocks == stats.BLOCKS_MIN or stats.holm([2 / 2 ** (blocks - 1)] * family_size)[0] >= 0.05


@pytest.mark.parametrize("family_size", [0, 1639])
def test_no_number_of_blocks_serves_no_comparison_or_too_many(family_size: int) -> None:
    """Beyond 16 blocks the sign-flip test draws, and its least p falls no further."""
    with pytest.raises(ValueError, match="allowed: 1 to 1638"):
        stats.blocks_min(family_size)


def test_blocks_without_any_spread_need_one_more() -> None:
    """Of equal log-ratios the next block decides, without a warning about a division by 0."""
    assert stats.blocks_needed([0.2] * 7, family_size=1) == 8
