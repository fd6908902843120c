"""What holds of every part of every study, whatever it asks."""

import pytest

from experiments.design.sweep import PAIRS, PAIRS_NEAR_1, Slices, Sweep
from experiments.studies import PARTS

SWEEPS = [
    pytest.param(part.sweep(scale), id=f"{name}-{profile}")
    for name, (study, part) in PARTS.items()
    for profile, scale in study.scales.items()
]


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_transport_that_is_compared_has_an_equal_pair(sweep: Sweep) -> None:
    """Both arms of a comparison stand on a transport whose A/A pair the sweep has."""
    same = {each.above.setting["transport"] for each in sweep.comparisons if each.kind == "same"}
    compared = {arm.setting["transport"] for each in sweep.comparisons for arm in (each.above, each.below)}
    assert same == compared


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_block_has_pairs_enough(sweep: Sweep) -> None:
    """In slices, where there are verdicts; windows are fewer and longer."""
    if sweep.has_verdicts and isinstance(sweep.turns, Slices):
        for each in sweep.comparisons:
            assert sweep.pairs(each) >= (PAIRS_NEAR_1 if each.kind == "same" else PAIRS)
