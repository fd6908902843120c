"""Servers alone: time until a server is ready, and its memory and processor time while no requests come.

No servers take turns here, since no load shares the machine with the server. A repetition starts every server afresh,
one after the other, in random order. Pure.
"""

import random
from dataclasses import dataclass

from experiments.design.setting import Setting

HELD_MAX = 15_000
"""Largest number of connections that are held: half of the ports that a machine here gives its clients."""

START_S = 0.8
"""Seconds for the start of a server, about."""

IDLE_S_MAX = 250.0
"""Longest time of a watch. It is under the 300 s after which servers here close an idle connection."""


@dataclass(frozen=True, slots=True)
class LoneServer:
    """A server, and the numbers of connections that it is to hold: first none, then each number of ``held``,
    ascending."""

    setting: Setting
    held: tuple[int, ...] = ()

    @property
    def connections(self) -> tuple[int, ...]:
        """Every number of connections with which the server is watched."""
        return 0, *self.held


@dataclass(frozen=True, slots=True)
class StandalonePlan:
    """Plan of a measurement of lone servers. Raises ValueError for one that cannot be carried out."""

    study: str
    part: str
    servers: tuple[LoneServer, ...]
    blocks: int
    idle_s: float
    """Seconds for which each number of connections is watched."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.servers or len({each.setting for each in self.servers}) != len(self.servers):
            raise ValueError("servers alone: at least one, each once")
        for each in self.servers:
            if list(each.connections) != sorted(set(each.connections)) or each.connections[-1] > HELD_MAX:
                raise ValueError(f"{each.setting} holding {each.held}, allowed: ascending, from 1 to {HELD_MAX}")
        if self.blocks < 1 or not 0 < self.idle_s <= IDLE_S_MAX:
            raise ValueError(f"{self.blocks} repetitions of {self.idle_s:g} s, allowed: from 1, to {IDLE_S_MAX:g}")

    @property
    def lasts_s(self) -> float:
        """Seconds for all blocks, about."""
        return self.blocks * sum(START_S + len(each.connections) * self.idle_s for each in self.servers)

    def order(self, number: int) -> tuple[int, ...]:
        """The servers of a block by their places, in the order in which they are started."""
        places = range(len(self.servers))
        return tuple(random.Random(f"{self.seed}/alone/{number}").sample(places, len(places)))


@dataclass(frozen=True, slots=True)
class HeldSeen:
    """A server that holds this number of connections. One call was answered on each before."""

    connections: int
    resident_mib: float
    """Memory at the end of the watch. Shared pages are counted whole, so that it depends on no other process."""
    threads: int
    cpu_ns: int
    """Processor time of the server during the watch …"""
    watched_ns: int
    """… over this time."""


@dataclass(frozen=True, slots=True)
class StartSeen:
    """One start of a server."""

    ready_ms: float
    """Time from the start of its process to its ready line."""
    held: tuple[HeldSeen, ...]
    """States by ascending connections. The first has no connections."""
