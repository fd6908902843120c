"""Arms, groups and comparisons: shared servers, and refusals of comparisons with undeclared differences."""

import pytest

from experiments.design.arms import Arm, Comparison, Group, Kind, by_name, equally_loaded, twins
from experiments.design.setting import read

SOCKETS, FIVE = (Arm(read(text)) for text in ("sockets", "sockets clients=5"))


def compared(above: Arm, below: Arm, *differ: str, kind: Kind = "ratio") -> Comparison:
    """A comparison of these arms."""
    return Comparison("one", "One", above, below, differ, kind)


def test_arms_that_differ_in_the_load_alone_share_a_server() -> None:
    """Arms that differ only in factors of the load share a server. Copies of an arm do not share a server."""
    assert SOCKETS.server == FIVE.server
    assert SOCKETS.server != Arm(SOCKETS.setting, 1).server
    assert SOCKETS.server != Arm(read("sockets workers=4")).server
    assert Arm(read("sockets clients=3 connections=4")).connections == 12


def test_every_arm_has_a_name_of_its_own() -> None:
    """Every arm has a unique name, and so has every copy."""
    names = [Arm(read("grpc"), copy).name for copy in range(3)]
    assert names == ["grpc", "grpc (again)", "grpc (2)"]


@pytest.mark.parametrize("differ", [(), ("transport",), ("clients",), ("clients", "workers", "locking")])
def test_a_comparison_declares_all_that_differs(differ: tuple[str, ...]) -> None:
    """A comparison must declare exactly the differing factors. So no effect of two factors is ascribed to one
    factor."""
    other = Arm(read("sockets clients=5 workers=4"))
    assert compared(other, SOCKETS, "clients", "workers").clients_ratio == 5
    with pytest.raises(ValueError, match=r"differ in \('workers', 'clients'\), declared"):
        compared(other, SOCKETS, *differ)


def test_only_an_a_a_pair_has_equal_arms_and_its_copies_are_two() -> None:
    """Only an A/A pair has arms of one setting, as two copies. A comparison of one server with itself is refused."""
    again = Arm(SOCKETS.setting, 1)
    assert compared(again, SOCKETS, kind="same").tests == 1
    for arms, differ, kind in (
        ((again, SOCKETS), (), "ratio"),
        ((SOCKETS, SOCKETS), (), "same"),
        ((FIVE, SOCKETS), ("clients",), "same"),
    ):
        with pytest.raises(ValueError, match="of kind"):
            compared(*arms, *differ, kind=kind)  # type: ignore[arg-type]  # the kinds above are such


def test_growth_is_to_more_clients() -> None:
    """Growth is from fewer to more clients. Growth has two verdicts, one of them against the number of clients."""
    assert compared(FIVE, SOCKETS, "clients", kind="growth").tests == 2
    assert compared(FIVE, SOCKETS, "clients", kind="per client").tests == 1
    with pytest.raises(ValueError, match=r"0\.2 times"):
        compared(SOCKETS, FIVE, "clients", kind="growth")


def test_a_group_has_one_to_six_arms_each_once() -> None:
    """A group has one to six different arms, and appears in rounds a whole number of times."""
    arms = tuple(Arm(read(f"sockets clients={number}")) for number in range(1, 8))
    assert len(Group(arms[:6]).arms) == 6
    for wrong in ((), arms, (SOCKETS, SOCKETS)):
        with pytest.raises(ValueError, match="allowed: 1 to 6, each once"):
            Group(wrong)
    for times, every in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="allowed: 1 or more"):
            Group((SOCKETS,), times, every)


def test_twins_are_an_a_a_pair() -> None:
    """Twins are an A/A pair of one setting on two servers."""
    pair, first, again = twins(read("grpc"), "same")
    assert (pair.above, pair.below, pair.kind, pair.family) == (again, first, "same", "same")
    assert first.setting == again.setting


def test_the_servers_of_an_a_a_pair_carry_the_same_loads() -> None:
    """Both servers of an A/A pair get equal loads, equally often. A full group gets a second group for the new
    loads."""
    pair, first, again = twins(read("sockets"), "same")
    trades, grpc = Arm(read("sockets mix=trade")), Arm(read("grpc"))
    many = tuple(Arm(read(f"sockets clients={clients}")) for clients in range(2, 7))
    groups = (Group((first, grpc)), Group((trades, grpc), every=3), Group((*many, grpc), every=5))
    loaded = equally_loaded((*groups, Group((first, again), times=4)), (pair,))
    assert loaded[:2] == (Group((first, grpc, again)), Group((trades, grpc, Arm(trades.setting, 1)), every=3))
    assert loaded[2:4] == (groups[2], Group((first, again), times=4))
    assert loaded[4:] == (Group(tuple(Arm(each.setting, 1) for each in many), every=5),)


def test_names_of_comparisons_are_their_own() -> None:
    """Two comparisons with one name are refused, since they would have one verdict."""
    one = compared(FIVE, SOCKETS, "clients")
    assert by_name((one,)) == {"one": one}
    with pytest.raises(ValueError, match="two comparisons of one name"):
        by_name((one, one))
