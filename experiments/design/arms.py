"""Arms, groups and comparisons: what is measured side by side, and which ratios are asked of it.

An **arm** is a server under a load. A **group** is two to six arms that stand side by side in a round. A **comparison**
asks for the ratio of two arms of one group; it names the factors in which they differ, and is refused if they differ in
anything else: so no effect can be ascribed to one factor while two differ. Two copies of one server make an A/A pair.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from experiments.design.levels import Level
from experiments.design.setting import Setting

GROUP_ARMS = range(1, 7)
"""Arms that a group may have; one alone is measured without being compared."""

Kind = Literal["ratio", "growth", "per client", "same"]
"""``ratio``: A ÷ B against 1. ``growth``: more clients ÷ fewer, against 1 and against the ratio of the clients.
``per client``: the same, against the ratio of the clients alone. ``same``: an A/A pair."""

Measure = Literal["response", "cpu", "wall"]
"""For each request: mean response time; the server's processor time; or the wall clock of all clients together, which
is 1 ÷ throughput."""

ServerKey = tuple[tuple[tuple[str, Level], ...], int]
"""What makes a server process: the levels of its factors, and which copy it is."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A server under a load. ``copy`` tells processes of one setting apart."""

    setting: Setting
    copy: int = 0

    @property
    def name(self) -> str:
        """Unique among arms; reads back as the setting, but for the copy."""
        return f"{self.setting} (again)" if self.copy == 1 else f"{self.setting}" + f" ({self.copy})" * bool(self.copy)

    @property
    def connections(self) -> int:
        """Of all its clients."""
        return self.setting.whole("clients") * self.setting.whole("connections")

    @property
    def server(self) -> ServerKey:
        """Arms with the same are loads of one server process."""
        return self.setting.of("server"), self.copy


@dataclass(frozen=True, slots=True)
class Group:
    """Arms side by side. ``times`` in a round, in every ``every``-th round."""

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
    """For people: what is compared, such as ``Lookup, 1 client: sockets ÷ gRPC``."""
    above: Arm
    below: Arm
    differ: tuple[str, ...]
    """Factors in which the arms differ; none for an A/A pair."""
    kind: Kind = "ratio"
    measure: Measure = "response"
    request: str = "all"
    """The request type whose times count, or ``all``."""
    family: str = "further"
    """Comparisons of one family are corrected together. ``headline``: those that end a sweep once decided."""

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
        """Connections that send above ÷ below."""
        return self.above.connections / self.below.connections

    @property
    def tests(self) -> int:
        """How many verdicts it has."""
        return 2 if self.kind == "growth" else 1


def twins(setting: Setting, family: str) -> tuple[Comparison, Arm, Arm]:
    """An A/A pair of a setting: its comparison, and both arms."""
    first, again = Arm(setting), Arm(setting, 1)
    comparison = Comparison(f"same {setting}", f"A/A: {setting}", again, first, (), "same", family=family)
    return comparison, first, again


def heaviest_again(arms: Iterable[Arm], comparisons: Iterable[Comparison]) -> tuple[Arm, ...]:
    """The largest load of each A/A pair's first server, for its second: an executor keeps the threads that it started.

    A gRPC server that has had five clients has five threads, and answers one client later for it: by 0 to 2.6 % in five
    recordings. None for a pair whose own load is its first server's largest.
    """
    found: list[Arm] = []
    carried = tuple(arms)
    for each in comparisons:
        if each.kind == "same":
            loads = (arm for arm in carried if arm.server == each.below.server)
            most = max(loads, key=lambda arm: arm.connections, default=each.below)
            if most.connections > each.below.connections:
                found.append(Arm(most.setting, each.above.copy))
    return tuple(found)


def by_name(comparisons: tuple[Comparison, ...]) -> Mapping[str, Comparison]:
    """Comparisons by their names. ValueError for a name that two have."""
    named = {each.name: each for each in comparisons}
    if len(named) != len(comparisons):
        raise ValueError("two comparisons of one name")
    return named
