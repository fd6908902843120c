"""A sweep: groups of arms, comparisons of these arms, and the numbers of blocks and rounds.

An **arm** is a server under a load (``arms.py``). A **look** is a number of blocks after which the sweep is judged. The
looks are declared before the first block. The sweep ends at the first look at which every comparison of the family
``headline`` is decided. The comparisons of this family answer the study's main question. The sweep's significance level
is divided by the number of looks (Bonferroni). So further looks do not raise the probability that equal arms are called
different.

A sweep with verdicts is refused if even the clearest data could not decide its comparisons at the first look. With n
blocks, the smallest p-value of the exact sign-flip test is 2^(1 − n). Holm's correction multiplies the p-value by the
size of the family.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.design.arms import Arm, Comparison, Group, ServerKey, by_name
from experiments.design.factors import FACTORS
from experiments.design.limits import BLOCKS_MAX, LIMITS, Limits
from experiments.design.setting import Setting

SERVERS_MAX = 11
"""Largest number of servers that run at the same time. A server is idle outside its own slices."""

ROUNDS_MIN = 4
"""Smallest number of rounds of a block, even if arms are slow."""

SLICED_MAX = 64
"""Largest number of connections of an arm that is measured in slices."""

BLOCKS_MIN = 6
"""Smallest number of blocks with which a test can reach p < 0.05. With 5 blocks, the smallest p-value is 2^(1 − 5),
about 0.06."""

REPEATED_SHARE = 5
"""Number of planned blocks ÷ number of blocks that may be repeated. With 5, a sweep of ten blocks may repeat two
blocks."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Smallest lengths of the three parts of a slice, and largest length of all slices of a block, in seconds. Slices
    of slow arms are longer (``slots.py``)."""

    counted_s: float = 0.02
    """Smallest length of the counted part."""
    lead_s: float = 0.003
    """Smallest length of the part before the counted part, in which the load settles."""
    reserve_s: float = 0.006
    """Smallest length of the part after the counted part, in which the last counted requests are answered."""
    block_s: float = 60.0
    """Largest time of all slices of a block together. With slow arms a block has fewer rounds, but at least
    ``ROUNDS_MIN`` rounds."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Lengths of windows. A window measures one arm. Windows replace an arm's slices if the load opens new connections,
    or needs longer than a slice to become steady."""

    warm_up_s: float = 0.1
    """Length of the load before the window, in seconds. Requests of the warm-up do not count."""
    duration_s: float = 0.5
    """Length of the window, in seconds."""
    calls: int = 1000
    """Number of calls of each client in a closed loop, if the client is a peer's own client. In an open loop, the
    client makes the calls that are due in ``duration_s``."""
    in_turn: bool = False
    """True if servers run only while their group is measured. The sweep may then have more than ``SERVERS_MAX``
    servers. False if all servers run through the whole block."""


Turns = Slices | Windows


def needs_windows(setting: Setting) -> bool:
    """True for a load that needs windows: with over 64 connections, or with a level for which ``Factor.windows`` is
    true."""
    connections = setting.whole("clients") * setting.whole("connections")
    return connections > SLICED_MAX or any(FACTORS[name].windows(level) for name, level in setting.levels)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Plan of a measurement in blocks. The constructor raises ValueError for groups or comparisons that could not be
    judged."""

    study: str
    part: str
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    rounds: int
    """Number of rounds in each block. In a round every group that is due is measured."""
    looks: tuple[int, ...]
    """Numbers of blocks after which the sweep is judged, ascending. If the first number is below 6, the sweep has no
    verdicts, and the sweep's report says so."""
    seed: int = 1
    turns: Turns = Slices()
    limits: Limits = LIMITS
    apart_from: float | None = None
    """Limit that the user has given, as a ratio such as 1.05. The sweep does not end before its last look while an
    interval of the family ``headline`` contains this ratio."""
    fixed: bool = False
    """True if the user has chosen the number of blocks. False if the looks are the study's own."""
    timeline: bool = False
    """True if servers record the stages of each request. The recording costs about 1 µs a request. So only sweeps
    without verdicts record the stages."""
    arms: tuple[Arm, ...] = field(init=False, repr=False, compare=False)
    """Every arm once, in the order of the groups."""
    places: Mapping[Arm, int] = field(init=False, repr=False, compare=False)
    """Index of each arm in ``arms``."""
    servers: tuple[ServerKey, ...] = field(init=False, repr=False, compare=False)
    """Keys of all server processes of a block, each key once."""

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
            raise ValueError("a round without a group, allowed: at least one group in every round")
        for each in self.comparisons:
            if not any(each.above in group.arms and each.below in group.arms for group in self.groups):
                raise ValueError(f"{each.name}: no group has both of its arms")
        for family, size in self.families.items():
            if self.has_verdicts and size * 2.0 ** (1 - self.looks[0]) >= self.level:
                raise ValueError(f"family {family} of {size} tests: {self.looks[0]} blocks cannot decide it")

    @property
    def starts_at_once(self) -> bool:
        """True if all servers start with the block. False if servers start only when their group is measured."""
        return isinstance(self.turns, Slices) or not self.turns.in_turn

    @property
    def alive(self) -> int:
        """Largest number of servers that run at the same time."""
        if self.starts_at_once:
            return len(self.servers)
        return max(len({arm.server for arm in group.arms}) for group in self.groups)

    @property
    def families(self) -> dict[str, int]:
        """Number of statistical tests of each family, by the family's name."""
        sizes: Counter[str] = Counter()
        for each in self.comparisons:
            sizes[each.family] += each.tests
        return dict(sizes)

    @property
    def level(self) -> float:
        """Significance level of one look: the level of the whole sweep ÷ the number of looks."""
        return self.limits.level / len(self.looks)

    @property
    def repeats_max(self) -> int:
        """Largest number of blocks that may be repeated because other programs took the cores."""
        return -(-self.looks[-1] // REPEATED_SHARE)

    @property
    def has_verdicts(self) -> bool:
        """True if the first look has enough blocks to decide a comparison: six or more."""
        return self.looks[0] >= BLOCKS_MIN
