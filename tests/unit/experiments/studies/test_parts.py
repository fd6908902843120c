"""Rules for every part of every study."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from experiments.compare.sweep import LOOKS, side
from experiments.compare.sweep import sweep as of_compare
from experiments.design.arms import Arm, Group, ServerKey, equally_loaded, twins
from experiments.design.levels import Level
from experiments.design.setting import Setting, read
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.selfcheck import ab
from experiments.show.content import left_out
from experiments.studies import PARTS
from experiments.studies.study import Part, Scale
from tests.unit.experiments.blocks import PAIRS, PAIRS_NEAR_1, pairs

SWEEPS = {
    f"{name}-{profile}": part.sweep(scale)
    for name, (study, part) in PARTS.items()
    for profile, scale in study.scales.items()
}

NEEDED = {"c-berkeley"}
"""Peers without which their part is not measured."""

MEASURED = [
    pytest.param(part, scale, id=f"{name}-{profile}")
    for name, (study, part) in PARTS.items()
    if part.peers
    for profile, scale in study.scales.items()
]


@pytest.mark.parametrize(("part", "scale"), MEASURED)
def test_a_part_measures_the_peers_that_it_names(part: Part, scale: Scale) -> None:
    """A part measures the peers that it names, so that its report names those that are not built."""
    assert list(left_out(part.peers, part.sweep(scale))) == []
    for name in set(part.peers) - NEEDED:
        assert name in left_out(part.peers, part.sweep(replace(scale, peers=scale.peers - {name})))


def test_every_transport_that_is_compared_has_an_equal_pair() -> None:
    """Both arms of a comparison are on a transport whose A/A pair the sweep has."""
    for name, sweep in SWEEPS.items():
        same = {each.above.setting["transport"] for each in sweep.comparisons if each.kind == "same"}
        compared = {arm.setting["transport"] for each in sweep.comparisons for arm in (each.above, each.below)}
        assert same == compared, name


LOADS: tuple[dict[str, Level], ...] = ({}, {"rate_hz": 100.0})

OTHERS = {
    f"compare {one} and {other} under {load}": of_compare(side(one, "grpc", load), side(other, "grpc", load), LOOKS, 1)
    for load in LOADS
    for one, other in (
        ("sockets", "grpc"),
        ("sockets", "sockets"),
        ("sockets workers=4", "sockets workers=8"),
        ("sockets clients=1", "sockets clients=5"),
        ("./one --port 0", "./other --port 0"),
    )
}
OTHERS |= {f"selfcheck ab {transport}": ab.design(transport, 10.0, ab.MINUTES, 1) for transport in ab.HALF_WIDTHS}
"""Designs of no study."""


def loads_apart(sweep: Sweep) -> list[str]:
    """Names of the A/A pairs whose second server has other loads than the first server, or has the loads less often.

    Where servers are started for their group's turn, only the pair's own groups count.
    """
    in_turn = isinstance(sweep.turns, Windows) and sweep.turns.in_turn
    found = []
    for pair in (each for each in sweep.comparisons if each.kind == "same"):
        own = [each for each in sweep.groups if not in_turn or {pair.above, pair.below} <= set(each.arms)]
        first, second = (_loads(sweep, own, arm.server) for arm in (pair.below, pair.above))
        if first != second:
            found.append(pair.name)
    return found


def _loads(sweep: Sweep, groups: Sequence[Group], server: ServerKey) -> Counter[Setting]:
    """The number of times that each of a server's loads stands in a block."""
    often: Counter[Setting] = Counter()
    for group in groups:
        for arm in group.arms:
            often[arm.setting] += (arm.server == server) * group.times * -(-sweep.rounds // group.every)
    return +often


def test_both_servers_of_an_equal_pair_carry_equal_loads() -> None:
    """Both servers of an A/A pair carry equal loads, so that both have as many threads and connections, and are as
    warm."""
    apart = {name: loads_apart(sweep) for name, sweep in (SWEEPS | OTHERS).items()}
    assert {name: pairs for name, pairs in apart.items() if pairs} == {}


def test_a_second_server_that_carries_less_is_found() -> None:
    """A second server that lacks a load, or has it less often, is found: in earlier designs, which are kept here."""
    same, first, again = twins(read("sockets"), "same")
    other = Arm(first.setting.but(mix="trade"))
    pair = Group((first, again), times=4)
    assert not loads_apart(Sweep("stock", "stock", (pair,), (same,), 4, (10,)))
    for beside in (Group((first,)), Group((other,)), Group((first, other), every=2)):
        apart = Sweep("stock", "stock", (pair, beside), (same,), 4, (10,))
        assert loads_apart(apart) == [same.name]
        assert not loads_apart(replace(apart, groups=equally_loaded(apart.groups, apart.comparisons)))


def test_a_block_has_pairs_enough() -> None:
    """A block in slices has enough pairs for its verdicts, and more for a ratio near 1. Windows are fewer and
    longer."""
    for name, sweep in SWEEPS.items():
        if sweep.has_verdicts and isinstance(sweep.turns, Slices):
            for each in sweep.comparisons:
                is_near_1 = each.kind == "same" or each.name == "trade"
                assert pairs(sweep, each) >= (PAIRS_NEAR_1 if is_near_1 else PAIRS), (name, each.name)
