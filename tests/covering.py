"""Choice of combinations of factors for a test, where all combinations would take too long."""

import itertools
from collections.abc import Iterable


def half(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """Half of all combinations of factors: those in which the levels' places add up to an even number.

    Where each factor has two levels, any choice of levels for all factors but one is among them.
    """
    levels = [list(factor) for factor in factors]
    places = itertools.product(*(range(len(each)) for each in levels))
    return [tuple(each[at] for each, at in zip(levels, place, strict=True)) for place in places if sum(place) % 2 == 0]


def each_once(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """As many combinations of factors as the longest factor has levels. Every level is in one at least."""
    levels = [list(factor) for factor in factors]
    return [tuple(each[at % len(each)] for each in levels) for at in range(max(map(len, levels)))]


def pairs(*factors: Iterable[object]) -> list[tuple[object, ...]]:
    """Few combinations of factors, in which every level of a factor stands beside every level of every other factor.

    The first is taken again and again that has the most pairs of levels which none before it had.
    """
    rows = list(itertools.product(*factors))
    of_row = {row: set(itertools.combinations(enumerate(row), 2)) for row in rows}
    left, chosen = set().union(*of_row.values()), []
    while left:
        chosen.append(max(rows, key=lambda row: len(of_row[row] & left)))
        left -= of_row[chosen[-1]]
    return chosen
