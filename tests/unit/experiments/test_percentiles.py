"""Percentiles: intervals whose coverage is counted, from values and from histograms, and which a run carries."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments import percentiles
from experiments.percentiles import Counts, Values


def interval_ranks(n: int, percent: float, effective: float) -> tuple[float, float, float]:
    """Of the values 1 to n, so that an interval's ends are its ranks."""
    found = percentiles.of_values(np.arange(1, n + 1), percent, effective)
    return found.low, found.value, found.high


def test_the_median_of_ten_lies_between_the_second_and_the_ninth() -> None:
    """The textbook's example: with 97.9 %, and 89.1 % between the third and the eighth, which are too few."""
    assert interval_ranks(10, 50, 10) == (2, 5, 9)


@pytest.mark.parametrize(("n", "percent"), [(30, 50), (200, 90), (2000, 99), (50_000, 99.9), (40, 10)])
def test_the_ranks_hold_95_percent_and_not_much_more(n: int, percent: float) -> None:
    """By the binomial distribution: P(low ≤ number below < high)."""
    low, _, high = interval_ranks(n, percent, n)
    below = stats.binom(n, percent / 100)
    assert below.cdf(high - 1) - below.cdf(low - 1) >= 0.95
    assert below.cdf(high - 2) - below.cdf(low) < 0.95


def test_fewer_effective_values_widen_the_interval() -> None:
    """A quarter of them: about twice as wide, around the same value."""
    low, middle, high = interval_ranks(10_000, 90, 10_000)
    wide_low, wide_middle, wide_high = interval_ranks(10_000, 90, 2_500)
    assert middle == wide_middle == 9000
    assert wide_high - wide_low == pytest.approx(2 * (high - low), rel=0.05)


def test_more_effective_values_than_there_are_do_not_narrow_it() -> None:
    """Requests that alternate are not worth more than independent ones."""
    assert interval_ranks(100, 50, 1000) == interval_ranks(100, 50, 100)


@pytest.mark.slow
@pytest.mark.parametrize("percent", [50.0, 90.0, 99.0])
def test_the_interval_covers_the_truth_in_95_of_100_runs(percent: float) -> None:
    """1,500 runs of 2,000 lognormal values: at least 94 %, and not all."""
    rng = np.random.default_rng(7)
    truth = float(np.exp(stats.norm.ppf(percent / 100)))
    held = 0
    for _ in range(1500):
        found = percentiles.of_values(np.sort(rng.lognormal(size=2000)), percent, 2000)
        held += found.low <= truth <= found.high
    assert 0.94 <= held / 1500 <= 0.98


@pytest.mark.parametrize("percent", [1.0, 50.0, 99.0, 99.9])
def test_a_histogram_says_what_its_values_say(percent: float) -> None:
    """Value by value, and with buckets in which there is nothing."""
    rng = np.random.default_rng(3)
    values = np.sort(rng.integers(0, 400, 5000))
    held, counts = np.unique(values, return_counts=True)
    expected = percentiles.of_values(values, percent, 700)
    assert percentiles.of_histogram(held, counts, percent, 700) == expected
    all_values: Values = np.arange(0, 500)
    all_counts: Counts = np.bincount(values, minlength=500).astype(np.int64)
    assert percentiles.of_histogram(all_values, all_counts, percent, 700) == expected


def test_an_end_beyond_the_values_is_infinite_and_not_the_last_value() -> None:
    """The p99 of fifty values may lie anywhere above."""
    found = percentiles.of_values(np.arange(1, 51), 99, 50)
    assert found.value == 50
    assert found.high == math.inf
    assert not found.carried
    nothing = percentiles.of_values(np.arange(1, 51), 50, 0.5)
    assert (nothing.low, nothing.high) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("effective", "percents"),
    [(19, ()), (20, (50,)), (100, (50, 90)), (999, (50, 90)), (1000, (50, 90, 99)), (10_000, (50, 90, 99, 99.9))],
)
def test_a_percentile_is_carried_by_ten_values_beyond_it(effective: float, percents: tuple[float, ...]) -> None:
    """p99 takes 1,000 effective values, p99.9 ten times as many."""
    found = [percent for percent in (50, 90, 99, 99.9) if percentiles.is_carried(percent, effective)]
    assert found == list(percents)


def test_a_low_percentile_is_carried_by_those_below_it() -> None:
    """Ten of 1,000 lie below the p1."""
    assert percentiles.is_carried(1, 1000)
    assert not percentiles.is_carried(0.5, 1000)


def test_effective_values_are_those_there_are_over_the_design_effect() -> None:
    """Never more than there are; no design effect is 0."""
    assert percentiles.effective_count(1000, 4) == 250
    assert percentiles.effective_count(1000, 0.5) == 1000
    with pytest.raises(ValueError, match="over 0"):
        percentiles.effective_count(1000, 0)


@pytest.mark.parametrize("percent", [0.0, 100.0, -1.0])
def test_there_is_no_percentile_at_the_ends(percent: float) -> None:
    """Least and greatest are no percentiles; nor is there one of nothing."""
    with pytest.raises(ValueError, match="under 100"):
        percentiles.of_values(np.arange(9), percent, 9)
    with pytest.raises(ValueError, match="no values"):
        percentiles.of_values(np.arange(0), 50, 9)
