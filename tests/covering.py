"""Choice of combinations of factors for a test, where all combinations would take too long."""

import itertools
from collections.abc import Iterable


def half(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """Half of all combinations of factors: the combinations whose levels' places add up to an even number. If each
    factor has two levels, every choice of levels of all factors but one occurs.
    """
    levels = [list(factor) for factor in factors]
    places = itertools.product(*(range(len(each)) for each in levels))
    return [tuple(each[at] for each, at in zip(levels, place, strict=True)) for place in places if sum(place) % 2 == 0]


def each_once(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """As many combinations of factors as the longest factor has levels. Every level is in at least one combination."""
    levels = [list(factor) for factor in factors]
    return [tuple(each[at % len(each)] for each in levels) for at in range(max(map(len, levels)))]


def pairs(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """Few combinations of factors with every pair of levels of two factors (pairwise testing). The choice is greedy:
    the next combination is the first with the most new pairs.
    """
    rows = list(itertools.product(*factors))
    of_row = {row: set(itertools.combinations(enumerate(row), 2)) for row in rows}
    left, chosen = set().union(*of_row.values()), []
    while left:
        chosen.append(max(rows, key=lambda row: len(of_row[row] & left)))
        left -= of_row[chosen[-1]]
    return chosen
