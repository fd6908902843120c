"""Steady state: what is steady passes, warm-ups are cut off, drifts are refused, and how often each goes wrong."""

import numpy as np
import pytest

from experiments import steady_state
from experiments.steady_state import Series

SLICES = 50
PLACES = np.arange(SLICES)


def steady(seed: int, spread: float = 0.02) -> Series:
    """Slices around 100."""
    return np.asarray(100 * (1 + spread * np.random.default_rng(seed).standard_normal(SLICES)))


def share(shape: Series, spread: float = 0.02) -> tuple[float, float]:
    """Of 200 runs of this shape: how many are steady from their start, how many not at all."""
    found = [steady_state.detect(steady(seed, spread) * shape) for seed in range(200)]
    return sum(one.from_start for one in found) / 200, sum(not one.steady for one in found) / 200


def test_a_steady_run_is_steady_from_its_start() -> None:
    """Of 200, six at most are not; one such alarm in a hundred is expected of one series."""
    from_start, not_at_all = share(np.ones(SLICES))
    assert from_start >= 0.97
    assert not_at_all <= 0.02


def test_a_run_whose_slices_are_all_alike_is_steady() -> None:
    """No spread is no alarm, nor a division by 0; and neither is a run of nothing but zeros."""
    assert steady_state.detect([100.0] * 20, [7] * 20).from_start
    assert steady_state.detect([0.0] * 20).from_start


@pytest.mark.parametrize(
    ("cut", "shape"),
    [
        (3, 1 + 1.0 * (PLACES < 3)),
        (10, 1 + 0.5 * np.exp(-PLACES / 5)),
        (6, 1 + 0.3 * np.exp(-PLACES / 2)),
        (1, 1 + 3.0 * (PLACES < 1)),
        (4, 1 + 1.0 * ((PLACES > 0) & (PLACES < 4))),
    ],
    ids=["three slices twice as long", "slow decay", "fast decay", "the first slice alone", "all but the first"],
)
def test_a_warm_up_is_found_and_cut_off(cut: int, shape: Series) -> None:
    """Nearly always, and about where it ends; the rest is steady."""
    from_start, not_at_all = share(shape)
    assert from_start <= 0.05
    assert not_at_all <= 0.06
    cuts = [steady_state.detect(steady(seed) * shape).first_slice for seed in range(50)]
    assert cut <= np.median(cuts) <= 2 * cut + 1


@pytest.mark.parametrize(
    "shape",
    [1 + 0.5 * PLACES / SLICES, 1 - 0.4 * PLACES / SLICES, 1 + 0.2 * (PLACES >= 30), 1 + 0.8 * np.exp(-PLACES / 30)],
    ids=["rising", "falling", "a step", "a warm-up without end"],
)
def test_a_run_that_never_settles_is_not_steady(shape: Series) -> None:
    """It is never steady from its start, and mostly not from a slice on either."""
    from_start, not_at_all = share(shape)
    assert from_start <= 0.01
    assert not_at_all >= 0.85


def test_a_run_that_settles_only_in_its_middle_is_not_steady() -> None:
    """The rule's cut at half of the run is none, however steady the rest."""
    found = steady_state.detect(steady(2) * (1 + 0.5 * (PLACES < 25)))
    assert found.first_slice == 25
    assert not found.steady


def test_a_drift_too_small_to_bias_a_verdict_is_none() -> None:
    """1 % over the run, however plain it is to see."""
    found = steady_state.detect(100 + PLACES / SLICES)
    assert found.p_drift < 1e-9
    assert found.from_start
    assert found.drift == pytest.approx(0.009, abs=0.001)


def test_a_single_pause_does_not_make_a_run_unsteady() -> None:
    """One slice of fifty takes five times as long, wherever it is but at the very start."""
    for place in (1, 10, 24, 49):
        assert share(1 + 4.0 * np.equal(PLACES, place))[0] >= 0.96


def test_a_drift_of_the_counts_alone_is_found() -> None:
    """Replies that become fewer, at the same mean response."""
    assert not steady_state.detect(steady(1), 1000 * (1 - 0.5 * PLACES / SLICES)).from_start


@pytest.mark.slow
@pytest.mark.parametrize(("slices", "correlation", "most"), [(50, 0.0, 0.035), (50, 0.5, 0.05), (100, 0.7, 0.05)])
def test_autocorrelated_slices_raise_few_alarms(slices: int, correlation: float, most: float) -> None:
    """1,000 runs, mean and count: the rates that the module states."""
    rng = np.random.default_rng(4)
    new = rng.standard_normal((2, 1000, slices))
    runs = new.copy()
    for place in range(1, slices):
        runs[..., place] = correlation * runs[..., place - 1] + np.sqrt(1 - correlation**2) * new[..., place]
    means, counts = 100 + 10 * runs[0], 1000 + 100 * runs[1]
    alarms = sum(not steady_state.detect(*run).from_start for run in zip(means, counts, strict=True))
    assert 0.005 <= alarms / 1000 <= most


def test_the_rule_cuts_where_the_mean_is_best_known() -> None:
    """As found by trying every cut in the plainest way."""
    values = steady(5) * (1 + 0.4 * np.exp(-PLACES / 6))
    errors = [float(np.var(values[cut:])) / (SLICES - cut) for cut in range(SLICES // 2 + 1)]
    assert steady_state.truncation(values) == int(np.argmin(errors)) > 5


def arm(seed: int, noise: float, shape: Series, runs: int = 9) -> list[Series]:
    """The tenths of runs that share a shape, under noise of their own."""
    return [steady_state.tenths(steady(100 * seed + number, noise) * shape * (number + 1)) for number in range(runs)]


def test_an_arm_shows_what_noise_hides_in_each_run() -> None:
    """Nine runs that drift by 12 % under noise of 10 %: seldom found in one, mostly in all together."""
    shape = 1 + 0.12 * PLACES / SLICES
    found_in_one = sum(not steady_state.detect(steady(100 * seed, 0.1) * shape).from_start for seed in range(40))
    found_together = sum(not steady_state.arm_is_steady(arm(seed, 0.1, shape)) for seed in range(40))
    assert found_in_one <= 15
    assert found_together >= 32


@pytest.mark.parametrize("runs", [6, 9, 12])
def test_an_arm_without_a_trend_hardly_raises_an_alarm(runs: int) -> None:
    """At most 3 in 100, however many its runs."""
    alarms = sum(not steady_state.arm_is_steady(arm(seed, 0.2, np.ones(SLICES), runs)) for seed in range(400))
    assert alarms <= 12


def test_a_pause_in_one_run_is_not_the_arms() -> None:
    """It stands still for the whole first tenth of the window, and the other eight do not."""
    runs = arm(3, 0.05, np.ones(SLICES))
    runs[4] = steady_state.tenths(steady(7, 0.05) * np.where(PLACES < SLICES // 10, 5.0, 1.0))
    assert steady_state.arm_is_steady(runs)
    assert not steady_state.arm_is_steady(runs[4:5])


def test_in_an_arm_every_run_has_the_same_weight() -> None:
    """However long its responses: a slow run would otherwise hide the others."""
    shares = steady_state.tenths(1000 * steady(2) * (1 + PLACES / SLICES))
    assert shares == pytest.approx(steady_state.tenths(steady(2) * (1 + PLACES / SLICES)))
    assert shares.mean() == pytest.approx(1)
    assert len(shares) == steady_state.BATCHES


def test_what_cannot_be_judged_is_refused() -> None:
    """Too few slices, one without a mean, counts of another run, and an arm of nothing."""
    for means, counts in (([1.0] * 19, None), ([1.0] * 19 + [np.nan], None), ([1.0] * 20, [1.0] * 21)):
        with pytest.raises(ValueError, match="slices"):
            steady_state.detect(means, counts)
    with pytest.raises(ValueError, match="needed: runs"):
        steady_state.arm_is_steady([])
    with pytest.raises(ValueError, match="needed: runs"):
        steady_state.arm_is_steady([[1.0] * 20])
    with pytest.raises(ValueError, match="not over 0"):
        steady_state.tenths([0.0] * 20)
    with pytest.raises(ValueError, match="19 slices"):
        steady_state.tenths([1.0] * 19)
