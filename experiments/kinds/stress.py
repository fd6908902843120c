"""Stress tests: several kinds of request at the same time on many keys, and then a check of every key.

A **kind** is a request to an HTTP route. For each key of the kind, the request is sent several times, each time on a
new connection. First the kinds in ``before`` are sent, one kind after another. Then the kinds in ``kinds`` are sent at
the same time. At the end every key is read, and must have the value of one of its last writers. Texts may contain
``{id}``, which is the key, and ``{turn}``, which is the number of the request for this key, from 0. The functions are
pure.
"""

import random
from dataclasses import dataclass

from experiments.design.setting import Setting

START_S, ANSWERED_HZ, READ_HZ = 1.0, 8000.0, 5000.0
"""Estimates. ``START_S``: seconds for the start and the end of a server. ``ANSWERED_HZ``: answered requests per second.
``READ_HZ``: keys that are read per second at the end."""


@dataclass(frozen=True, slots=True)
class StressKind:
    """A kind of request. The request is sent ``per_key`` times for each key from ``first_id`` to ``first_id + keys −
    1``."""

    name: str
    request: str
    """Method and route, such as ``PUT /entities/{id}``."""
    first_id: int
    keys: int
    per_key: int = 1
    body: str = ""
    expect: str | None = None
    """Body that every reply must have. If None, all replies must have the same body."""

    @property
    def requests(self) -> int:
        """Number of requests of this kind, for all keys together."""
        return self.keys * self.per_key


@dataclass(frozen=True, slots=True)
class FinalState:
    """Allowed final states of the keys ``first_id`` to ``first_id + keys − 1``.

    At the end of the test, a key must have the value ``state``. In ``state``, ``{id}`` stands for the key, and
    ``{turn}`` stands for any number from 0 to ``turns − 1``.
    """

    name: str
    request: str
    """Method and route that read a key, such as ``GET /entities/{id}``."""
    first_id: int
    keys: int
    state: str
    """JSON object with ``{id}`` and ``{turn}``, which are replaced. Spaces and the order of members do not matter."""
    turns: int = 1


@dataclass(frozen=True, slots=True)
class StressPlan:
    """Plan of a stress test. Each setting in ``servers`` is a server. Each block starts each server once."""

    study: str
    part: str
    servers: tuple[Setting, ...]
    before: tuple[StressKind, ...]
    kinds: tuple[StressKind, ...]
    final: tuple[FinalState, ...]
    connections: int
    """Number of requests of each kind that are sent at the same time, each on its own connection."""
    blocks: int
    """Number of blocks. Each block tests every server once."""

    @property
    def lasts_s(self) -> float:
        """Estimated time of all blocks, in seconds."""
        requests = sum(each.requests for each in (*self.before, *self.kinds))
        each_s = START_S + requests / ANSWERED_HZ + sum(each.keys for each in self.final) / READ_HZ
        return self.blocks * len(self.servers) * each_s

    def order(self, number: int) -> tuple[int, ...]:
        """Indices in ``servers``: the random order in which block ``number`` starts the servers."""
        places = range(len(self.servers))
        return tuple(random.Random(f"{self.part}/stress/{number}").sample(places, len(places)))


@dataclass(frozen=True, slots=True)
class KindSeen:
    """Observation of one kind of request on one server."""

    requests: int
    """Number of requests with the right reply."""
    errors: int
    began_ns: int
    ended_ns: int
    """Time of the last reply; ``began_ns`` is the time of the first send. The times of all kinds are read from one
    clock, and can be compared."""
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class FinalSeen:
    """Number of keys whose final value is an allowed state (``right``), and number of keys with another final value
    (``wrong``)."""

    right: int
    wrong: int


@dataclass(frozen=True, slots=True)
class StressSeen:
    """Observation of one server: the kinds of request and the final states, in the plan's order."""

    kinds: tuple[KindSeen, ...]
    final: tuple[FinalSeen, ...]
