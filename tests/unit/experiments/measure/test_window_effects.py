"""Effective sample sizes of windows, and windows of left-out rounds."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from clients.load.record.times import Times, total
from experiments.measure.fold import effective as of_slices
from experiments.measure.windows import Part, Seen, arm_seen, effective
from experiments.results.observed import ALL


def times(values_ns: Sequence[int] | npt.NDArray[np.int64]) -> Times:
    """These response times."""
    found = Times()
    found.record(np.array(values_ns))
    return found


@pytest.mark.parametrize("scale", [0.0, 0.3])
def test_windows_are_clusters_as_slices_are(scale: float) -> None:
    """The effective sample size from histograms equals the size from the times of all requests. The 40 windows of 500
    requests have means that differ by a lognormal factor of this scale."""
    rng = np.random.default_rng(3)
    levels = rng.lognormal(0, scale, 40)
    parts = [(level * rng.lognormal(12, 0.3, 500)).astype(np.int64) for level in levels]
    exact = of_slices(np.concatenate(parts), np.repeat(np.arange(40), 500))
    windows = [times(part) for part in parts]
    assert effective(total(windows), windows) == pytest.approx(exact, rel=0.1)
    assert effective(Times(), []) == 0


def test_a_robbed_window_counts_for_its_errors_alone() -> None:
    """A window of a left-out round counts only with its errors and its unrecorded requests."""
    parts = {"lookup": Part(times([1000, 2000]), {"OK": 2}, {"unavailable": 3})}
    windows = [Seen(parts, None, 9, 2, 0, 0, unrecorded=unrecorded) for unrecorded in (1, 2)]
    places = [(0, 0, 0), (1, 1, 0)]
    seen = arm_seen(0, places, windows, robbed=[1])
    assert seen.unrecorded == 3
    for name in ("lookup", ALL):
        assert (seen.answered[name].times.count, seen.answered[name].errors) == (2, {"unavailable": 6})
    assert arm_seen(0, places, windows, robbed=[0, 1]).answered["lookup"].times.count == 0
