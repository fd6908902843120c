"""Standalone servers: the time until a server is ready, and its memory and processor time without requests.

Only one server runs at a time, and the machine runs no load. A block starts every server once, one after the other, in
random order. The functions are pure.
"""

import random
from dataclasses import dataclass

from experiments.design.setting import Setting

HELD_MAX = 15_000
"""Largest number of connections that are held open: about half of the ports that Linux gives clients by default."""

START_S = 0.8
"""Estimated time for the start of a server, in seconds."""

IDLE_S_MAX = 250.0
"""Longest observation of idle connections, in seconds. Our servers close an idle connection after 300 s."""


@dataclass(frozen=True, slots=True)
class LoneServer:
    """A server, and the numbers of idle connections with which the server is observed: first 0, then the numbers in
    ``held``, which ascend."""

    setting: Setting
    held: tuple[int, ...] = ()

    @property
    def connections(self) -> tuple[int, ...]:
        """All numbers of connections with which the server is observed, ascending from 0."""
        return 0, *self.held


@dataclass(frozen=True, slots=True)
class StandalonePlan:
    """Plan of a measurement of standalone servers. Raises ValueError if the plan is invalid."""

    study: str
    part: str
    servers: tuple[LoneServer, ...]
    blocks: int
    idle_s: float
    """Time in seconds for which the server is observed with each number of connections."""
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
        """Estimated time of all blocks, in seconds."""
        return self.blocks * sum(START_S + len(each.connections) * self.idle_s for each in self.servers)

    def order(self, number: int) -> tuple[int, ...]:
        """Indices in ``servers``: the random order in which block ``number`` starts the servers."""
        places = range(len(self.servers))
        return tuple(random.Random(f"{self.seed}/alone/{number}").sample(places, len(places)))


@dataclass(frozen=True, slots=True)
class HeldSeen:
    """Observation of a server with ``connections`` idle connections. Before the observation, each connection had one
    answered call."""

    connections: int
    resident_mib: float
    """Resident memory in MiB at the end of the observation. Shared pages count whole, so other processes do not change
    this number."""
    threads: int
    cpu_ns: int
    """Processor time of the server during the observation, in nanoseconds."""
    watched_ns: int
    """Length of the observation, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class StartSeen:
    """Observation of one start of a server."""

    ready_ms: float
    """Time from the start of the process to its ready line, in milliseconds."""
    held: tuple[HeldSeen, ...]
    """Observations of the server, one for each number of connections, ascending. The first observation has no
    connections."""
