"""Dependence: design effects with known theoretical values, and arrivals that follow or break the declared process."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from clients.load.record import dependence
from clients.load.record.dependence import arrival_check, cluster_effect

Gaps = npt.NDArray[np.int64]

RATE_HZ = 10_000
MEAN_NS = 100_000
N = 20_000


def test_clusters_of_unequal_size_are_one_value_each() -> None:
    """In clusters of equal values the design effect is the size-weighted mean of the sizes."""
    rng = np.random.default_rng(5)
    effects = []
    for _ in range(50):
        sizes = rng.integers(1, 40, 400)
        above = rng.random(400) < 0.1
        share = (sizes * above).sum() / sizes.sum()
        effects.append(cluster_effect(sizes, sizes * above, share * (1 - share)))
    assert np.median(effects) == pytest.approx(26.7, rel=0.1)  # of 1 to 39: mean of squares ÷ mean


def test_independent_clusters_have_no_effect_and_nothing_is_told_of_one() -> None:
    """Values that are spread over clusters by chance have no design effect. Neither has a single cluster."""
    rng = np.random.default_rng(6)
    sums = rng.binomial(100, 0.1, 2000)
    assert cluster_effect(np.full(2000, 100), sums, 0.09) < 1.15
    assert cluster_effect(np.array([100]), np.array([10]), 0.09) == 1
    assert cluster_effect(np.array([0, 0]), np.array([0, 0]), 0.0) == 1


def poisson(seed: int, mean_ns: float = MEAN_NS, n: int = N) -> Gaps:
    """Exponential gaps."""
    return np.rint(np.random.default_rng(seed).exponential(mean_ns, n)).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 2000, 100_000])
def test_poisson_arrivals_are_accepted(n: int) -> None:
    """Of 100 runs of Poisson arrivals at most one is refused."""
    assert sum(bool(arrival_check(poisson(seed, n=n), RATE_HZ, "poisson").faults) for seed in range(100)) <= 1


def paired(seed: int) -> Gaps:
    """Arrivals in pairs."""
    gaps = np.zeros(N, np.int64)
    gaps[::2] = poisson(seed, 2 * MEAN_NS, N // 2)
    return gaps


def wavy(seed: int) -> Gaps:
    """Correct gaps on average, but alternately 500 dense and 500 sparse arrivals."""
    return (poisson(seed) * np.where(np.arange(N) // 500 % 2, 1.3, 0.7)).astype(np.int64)


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        (lambda _: np.full(N, MEAN_NS), "exponential gaps"),
        (lambda seed: poisson(seed, 1.08 * MEAN_NS), "rate"),
        (paired, "short windows"),
        (wavy, "long windows"),
        (lambda seed: np.random.default_rng(seed).gamma(4, MEAN_NS / 4, N).astype(np.int64), "short windows"),
    ],
    ids=["constant", "8 % slow", "in pairs", "in waves", "too regular"],
)
def test_what_is_not_poisson_is_refused_and_says_why(gaps: Callable[[int], Gaps], said: str) -> None:
    """Arrivals that are not Poisson are refused for each seed. Only the counts show gaps in a wrong order."""
    for seed in range(10):
        assert said in "; ".join(arrival_check(gaps(seed), RATE_HZ, "poisson").faults)


def test_sorted_exponential_gaps_are_right_but_for_their_order() -> None:
    """Sorted exponential gaps fail only by their dispersion: without this check gate 8 would let them pass."""
    check = arrival_check(np.sort(poisson(1, dependence.RESOLUTION_NS)), 1e9 / dependence.RESOLUTION_NS, "poisson")
    assert check.ks_distance < dependence.DISTANCE_MAX
    assert check.faults
    assert all("dispersion" in fault for fault in check.faults)


@pytest.mark.parametrize("late_ns", [0, 30_000])
def test_sends_that_are_late_by_less_than_a_gap_are_poisson_still(late_ns: int) -> None:
    """Sends that are up to 30 µs late still count as Poisson, at a mean gap of 100 µs."""
    for seed in range(10):
        due = np.cumsum(poisson(seed))
        sent = np.maximum.accumulate(due + np.random.default_rng(seed).integers(0, late_ns + 1, N))
        assert arrival_check(np.diff(sent), RATE_HZ, "poisson").faults == ()


@pytest.mark.parametrize(("rate_hz", "together"), [(500, 1), (1000, 1), (4000, 4), (40_000, 40)])
def test_exponential_gaps_add_up_to_erlangs(rate_hz: float, together: int) -> None:
    """Sums of exponential gaps have Erlang's distribution, so that the distance is as small as chance at any rate. The
    check has the measured values."""
    check = arrival_check(poisson(1, 1e9 / rate_hz, 40_000), rate_hz, "poisson")
    assert check.ks_distance < 1.95 / math.sqrt(40_000 // together)
    assert check.count == 40_000
    assert check.rate_ratio == pytest.approx(1e9 / rate_hz / check.mean_gap_ns)
    assert check.coefficient_of_variation == pytest.approx(1, abs=0.03)


def test_constant_arrivals_are_accepted_with_their_jitter_and_a_pause() -> None:
    """Constant arrivals with a jitter of 2 µs are accepted. So is a pause of 10 ms after which the sender catches up at
    once."""
    gaps = MEAN_NS + np.random.default_rng(1).integers(-2000, 2001, N)
    gaps[500:601] = [100 * MEAN_NS, *[1000] * 100]
    check = arrival_check(gaps, RATE_HZ, "constant")
    assert check.faults == ()
    assert check.off_period_share == pytest.approx(101 / N)


@pytest.mark.parametrize("gaps", [poisson(1), np.full(N, 102_000), np.tile([1000, 199_000], N // 2)])
def test_what_is_not_constant_is_refused(gaps: Gaps) -> None:
    """Poisson arrivals, arrivals 2 % too slow, and arrivals in pairs are refused as constant ones."""
    assert arrival_check(gaps, RATE_HZ, "constant").faults


def test_arrivals_that_cannot_be_checked_are_refused() -> None:
    """Too few arrivals are a fault, and so are simultaneous ones. No rate, no gaps, or a negative gap is an error."""
    assert arrival_check(poisson(1, n=99), RATE_HZ, "poisson").faults == ("99 gaps, needed: 100",)
    assert arrival_check(np.zeros(N, np.int64), RATE_HZ, "poisson").faults
    assert arrival_check(np.zeros(N, np.int64), RATE_HZ, "constant").faults
    for gaps, rate_hz in ((poisson(1), 0.0), (poisson(1, n=0), 1.0), (np.array([1, -1]), 1.0)):
        with pytest.raises(ValueError, match=r"gap|rate"):
            arrival_check(gaps, rate_hz, "poisson")
