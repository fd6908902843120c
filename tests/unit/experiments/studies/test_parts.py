"""What holds of every part of every study, whatever it asks."""

from dataclasses import replace

import pytest

from experiments.design.arms import ServerKey
from experiments.design.sweep import PAIRS, PAIRS_NEAR_1, Slices, Sweep
from experiments.show.content import left_out
from experiments.studies import PARTS
from experiments.studies.study import Part, Scale

SWEEPS = [
    pytest.param(part.sweep(scale), id=f"{name}-{profile}")
    for name, (study, part) in PARTS.items()
    for profile, scale in study.scales.items()
]


NEEDED = {"c-berkeley"}
"""What its part is not measured without."""

MEASURED = [
    pytest.param(part, scale, id=f"{name}-{profile}")
    for name, (study, part) in PARTS.items()
    if part.peers
    for profile, scale in study.scales.items()
]


@pytest.mark.parametrize(("part", "scale"), MEASURED)
def test_a_part_measures_the_peers_that_it_names(part: Part, scale: Scale) -> None:
    """So its report names those that were not built: each of them by itself, and none where all are."""
    assert list(left_out(part.peers, part.sweep(scale))) == []
    for name in set(part.peers) - NEEDED:
        assert name in left_out(part.peers, part.sweep(replace(scale, peers=scale.peers - {name})))


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_transport_that_is_compared_has_an_equal_pair(sweep: Sweep) -> None:
    """Both arms of a comparison stand on a transport whose A/A pair the sweep has."""
    same = {each.above.setting["transport"] for each in sweep.comparisons if each.kind == "same"}
    compared = {arm.setting["transport"] for each in sweep.comparisons for arm in (each.above, each.below)}
    assert same == compared


@pytest.mark.parametrize("sweep", SWEEPS)
def test_both_servers_of_an_equal_pair_carry_the_largest_load(sweep: Sweep) -> None:
    """So that both have started as many threads, and hold as many connections."""
    most: dict[ServerKey, int] = {}
    for arm in sweep.arms:
        most[arm.server] = max(arm.connections, most.get(arm.server, 0))
    for each in sweep.comparisons:
        if each.kind == "same":
            assert most[each.above.server] == most[each.below.server]


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_block_has_pairs_enough(sweep: Sweep) -> None:
    """In slices, where there are verdicts; windows are fewer and longer."""
    if sweep.has_verdicts and isinstance(sweep.turns, Slices):
        for each in sweep.comparisons:
            assert sweep.pairs(each) >= (PAIRS_NEAR_1 if each.kind == "same" else PAIRS)
