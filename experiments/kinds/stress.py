"""Stress: several kinds of request at once, each over many keys, and then the final state of every key.

A **kind** is a request by a route. It is sent a number of times for each of its keys, each time on a new connection.
Kinds of one round are sent at once. Kinds of ``before`` come first, one after the other. Then every key is read: its
value must be that of one of its last writers. Texts may hold ``{id}``, the key, and ``{turn}``, the number of the
request for this key. Pure.
"""

import random
from dataclasses import dataclass

from experiments.design.setting import Setting

START_S, ANSWERED_HZ, READ_HZ = 1.0, 8000.0, 5000.0
"""Seconds for a server beside its requests; requests a second; reads of keys a second. All are estimates."""


@dataclass(frozen=True, slots=True)
class StressKind:
    """One request, for the keys ``first_id`` to ``first_id + keys − 1``, each ``per_key`` times."""

    name: str
    request: str
    """Method and route, such as ``PUT /entities/{id}``."""
    first_id: int
    keys: int
    per_key: int = 1
    body: str = ""
    expect: str | None = None
    """Body that every reply must have; None: all replies must have the same body."""

    @property
    def requests(self) -> int:
        """Requests of all keys together."""
        return self.keys * self.per_key


@dataclass(frozen=True, slots=True)
class FinalState:
    """A state that each of these keys must have at the end: one of ``turns`` states, whole."""

    name: str
    request: str
    first_id: int
    keys: int
    state: str
    """A JSON object with ``{id}`` and ``{turn}``. The order of keys and spaces do not matter."""
    turns: int = 1


@dataclass(frozen=True, slots=True)
class StressPlan:
    """Plan of a stress test. Each setting is a server, started afresh for each repetition."""

    study: str
    part: str
    servers: tuple[Setting, ...]
    before: tuple[StressKind, ...]
    kinds: tuple[StressKind, ...]
    final: tuple[FinalState, ...]
    connections: int
    """Connections of each kind."""
    blocks: int
    """Number of repetitions. Each repetition tries every server once."""

    @property
    def lasts_s(self) -> float:
        """Seconds for all blocks, about."""
        requests = sum(each.requests for each in (*self.before, *self.kinds))
        each_s = START_S + requests / ANSWERED_HZ + sum(each.keys for each in self.final) / READ_HZ
        return self.blocks * len(self.servers) * each_s

    def order(self, number: int) -> tuple[int, ...]:
        """The servers of a block by their places, in the order in which they are started."""
        places = range(len(self.servers))
        return tuple(random.Random(f"{self.part}/stress/{number}").sample(places, len(places)))


@dataclass(frozen=True, slots=True)
class KindSeen:
    """One kind on one server."""

    requests: int
    """Requests that got the right reply."""
    errors: int
    began_ns: int
    ended_ns: int
    """Moments on one clock, the same for all kinds."""
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class FinalSeen:
    """Keys of one final state, which were read one by one."""

    right: int
    wrong: int


@dataclass(frozen=True, slots=True)
class StressSeen:
    """One server: its kinds and final states in the plan's order."""

    kinds: tuple[KindSeen, ...]
    final: tuple[FinalSeen, ...]
