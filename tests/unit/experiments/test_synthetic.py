"""Synthetic experiments: they have the truth that they claim, and the shape that their family says."""

import math
from dataclasses import replace

import numpy as np
import pytest

from experiments import synthetic
from experiments.gates.inference_gates import lag_1
from experiments.synthetic import FAMILIES, Family, Size

SMALL = Size(blocks=6, requests=400, slices=20)


def named(family: Family) -> str:
    """For the test's name."""
    return family.name


@pytest.mark.parametrize("family", FAMILIES, ids=named)
def test_the_ratio_is_the_one_that_is_claimed(family: Family) -> None:
    """The mean log-ratio of sound experiments lies within 4 standard errors of it."""
    drawn = synthetic.draw(family, 300, SMALL, np.random.default_rng(1))
    logs = drawn.log_ratios[~drawn.unsound]
    error = float(logs.std()) / math.sqrt(logs.size)
    assert abs(float(logs.mean()) - math.log(family.ratio)) < 4 * error + 0.001


def test_unsound_experiments_are_about_half_of_the_drifting_ones_and_none_of_the_others() -> None:
    """In them the arm above slows within its runs, and the arm below does not."""
    unsound = {
        family.name: synthetic.draw(family, 200, SMALL, np.random.default_rng(2)).unsound.mean() for family in FAMILIES
    }
    assert 0.4 < unsound.pop("drifting") < 0.6
    assert set(unsound.values()) == {0}
    drawn = synthetic.draw(FAMILIES[5], 200, SMALL, np.random.default_rng(2))
    growth = (drawn.slice_means_us[..., -5:] / drawn.slice_means_us[..., :5]).mean(axis=(1, 3))
    assert growth[drawn.unsound, 0].min() > 1.1
    assert growth[drawn.unsound, 1].max() < 1.2


@pytest.mark.parametrize(
    ("draw", "deviation"),
    [
        (FAMILIES[0].above, 1.0),
        (FAMILIES[1].above, 0.5),
        (FAMILIES[2].below, math.sqrt(math.exp(0.25) - 1)),
        (FAMILIES[3].below, 1 / math.sqrt(3.5 * 1.5)),
        (FAMILIES[4].above, 19 * math.sqrt(0.09) / 2.9),
    ],
    ids=["exponential", "autoregressive", "lognormal", "Pareto", "bimodal"],
)
def test_response_times_have_mean_1_and_the_deviation_of_their_distribution(
    draw: synthetic.Draw, deviation: float
) -> None:
    """Within 2 and 8 % over 400,000 requests; a Pareto deviation converges slowly."""
    times = draw(np.random.default_rng(3), (400, 1000))
    assert float(times.mean(dtype=np.float64)) == pytest.approx(1, rel=0.02)
    assert float(times.std(dtype=np.float64)) == pytest.approx(deviation, rel=0.08)


def test_the_autoregressive_requests_are_correlated_from_the_first_on() -> None:
    """0.9 from each to the next, and the first is as far from the mean as any other: there is no start to wait for."""
    times = synthetic.autoregressive(np.random.default_rng(4), (4000, 200))
    assert lag_1(times[0].astype(np.float64).tolist()) == pytest.approx(0.9, abs=0.12)
    assert float(np.corrcoef(times[:, 0], times[:, 1])[0, 1]) == pytest.approx(0.9, abs=0.01)
    assert float(times[:, 0].std()) == pytest.approx(0.5, rel=0.05)
    assert float(times[:, -1].std()) == pytest.approx(0.5, rel=0.05)


def test_block_effects_are_shared_by_the_arms_of_a_block() -> None:
    """Runs of a block differ far less than runs of different blocks."""
    drawn = synthetic.draw(FAMILIES[6], 100, SMALL, np.random.default_rng(5))
    runs = np.log(drawn.slice_means_us.mean(axis=-1))
    assert float(runs.std(axis=1).mean()) > 0.2
    assert float(drawn.log_ratios.std()) < 0.13


def test_a_run_must_fall_into_whole_slices() -> None:
    """ValueError otherwise."""
    with pytest.raises(ValueError, match="a multiple"):
        synthetic.draw(FAMILIES[0], 1, replace(SMALL, requests=401), np.random.default_rng(1))
