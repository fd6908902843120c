"""The check of the statistics: it passes on the project's own, and catches wrong ones."""

from collections.abc import Sequence

import numpy as np
import pytest

from experiments import stats, synthetic
from experiments.selfcheck import statistics
from experiments.stats import Estimate
from experiments.synthetic import FAMILIES, Size


def normal_interval(values: Sequence[float]) -> Estimate:
    """A wrong one: the normal quantile in the place of Student's."""
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return Estimate(float(np.exp(mean)), float(np.exp(mean - 1.96 * error)), float(np.exp(mean + 1.96 * error)), 6)


def wide_interval(values: Sequence[float]) -> Estimate:
    """A wrong one, too wide."""
    return stats.ratio_interval(values, 0.98)


def covers(family: int, interval: statistics.Interval = stats.ratio_interval) -> list[bool | None]:
    """Whether each finding of one family passed, over 1,000 experiments of six blocks."""
    drawn = synthetic.draw(FAMILIES[family], 1000, Size(6, 800), np.random.default_rng([9, family]))
    return [finding.passed for finding in statistics.coverage(drawn, 1, interval)]


@pytest.mark.slow
@pytest.mark.parametrize("family", [0, 3, 6], ids=lambda number: FAMILIES[number].name)
def test_a_wrong_interval_is_caught(family: int) -> None:
    """The report's own passes; one with normal quantiles covers 90 %, one of another confidence 98 %: both fail."""
    assert covers(family) == [True, True]
    assert covers(family, normal_interval)[0] is False
    assert covers(family, wide_interval)[0] is False


@pytest.mark.slow
def test_without_the_gate_drifting_experiments_would_not_be_covered() -> None:
    """All unsound ones are refused, and what is left is covered; all together are not."""
    drawn = synthetic.draw(FAMILIES[5], 600, Size(), np.random.default_rng(3))
    findings = statistics.coverage(drawn, 1)
    assert [finding.passed for finding in findings] == [True, True, True]
    held = [stats.ratio_interval(values).low <= 1.1 for values in drawn.log_ratios.tolist()]
    assert np.mean(held) < 0.6


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_whole_check_passes() -> None:
    """With 200 experiments a family, in the words of a report, each with what it must show."""
    findings = statistics.check(experiments=200, seed=2)
    assert [finding for finding in findings if not finding.passed] == []
    assert len({finding.name for finding in findings}) == len(findings) >= 28
    assert all(finding.shown and finding.must for finding in findings)


def test_too_few_experiments_are_refused() -> None:
    """Of 99, a share says nothing."""
    with pytest.raises(ValueError, match="needed: 100"):
        statistics.check(99)
