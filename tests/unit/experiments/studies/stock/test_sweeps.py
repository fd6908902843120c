"""The main part's sweep: it has pairs enough for a ratio near 1."""

from experiments.design.sweep import PAIRS_NEAR_1
from experiments.studies.stock import STOCK


def test_a_ratio_near_1_has_the_pairs_that_it_needs() -> None:
    """Of Trade beside Lookup; what equal servers need is asked of every part."""
    of = STOCK.parts["stock"].sweep(STOCK.scales["quick"])
    (trade,) = (each for each in of.comparisons if each.name == "trade")
    assert of.pairs(trade) >= PAIRS_NEAR_1
