"""Arms, groups and comparisons: servers under loads, arms that are measured together, and ratios of two arms.

- An **arm** is a server under a load.
- A **group** has one to six arms. In a round, the arms of a group are measured one directly after another.
- A **comparison** is the ratio of two arms of one group. The comparison names the factors in which its arms differ. If
  the arms differ in a further factor, ``Comparison`` raises ValueError. Without this check, the joint effect of two
  factors could be ascribed to one factor.
- An **A/A pair** is a comparison of two server processes with the same setting. The true ratio of an A/A pair is 1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from experiments.design.levels import Level
from experiments.design.setting import Setting

GROUP_ARMS = range(1, 7)
"""Allowed numbers of arms in a group. A group of one arm has no comparison."""

Kind = Literal["ratio", "growth", "per client", "same"]
"""Kinds of comparisons. Every kind is a ratio ``above`` ÷ ``below``.

- ``ratio``: tested against 1.
- ``growth``: the time with more connections ÷ the time with fewer connections. This ratio is tested against 1, and
  against the ratio of the numbers of connections.
- ``per client``: the same ratio as ``growth``, but tested only against the ratio of the numbers of connections.
- ``same``: the ratio of an A/A pair, whose true value is 1.
"""

Measure = Literal["response", "cpu", "wall"]
"""Measured quantity, per request. ``response``: mean response time. ``cpu``: processor time of the server. ``wall``:
elapsed time ÷ number of requests of all clients together, that is 1 ÷ throughput."""

ServerKey = tuple[tuple[tuple[str, Level], ...], int]
"""Key of a server process: the levels of its factors, and a copy number. Processes with equal levels have different
copy numbers."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A server under a load. Server processes with equal settings are numbered from 0, and ``copy`` is this number."""

    setting: Setting
    copy: int = 0

    @property
    def name(self) -> str:
        """Name that no other arm of the sweep has. For copy 0 of a server, the name is the text of the setting. Copy 1
        adds ``(again)`` to the text, and each later copy N adds ``(N)``."""
        return f"{self.setting} (again)" if self.copy == 1 else f"{self.setting}" + f" ({self.copy})" * bool(self.copy)

    @property
    def connections(self) -> int:
        """Number of connections of all clients of the arm together."""
        return self.setting.whole("clients") * self.setting.whole("connections")

    @property
    def server(self) -> ServerKey:
        """Key of the arm's server process. Arms with the same key share one server process."""
        return self.setting.of("server"), self.copy


@dataclass(frozen=True, slots=True)
class Group:
    """Arms that are measured together, directly one after another.

    The group is measured only in rounds whose number is a multiple of ``every``, and ``times`` times in such a round.

    Raises ValueError unless the group has 1 to 6 different arms, and ``times`` and ``every`` are 1 or more.
    """

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
    """The ratio ``above`` ÷ ``below``. Raises ValueError if the arms differ in other factors than ``differ``, or if
    they do not fit ``kind``."""

    name: str
    title: str
    """Title for readers, such as ``Lookup, 1 client: sockets ÷ gRPC``."""
    above: Arm
    below: Arm
    differ: tuple[str, ...]
    """Factors in which the arms differ. Empty for an A/A pair."""
    kind: Kind = "ratio"
    measure: Measure = "response"
    request: str = "all"
    """Request type whose times are compared, or ``all``."""
    family: str = "further"
    """Name of the comparison's family. All comparisons of a family share one correction for multiple tests. A sweep
    ends at a look once the family ``headline`` is decided."""

    def __post_init__(self) -> None:
        differ = self.above.setting.unlike(self.below.setting)
        if set(differ) != set(self.differ):
            raise ValueError(f"{self.name}: the arms differ in {differ}, declared: {self.differ}")
        if (self.kind == "same") != (not differ) or (not differ and self.above.copy == self.below.copy):
            raise ValueError(f"{self.name}: of kind {self.kind}, its arms differing in {differ or 'nothing'}")
        if self.kind in ("growth", "per client") and self.clients_ratio <= 1:
            raise ValueError(f"{self.name}: {self.clients_ratio:g} times the clients on the arm above, allowed: over 1")

    @property
    def clients_ratio(self) -> float:
        """Number of connections of ``above`` ÷ number of connections of ``below``."""
        return self.above.connections / self.below.connections

    @property
    def tests(self) -> int:
        """Number of statistical tests of the comparison. A ``growth`` has two tests: against 1, and against the ratio
        of the numbers of connections. Every other kind has one test."""
        return 2 if self.kind == "growth" else 1


def twins(setting: Setting, family: str) -> tuple[Comparison, Arm, Arm]:
    """An A/A pair of a setting: the comparison, and its two arms. The arms have copy 0 and copy 1 of the server."""
    first, again = Arm(setting), Arm(setting, 1)
    comparison = Comparison(f"same {setting}", f"A/A: {setting}", again, first, (), "same", family=family)
    return comparison, first, again


def equally_loaded(groups: Iterable[Group], comparisons: Iterable[Comparison]) -> tuple[Group, ...]:
    """Adds arms to the groups, so that both servers of each A/A pair get equal loads, equally often.

    Two processes of one setting are equal only under equal loads, since each load changes the server's state. An
    executor keeps the threads that it has started, and all loads of a server use the same memory, caches and
    connections. In 11 runs of the stock study, a second server with fewer loads had 0.5 % shorter response times than
    the first server. So each load that only the first server has is added as an arm of the second server, in the same
    group. If the group would then have more than six arms, the new arms form a new group.
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
    """Comparisons by their names. Raises ValueError if two comparisons have equal names."""
    named = {each.name: each for each in comparisons}
    if len(named) != len(comparisons):
        raise ValueError("two comparisons of one name")
    return named
