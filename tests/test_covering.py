"""Which combinations of factors whole runs are tried in."""

import itertools

from tests.covering import pairs


def test_every_level_stands_beside_every_other() -> None:
    """Far fewer combinations than all have every pair of levels, and none of them twice."""
    factors = (("a", "b", "c", "d", "e"), (1, 2), ("x", "y", "z"), (None, 0.5))
    chosen = pairs(*factors)
    for (place, one), (other_place, other) in itertools.combinations(enumerate(factors), 2):
        assert {(row[place], row[other_place]) for row in chosen} == set(itertools.product(one, other))
    assert len(chosen) == len(set(chosen)) <= 18
