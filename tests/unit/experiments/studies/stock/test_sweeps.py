"""The main part's sweep: it has pairs enough for a ratio near 1."""

from experiments.studies.stock import STOCK
from tests.unit.experiments.blocks import PAIRS_NEAR_1, pairs


def test_a_ratio_near_1_has_the_pairs_that_it_needs() -> None:
    """Trade beside Lookup, a ratio near 1, has the pairs that it needs. Every part has the pairs of equal servers."""
    of = STOCK.parts["stock"].sweep(STOCK.scales["quick"])
    (trade,) = (each for each in of.comparisons if each.name == "trade")
    assert pairs(of, trade) >= PAIRS_NEAR_1
