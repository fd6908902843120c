"""Samples of a cell: every 10 ms in a short cell, every 100 ms in a longer cell."""

from itertools import pairwise

from experiments.measure.table import Sample, thinned


def samples(count: int) -> list[Sample]:
    """Samples every 10 ms."""
    return [Sample(number / 100, number / 1000, 1.0) for number in range(count)]


def test_a_short_cell_keeps_all() -> None:
    """A short cell keeps all samples. A cell may have no samples."""
    assert thinned([]) == []
    assert thinned(samples(100)) == samples(100)


def test_a_long_cell_keeps_those_that_stand_apart() -> None:
    """A longer cell keeps samples at least 100 ms apart, beginning with the first sample."""
    kept = thinned([*samples(100), Sample(1.1, 0.2, 1.0), Sample(1.21, 0.21, 1.0)])
    assert kept[0] == samples(1)[0]
    assert 11 <= len(kept) <= 13
    assert min(after.at_s - at.at_s for at, after in pairwise(kept)) >= 0.1
