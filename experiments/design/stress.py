"""Stress: several kinds of request at once, each over many keys, and then the final state of every key.

A **kind** is a request by a route, sent for each of its keys so many times, on connections that are made anew. Kinds of
one round are sent at once; those of ``before`` come first, one after the other. Then every key is read, and must be
as one of its last writers left it. Texts may hold ``{id}``, the key, and ``{turn}``, which of its requests it is. Pure.
"""

from dataclasses import dataclass

from experiments.design.setting import Setting


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
    """Body of every reply; None where all only have to be alike."""

    @property
    def requests(self) -> int:
        """Requests of all keys together."""
        return self.keys * self.per_key


@dataclass(frozen=True, slots=True)
class FinalState:
    """A state to be read of each of these keys at the end: one of ``turns`` states, whole."""

    name: str
    request: str
    first_id: int
    keys: int
    state: str
    """A JSON object with ``{id}`` and ``{turn}``; key order and spaces do not matter."""
    turns: int = 1


@dataclass(frozen=True, slots=True)
class Stress:
    """Plan of a stress test. Each setting is a server, fresh for each repetition."""

    study: str
    part: str
    servers: tuple[Setting, ...]
    before: tuple[StressKind, ...]
    kinds: tuple[StressKind, ...]
    final: tuple[FinalState, ...]
    connections: int
    """Connections of each kind."""
    repetitions: int
