"""The check of the statistics: resampled noise has the stated shape, and wrong statistics do not pass."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from experiments.design.sweep import Sweep
from experiments.judge.stats import Estimate
from experiments.judge.verdicts import Judged, Values, judge_values
from experiments.results import files
from experiments.selfcheck import noise, statistics
from experiments.selfcheck.noise import FAMILIES, Shape, recorded
from experiments.selfcheck.statistics import FIXED, Drawn, drawn, of_end, of_family
from stock_service.rpc.errors import UsageError
from tests.unit.experiments.judge.synthetic_blocks import blocks, same, sweep

SHAPE = Shape(experiments=40, blocks=20, pairs=60)


def source(deviation: float = 0.1, blocks_deviation: float = 0.0, correlation: float = 0.0) -> list[noise.Numbers]:
    """Twelve blocks of a recording."""
    rng = np.random.default_rng(1)
    made = []
    for _ in range(12):
        new = rng.normal(0, deviation, 80)
        for place in range(1, 80):
            new[place] = correlation * new[place - 1] + (1 - correlation**2) ** 0.5 * new[place]
        made.append(new + rng.normal(0, blocks_deviation))
    return made


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_draws_symmetric_noise_of_the_shape_asked_for(name: str) -> None:
    """In every family equal arms are equal on average, and one seed gives the same noise."""
    values = FAMILIES[name](source(), SHAPE, np.random.default_rng(2))
    assert values.shape == SHAPE.whole
    assert abs(values.mean()) < 4 * values.std() / (values.size / 10) ** 0.5
    assert np.array_equal(values, FAMILIES[name](source(), SHAPE, np.random.default_rng(2)))
    assert 0.05 < np.median(np.abs(values)) / 0.6745 < 0.2


def test_independent_noise_is_the_recorded_values() -> None:
    """Independent noise has only the recorded values, with either sign."""
    kept = np.abs(np.concatenate(source()))
    assert np.isin(np.abs(noise.independent(source(), SHAPE, np.random.default_rng(2))), kept).all()


def test_autocorrelated_noise_is_correlated_as_recorded() -> None:
    """Autocorrelated noise is correlated within its runs. Independent noise is not."""

    def correlation(draw: noise.Draw) -> float:
        values = draw(source(correlation=0.8), SHAPE, np.random.default_rng(2))
        return float((values[..., 1:] * values[..., :-1]).mean() / values.var())

    assert correlation(noise.autocorrelated) > 0.6
    assert abs(correlation(noise.independent)) < 0.05


def test_block_effects_keep_what_blocks_differ_by() -> None:
    """The means of blocks vary as the recorded ones, which single redrawn pairs would lose."""

    def spread(draw: noise.Draw) -> float:
        return float(draw(source(0.1, 0.1), SHAPE, np.random.default_rng(2)).mean(axis=2).std())

    assert spread(noise.block_effects) > 0.07
    assert spread(noise.independent) < 0.03


def test_outliers_are_one_sided_where_arms_are_not_to_be_equal() -> None:
    """Outliers only make a slice longer, mostly the one above."""
    rng = np.random.default_rng(2)
    assert noise.outliers(source(0.01), replace(SHAPE, equal=False), rng).mean() > 0.02
    assert abs(noise.outliers(source(0.01), SHAPE, rng).mean()) < 0.005


def test_noise_is_read_from_a_recordings_a_a_pairs(tmp_path: Path) -> None:
    """Each A/A pair is a source. A folder without an A/A pair is refused in one line."""
    of = sweep(same("sockets"), same("grpc"))
    files.write_plan(tmp_path, files.SWEPT, of)
    for block in blocks(of, dict.fromkeys(of.arms, 100.0), 6, 0.05):
        files.append_block(tmp_path, block)
    found = recorded(tmp_path)
    assert [[len(block) for block in each] for each in found] == [[15] * 6] * 2
    other = tmp_path / "other"
    other.mkdir()
    files.write_plan(other, files.SWEPT, sweep())
    with pytest.raises(UsageError, match="no A/A pair"):
        recorded(other)
    (finding,) = statistics.check(1, other)
    assert finding.passed is False
    assert "no A/A pair" in finding.shown


def too_narrow(asked: Sweep, values: Mapping[str, Values], at_a_look: bool) -> Mapping[str, Judged]:
    """Intervals a fifth narrower than Student's: about what the normal distribution's would be for five blocks."""

    def narrowed(one: Estimate) -> Estimate:
        return replace(
            one, low=one.value * (one.low / one.value) ** 0.8, high=one.value * (one.high / one.value) ** 0.8
        )

    judged = judge_values(asked, values, at_a_look)
    return {name: replace(each, typical=narrowed(each.typical)) for name, each in judged.items()}


def each_its_own_family(asked: Sweep, values: Mapping[str, Values], at_a_look: bool) -> Mapping[str, Judged]:
    """Judges without Holm's correction."""
    apart = replace(asked, comparisons=tuple(replace(each, family=each.name) for each in asked.comparisons))
    return judge_values(apart, values, at_a_look)


def whole_level_at_every_look(asked: Sweep, values: Mapping[str, Values], at_a_look: bool) -> Mapping[str, Judged]:
    """Judges without Bonferroni's correction over the looks."""
    return judge_values(replace(asked, looks=asked.looks[-1:]), values, at_a_look)


@cache
def noisy(experiments: int) -> Drawn:
    """Experiments with so much noise that the first looks do not decide them."""
    return drawn(noise.independent, [source(1.0)], experiments, np.random.default_rng(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "end", "experiments", "name"),
    [
        (too_narrow, FIXED, 150, "coverage"),
        (each_its_own_family, FIXED, 300, f"false differences {FIXED}"),
        (whole_level_at_every_look, "with looks, one comparison", 500, "false differences with looks, one comparison"),
    ],
)
def test_wrong_statistics_do_not_pass(wrong: statistics.Judge, end: str, experiments: int, name: str) -> None:
    """A wrong judge fails the finding on its fault. The project's judge passes on the same experiments."""
    of = noisy(experiments)
    assert all(each.passed for each in of_end("noisy", of, end))
    assert [each.name for each in of_end("noisy", of, end, wrong) if not each.passed] == [f"{name}, noisy"]


@pytest.mark.slow
def test_every_end_of_a_sweep_is_checked() -> None:
    """The project's judge passes all five findings of a family."""
    assert [each.passed for each in of_family("noisy", noisy(150))] == [True] * 5


@pytest.mark.slow
def test_arrivals_are_told_apart() -> None:
    """Poisson arrivals pass. Constant, slow, paired, waving and sorted ones do not."""
    assert all(each.passed for each in statistics._arrivals(100, np.random.default_rng(1)))
