"""The sweeps of the study: the servers of every A/A pair carry the same loads, and few enough servers are alive."""

from collections import Counter

import pytest

from experiments.design.arms import ServerKey
from experiments.design.setting import Setting
from experiments.design.sweep import PAIRS_NEAR_1, Sweep
from experiments.studies.stock import STOCK


def loads(of: Sweep, server: ServerKey) -> Counter[tuple[Setting, int]]:
    """Number of times that a server carries each load, by load and ``every`` of its group."""
    carried: Counter[tuple[Setting, int]] = Counter()
    for group in of.groups:
        for arm in group.arms:
            if arm.server == server:
                carried[arm.setting, group.every] += group.times
    return carried


@pytest.mark.parametrize("part", STOCK.parts)
@pytest.mark.parametrize("profile", ["smoke", "quick", "paper"])
def test_equal_servers_carry_equal_loads(part: str, profile: str) -> None:
    """In every part that compares anything on them."""
    of = STOCK.parts[part].sweep(next(scale for name, scale in STOCK.scales.items() if name == profile))
    pairs = [each for each in of.comparisons if each.kind == "same"]
    for pair in pairs:
        assert loads(of, pair.above.server) == loads(of, pair.below.server), pair.name
    below = {each.below.setting["transport"] for each in of.comparisons}
    assert {pair.below.setting["transport"] for pair in pairs} == below


def test_ratios_near_1_have_the_pairs_that_they_need() -> None:
    """Of the main part: equal servers, and Trade beside Lookup."""
    of = STOCK.parts["stock"].sweep(STOCK.scales["quick"])
    near_1 = [each for each in of.comparisons if each.kind == "same" or each.name == "trade"]
    assert all(of.pairs(each) >= PAIRS_NEAR_1 for each in near_1)
