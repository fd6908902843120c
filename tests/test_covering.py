"""Combinations of factors in which whole runs are tried."""

import itertools

from tests.covering import pairs


def test_every_level_stands_beside_every_other() -> None:
    """Far fewer than all combinations have every pair of levels, and no combination comes twice."""
    factors = (("a", "b", "c", "d", "e"), (1, 2), ("x", "y", "z"), (None, 0.5))
    chosen = pairs(*factors)
    for (place, one), (other_place, other) in itertools.combinations(enumerate(factors), 2):
        assert {(row[place], row[other_place]) for row in chosen} == set(itertools.product(one, other))
    assert len(chosen) == len(set(chosen)) <= 18
