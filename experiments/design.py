"""Designs: settings of factors, and the order in which they are run.

A ``Setting`` is one level of every factor. A ``Design`` runs every setting once in every block, in a random order of
its own in each block, so that whatever drifts on the machine meets all settings alike and a comparison can be made
within a block. Pure: a design and its seed always give the same runs.
"""

import dataclasses
import itertools
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from clients.load.plan.load_plan import ClientKind, ConnectionPolicy
from clients.load.plan.schedule import Arrivals
from stock_service.rpc.transports import Dispatch

Mix = tuple[tuple[str, float], ...]
"""Request types and their weights."""

LOOKUP: Mix = (("lookup", 1.0),)
TRADE: Mix = (("trade", 1.0),)
LOOKUP_AND_TRADE: Mix = (("lookup", 0.5), ("trade", 0.5))
ECHO: Mix = (("echo", 1.0),)


@dataclass(frozen=True, slots=True)
class Setting:
    """One level of every factor, and how long it is measured."""

    part: str
    """The figure or extension that it belongs to."""
    warm_up_s: float
    duration_s: float
    service: str = "stock"
    transport: str = "sockets"
    executor: str = "static-pool"
    dispatch: Dispatch = "request"
    workers: int = 10
    locking: str = "mutex"
    lock_waits: bool = False
    """Whether the server times each wait for a lock, which costs about 1 µs a request."""
    clients: int = 1
    """Client processes; 0: nobody sends, and ``connections`` are held open idle."""
    connections: int = 1
    """Connections of each client; without clients, of all."""
    connection: ConnectionPolicy = "kept-alive"
    mix: Mix = LOOKUP
    updater: bool = False
    client: ClientKind = "library"
    """Whose client sends: the transport's own, which is what its users have, or the lean one."""
    rate_hz: float | None = None
    """Requests due a second, of all clients together; None: a closed loop."""
    arrivals: Arrivals = "poisson"
    timeline: bool = False
    """Whether the server stamps every request's stages, which costs it about 1 µs a request."""

    @property
    def loop(self) -> Literal["closed", "open"]:
        """Which of the two the clients run."""
        return "closed" if self.rate_hz is None else "open"


@dataclass(frozen=True, slots=True)
class Factor:
    """A field of ``Setting`` and the levels that it takes."""

    name: str
    levels: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One setting, to be executed once. ``block`` and ``order`` count from 1."""

    run_id: str
    block: int
    order: int
    seed: int
    setting: Setting


@dataclass(frozen=True, slots=True)
class Design:
    """Settings to be compared, run once in each block; and settings that stand alone, run in the first block only."""

    settings: tuple[Setting, ...]
    blocks: int
    seed: int
    once: tuple[Setting, ...] = ()

    def runs(self) -> tuple[Run, ...]:
        """Every run, in the order in which they are to be executed."""
        rng = random.Random(self.seed)
        runs: list[Run] = []
        for block in range(1, self.blocks + 1):
            settings = [*self.settings, *(self.once if block == 1 else ())]
            rng.shuffle(settings)
            for order, setting in enumerate(settings, start=1):
                runs.append(Run(f"{block:03d}-{order:03d}", block, order, rng.getrandbits(31), setting))
        return tuple(runs)


def cross(base: Setting, *factors: Factor) -> tuple[Setting, ...]:
    """``base`` at every combination of the factors' levels, the last factor changing fastest."""
    names = [factor.name for factor in factors]
    return tuple(
        dataclasses.replace(base, **dict(zip(names, levels, strict=True)))  # type: ignore[arg-type]
        for levels in itertools.product(*(factor.levels for factor in factors))
    )


def mix_text(mix: Iterable[tuple[str, float]]) -> str:
    """``lookup``, or ``lookup=0.5,trade=0.5`` where there are several: what ``--mix`` takes."""
    weights = tuple(mix)
    if len(weights) == 1:
        return weights[0][0]
    return ",".join(f"{request}={weight:g}" for request, weight in weights)
