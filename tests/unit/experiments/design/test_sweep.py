"""Sweeps: a sweep that could not be judged is refused before the measurement."""

import pytest

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import read
from experiments.design.sweep import SERVERS_MAX, Slices, Sweep, Windows
from tests.unit.experiments.judge.synthetic_blocks import GRPC, SOCKETS, ratio, sweep


def family(tests: int, name: str = "headline") -> tuple[Comparison, ...]:
    """A family of this number of comparisons of one pair of arms."""
    return tuple(ratio(name=f"{name} {number}", family=name) for number in range(tests))


@pytest.mark.parametrize(("looks", "most"), [((10, 14, 20), 8), ((10, 14), 12), ((10,), 25), ((6,), 1), ((14,), 409)])
def test_the_first_look_can_decide_every_family(looks: tuple[int, ...], most: int) -> None:
    """The first look must be able to decide every family: family × 2^(1−n) < level. One test more is refused."""
    assert most * 2.0 ** (1 - looks[0]) < 0.05 / len(looks) <= (most + 1) * 2.0 ** (1 - looks[0])
    assert sweep(*family(most), looks=looks).families == {"headline": most}
    with pytest.raises(ValueError, match=f"family headline of {most + 1} tests: {looks[0]} blocks cannot decide it"):
        sweep(*family(most + 1), looks=looks)


def test_families_are_each_their_own() -> None:
    """Each family has its own bound: a large family is refused even with a small family. Growth counts as two tests."""
    with pytest.raises(ValueError, match="family further"):
        sweep(*family(8), *family(9, "further"))
    five = Arm(read("sockets clients=5"))
    growth = [Comparison(f"g{n}", "g", five, SOCKETS, ("clients",), "growth", family="growth") for n in range(5)]
    assert sweep(*growth[:4]).families == {"growth": 8}
    with pytest.raises(ValueError, match="family growth of 10 tests"):
        sweep(*growth)


def test_a_sweep_of_few_blocks_has_no_verdicts_and_any_family() -> None:
    """A sweep of few blocks has no verdicts, and so its families may have any size."""
    assert not sweep(*family(50), looks=(2,)).has_verdicts
    assert sweep(looks=(6,)).has_verdicts


@pytest.mark.parametrize("looks", [(), (10, 10), (14, 10), (0, 10)])
def test_looks_ascend(looks: tuple[int, ...]) -> None:
    """Looks must ascend, from 1."""
    with pytest.raises(ValueError, match="allowed: ascending, from 1"):
        sweep(looks=looks)


def test_looks_are_no_more_than_can_be_tested() -> None:
    """Looks have a largest number of blocks, since the exact sign-flip test would take too long."""
    assert sweep(looks=(BLOCKS_MAX,)).has_verdicts
    with pytest.raises(ValueError, match="41 blocks, allowed: up to 40"):
        sweep(looks=(10, BLOCKS_MAX + 1))


def test_compared_arms_stand_in_one_group() -> None:
    """Compared arms must share a group, since only neighbours share the noise of the machine."""
    with pytest.raises(ValueError, match="no group has both of its arms"):
        Sweep("try", "try", (Group((SOCKETS,)), Group((GRPC,))), (ratio(),), 10, (10,))


def test_servers_alive_are_bounded() -> None:
    """The number of servers that run at the same time is bounded. Several loads of one server count once. Servers that
    start with their group may be more than the bound."""
    arms = [Arm(read(f"sockets workers={number}")) for number in range(1, SERVERS_MAX + 2)]
    loads = [Arm(read(f"sockets workers=1 clients={number}")) for number in range(2, 6)]
    kept = Sweep("try", "try", tuple(Group((arm,)) for arm in arms[:-1] + loads), (), 1, (10,))
    assert len(kept.servers) == SERVERS_MAX
    groups = tuple(Group((arm,)) for arm in arms)
    assert Sweep("try", "try", groups, (), 1, (10,), turns=Windows(in_turn=True)).alive == 1
    for turns in (Slices(), Windows()):
        with pytest.raises(ValueError, match=f"{SERVERS_MAX + 1} servers at once, allowed: {SERVERS_MAX}"):
            Sweep("try", "try", groups, (), 1, (10,), turns=turns)


def test_every_round_has_a_group() -> None:
    """A round without a group is refused, since rounds would be counted wrong."""
    with pytest.raises(ValueError, match="a round without a group"):
        Sweep("try", "try", (Group((SOCKETS, GRPC), every=2),), (ratio(),), 10, (10,))
