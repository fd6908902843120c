"""A sweep: groups of arms, comparisons of these arms, and the numbers of blocks and rounds.

Looks are the numbers of blocks at which a sweep is judged. They are declared beforehand. The sweep ends at the first
look at which every headline comparison is decided. Each look has its share of the level (Bonferroni), so that more
looks do not call more equal arms different. A sweep is refused if its first look could not decide even with the
clearest data.

Why 2^(1 − n): with n blocks the exact sign-flip test gives no p under that, and Holm multiplies it by the family.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.design.arms import Arm, Comparison, Group, ServerKey, by_name
from experiments.design.factors import FACTORS
from experiments.design.limits import BLOCKS_MAX, LIMITS, Limits
from experiments.design.setting import Setting

SERVERS_MAX = 11
"""Most servers alive at once. Each is idle outside its own slices."""

ROUNDS_MIN = 4
"""Fewest rounds of a block, also for slow arms."""

SLICED_MAX = 64
"""Most connections that a slice can serve."""

BLOCKS_MIN = 6
"""Fewest blocks with which a test can reach p < 0.05 with the clearest data: with 5 blocks the least p is 2 ÷ 2^5."""

REPEATED_SHARE = 5
"""One of this number of blocks may be run again."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Lengths of a slice. A longer round trip makes it longer, see ``slots``."""

    counted_s: float = 0.02
    """Least length of the counted part."""
    lead_s: float = 0.003
    """Least length of the part before it, in which the load settles."""
    reserve_s: float = 0.006
    """Least length of the part after it, until the last counted request is answered."""
    block_s: float = 60.0
    """Longest time of all slices of a block. With slow arms a block has fewer rounds, but at least ``ROUNDS_MIN``."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows by turns, in place of slices, where a load needs longer to settle or connects anew."""

    warm_up_s: float = 0.1
    duration_s: float = 0.5
    calls: int = 1000
    """Calls of each client, where a peer's own client makes the load in a closed loop. With a rate: the calls that are
    due in ``duration_s``."""
    in_turn: bool = False
    """True where a group's servers are started for its turn and stopped after it, so that a sweep may have more servers
    than may be alive at once. Else all servers are alive through a block."""


Turns = Slices | Windows


def needs_windows(setting: Setting) -> bool:
    """True where a load cannot be served in slices: see ``Windows``."""
    connections = setting.whole("clients") * setting.whole("connections")
    return connections > SLICED_MAX or any(FACTORS[name].windows(level) for name, level in setting.levels)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Plan of a run. Raises ValueError for groups or comparisons that could not be judged."""

    study: str
    part: str
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    rounds: int
    """Rounds of a block."""
    looks: tuple[int, ...]
    """Numbers of blocks, ascending. A sweep whose first look is at fewer than 6 has no verdicts, and says so."""
    seed: int = 1
    turns: Turns = Slices()
    limits: Limits = LIMITS
    apart_from: float | None = None
    """Limit of somebody: a ratio that must lie outside the headline intervals for the sweep to end early."""
    fixed: bool = False
    """True where a fixed number of blocks was asked for, in place of the looks that its part has."""
    timeline: bool = False
    """True where servers stamp the stages of each request. A stamp costs about 1 µs a request, so that only sweeps
    without verdicts have it."""
    arms: tuple[Arm, ...] = field(init=False, repr=False, compare=False)
    """Every arm once, in the groups' order."""
    places: Mapping[Arm, int] = field(init=False, repr=False, compare=False)
    """Place of each arm among all arms."""
    servers: tuple[ServerKey, ...] = field(init=False, repr=False, compare=False)
    """Every server process of a block once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", tuple(dict.fromkeys(arm for group in self.groups for arm in group.arms)))
        object.__setattr__(self, "places", {arm: place for place, arm in enumerate(self.arms)})
        object.__setattr__(self, "servers", tuple(dict.fromkeys(arm.server for arm in self.arms)))
        by_name(self.comparisons)
        if self.alive > SERVERS_MAX:
            raise ValueError(f"{self.alive} servers at once, allowed: {SERVERS_MAX}")
        if isinstance(self.turns, Slices) and any(needs_windows(arm.setting) for arm in self.arms):
            raise ValueError("slices for an arm that needs windows")
        if not self.looks or list(self.looks) != sorted(set(self.looks)) or self.looks[0] < 1 or self.rounds < 1:
            raise ValueError(f"looks at {self.looks} blocks of {self.rounds} rounds, allowed: ascending, from 1")
        if self.looks[-1] > BLOCKS_MAX:
            raise ValueError(f"{self.looks[-1]} blocks, allowed: up to {BLOCKS_MAX}")
        if min((group.every for group in self.groups), default=0) != 1:
            raise ValueError("rounds without any group, allowed: a group at least that stands in every round")
        for each in self.comparisons:
            if not any(each.above in group.arms and each.below in group.arms for group in self.groups):
                raise ValueError(f"{each.name}: its arms stand in no group together")
        for family, size in self.families.items():
            if self.has_verdicts and size * 2.0 ** (1 - self.looks[0]) >= self.level:
                raise ValueError(f"family {family} of {size} tests: {self.looks[0]} blocks cannot decide it")

    @property
    def starts_at_once(self) -> bool:
        """True where all servers start with the block; False where a group's servers start for its turn."""
        return isinstance(self.turns, Slices) or not self.turns.in_turn

    @property
    def alive(self) -> int:
        """Most servers alive at once."""
        if self.starts_at_once:
            return len(self.servers)
        return max(len({arm.server for arm in group.arms}) for group in self.groups)

    @property
    def families(self) -> dict[str, int]:
        """Number of tests of each family."""
        sizes: Counter[str] = Counter()
        for each in self.comparisons:
            sizes[each.family] += each.tests
        return dict(sizes)

    @property
    def level(self) -> float:
        """Level of one look."""
        return self.limits.level / len(self.looks)

    @property
    def repeats_max(self) -> int:
        """Number of blocks that may be run again."""
        return -(-self.looks[-1] // REPEATED_SHARE)

    @property
    def has_verdicts(self) -> bool:
        """True where the number of blocks is enough to decide."""
        return self.looks[0] >= BLOCKS_MIN
