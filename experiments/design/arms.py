"""Arms, groups and comparisons: the servers and loads that are measured side by side, and the ratios asked of them.

An **arm** is a server under a load. A **group** is two to six arms that stand side by side in a round. A **comparison**
asks for the ratio of two arms of one group; it names the factors in which they differ. It is refused if they differ in
another factor, so that no effect is ascribed to one factor while two differ. Two copies of one server make an A/A pair.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from experiments.design.levels import Level
from experiments.design.setting import Setting

GROUP_ARMS = range(1, 7)
"""Numbers of arms that a group may have. An arm alone is measured without a comparison."""

Kind = Literal["ratio", "growth", "per client", "same"]
"""``ratio``: A ÷ B against 1. ``growth``: more clients ÷ fewer, against 1 and against the ratio of the clients.
``per client``: the same, against the ratio of the clients alone. ``same``: an A/A pair."""

Measure = Literal["response", "cpu", "wall"]
"""Measure of a request: mean response time; the server's processor time; or the wall clock of all clients together,
which is 1 ÷ throughput."""

ServerKey = tuple[tuple[tuple[str, Level], ...], int]
"""Key of a server process: the levels of its factors, and the number of the copy."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A server under a load. ``copy`` tells processes of one setting apart."""

    setting: Setting
    copy: int = 0

    @property
    def name(self) -> str:
        """Name of the arm, which no other arm has. It reads back as the setting, without the copy."""
        return f"{self.setting} (again)" if self.copy == 1 else f"{self.setting}" + f" ({self.copy})" * bool(self.copy)

    @property
    def connections(self) -> int:
        """Connections of all its clients together."""
        return self.setting.whole("clients") * self.setting.whole("connections")

    @property
    def server(self) -> ServerKey:
        """Key of the arm's server process. Arms with the same key are loads of one process."""
        return self.setting.of("server"), self.copy


@dataclass(frozen=True, slots=True)
class Group:
    """Arms side by side: ``times`` in a round, in every ``every``-th round."""

    arms: tuple[Arm, ...]
    times: int = 1
    every: int = 1

    def __post_init__(self) -> None:
        if len(self.arms) not in GROUP_ARMS or len(set(self.arms)) != len(self.arms):
            raise ValueError(f"a group of {len(self.arms)} arms, allowed: 1 to 6, each once")
        if self.times < 1 or self.every < 1:
            raise ValueError(f"a group {self.times} times in every {self.every} rounds, allowed: 1 or more of each")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The ratio above ÷ below. Raises ValueError where the arms differ in other factors than those declared."""

    name: str
    title: str
    """Title for people, such as ``Lookup, 1 client: sockets ÷ gRPC``."""
    above: Arm
    below: Arm
    differ: tuple[str, ...]
    """Factors in which the arms differ; none for an A/A pair."""
    kind: Kind = "ratio"
    measure: Measure = "response"
    request: str = "all"
    """The request type whose times count, or ``all``."""
    family: str = "further"
    """Family: its comparisons are corrected together. Those of ``headline`` end a sweep once they are decided."""

    def __post_init__(self) -> None:
        above, below = dict(self.above.setting.levels), dict(self.below.setting.levels)
        differ = tuple(name for name in above if above[name] != below[name])
        if set(differ) != set(self.differ):
            raise ValueError(f"{self.name}: the arms differ in {differ}, declared: {self.differ}")
        if (self.kind == "same") != (not differ) or (not differ and self.above.copy == self.below.copy):
            raise ValueError(f"{self.name}: of kind {self.kind}, its arms differing in {differ or 'nothing'}")
        if self.kind in ("growth", "per client") and self.clients_ratio <= 1:
            raise ValueError(f"{self.name}: growth to {self.clients_ratio:g} times the clients, allowed: over 1")

    @property
    def clients_ratio(self) -> float:
        """Ratio of the numbers of connections that send: above ÷ below."""
        return self.above.connections / self.below.connections

    @property
    def tests(self) -> int:
        """Number of verdicts that the comparison has."""
        return 2 if self.kind == "growth" else 1


def twins(setting: Setting, family: str) -> tuple[Comparison, Arm, Arm]:
    """An A/A pair of a setting: its comparison, and both arms."""
    first, again = Arm(setting), Arm(setting, 1)
    comparison = Comparison(f"same {setting}", f"A/A: {setting}", again, first, (), "same", family=family)
    return comparison, first, again


def equally_loaded(groups: Iterable[Group], comparisons: Iterable[Comparison]) -> tuple[Group, ...]:
    """The same groups, with every load of an A/A pair's first server on its second server too, as often.

    Two processes of one setting are equal only while they carry the same loads: an executor keeps the threads that it
    started, and all loads share memory, caches and connections. In the stock study a second server that carried fewer
    loads answered sooner by 0.5 % over 11 runs. A load stands on the second server in the group where it stands on the
    first, if that has room, else in a group of its own.
    """
    found = list(groups)
    for pair in (each for each in comparisons if each.kind == "same"):
        first, copy, beside = pair.below.server, pair.above.copy, list[Group]()
        for place, group in enumerate(found):
            own = (Arm(arm.setting, copy) for arm in group.arms if arm.server == first)
            lacking = tuple(arm for arm in own if arm not in group.arms)
            if len(group.arms) + len(lacking) in GROUP_ARMS:
                found[place] = replace(group, arms=(*group.arms, *lacking))
            else:
                beside.append(Group(lacking, group.times, group.every))
        found += beside
    return tuple(found)


def by_name(comparisons: tuple[Comparison, ...]) -> Mapping[str, Comparison]:
    """Comparisons by their names. ValueError for a name that two comparisons have."""
    named = {each.name: each for each in comparisons}
    if len(named) != len(comparisons):
        raise ValueError("two comparisons of one name")
    return named
