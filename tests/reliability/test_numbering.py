"""Simulation of a primary: turns, and the facts that the printed lines show."""

import pytest

from tests.reliability import numbering
from tests.reliability.numbering import Group, Primary, Simulation

PRIMARY = Primary(group_s=0.0005, trade_s=0.0001, wait_s=0.0002, cores=4)
SECONDS = 0.2


def simulated(traders: int, stocks: int, turns: int) -> Simulation:
    """A short simulation."""
    return Simulation(PRIMARY, traders, stocks, turns, SECONDS)


def overlapping(groups: list[Group]) -> int:
    """Number of groups that begin before the last one of their turn has ended."""
    ended_s: dict[int, float] = {}
    early = 0
    for group in sorted(groups, key=lambda group: group.began_s):
        early += group.began_s < ended_s.get(group.turn, 0.0)
        ended_s[group.turn] = group.ended_s
    return early


@pytest.mark.parametrize("turns", [1, 4])
def test_groups_of_a_turn_come_one_after_the_other(turns: int) -> None:
    """Groups of a turn follow each other. Else two groups would give the same number. No trade is lost or counted
    twice."""
    found = simulated(64, 4, turns)
    assert {group.turn for group in found.groups} == set(range(turns))
    assert overlapping(found.groups) == 0
    assert sum(group.trades for group in found.groups) == len(found.waits_s)


def test_a_turn_that_lets_two_in_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug is seen: a turn is given again before its group has ended."""

    def careless(simulation: Simulation, turn: int) -> None:
        if turn not in simulation._ready:
            simulation._taken.discard(turn)
            take(simulation, turn)
        simulation._taken.add(turn)

    take = Simulation._take
    monkeypatch.setattr(Simulation, "_take", careless)
    assert overlapping(simulated(64, 4, 1).groups) > 0


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same groups. Another seed gives others."""
    first = simulated(16, 4, 4).groups
    assert simulated(16, 4, 4).groups == first
    monkeypatch.setattr(numbering, "SEED", 2)
    assert simulated(16, 4, 4).groups != first


def test_one_number_stops_where_a_trade_s_part_of_a_turn_does() -> None:
    """With one number for all, more traders approach the limit of a turn, and never exceed it. With numbers a stock the
    rate grows, up to the cores."""
    most = SECONDS / PRIMARY.trade_s
    few, many, each = (len(simulated(*case).waits_s) for case in ((64, 16, 1), (512, 16, 1), (512, 16, 16)))
    assert few < many < most
    assert 2 * most < each < PRIMARY.cores * most


def test_one_hot_stock_gains_nothing() -> None:
    """All trades of one hot stock share a turn, also with numbers a stock."""
    assert simulated(64, 1, 16).groups == simulated(64, 1, 1).groups
