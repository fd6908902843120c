"""Services simulated for the tests: a pool of workers, a GIL, a wait, and shared tokens. Nothing is measured.

A request takes a worker, waits, takes one of the shared tokens for a time, and computes with the GIL. A client's own
time is outside the worker.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from experiments.recommend.seen import Level, Load
from tests.unit.experiments.recommend.simulated import Clock, Running, Step, Tokens

REPLIES = 1_000
"""Replies of a window, after a tenth that does not count."""

FLOOR_S = 0.0001
"""The client's own time for a request."""


@dataclass(frozen=True)
class Synthetic:
    """A service, by the seconds that a request needs."""

    gil_s: float
    wait_s: Callable[[Random], float] = lambda _: 0.0
    shared: int = 0
    """Requests that are admitted inside at once; 0 where nothing is shared."""
    held_s: float = 0.0

    def level(self, at_once: int, workers: int, connections: int) -> Level:
        """Two rounds of a pool under a number of connections."""
        return Level(at_once, tuple(_Window(self, workers, connections, seed).load() for seed in (1, 2)))


class _Window:
    """One window. Call ``load`` once."""

    def __init__(self, service: Synthetic, workers: int, connections: int, seed: int) -> None:
        self._service, self._connections = service, connections
        self._clock, self._random = Clock(), Random(seed)
        self._pool, self._gil, self._shared = Tokens(workers), Tokens(1), Tokens(service.shared)
        self._replied_at: list[float] = []

    def load(self) -> Load:
        """The load's numbers, from a run of the simulation."""
        for _ in range(self._connections):
            self._clock.start(self._client(), self._random.random() * FLOOR_S)
        end_s = 0.0
        while len(self._replied_at) < 1.1 * REPLIES:
            end_s += 0.1
            self._clock.run_until(end_s)
        first, last = self._replied_at[REPLIES // 10], self._replied_at[-1]
        throughput_hz = (len(self._replied_at) - 1 - REPLIES // 10) / (last - first)
        return Load(self._connections, throughput_hz, 0.1, self._service.gil_s, 0.1)

    def _client(self) -> Running:
        while True:
            yield "sleep", FLOOR_S
            yield "take", self._pool
            yield from self._work()
            yield "give", self._pool
            self._replied_at.append(self._clock.now_s)

    def _work(self) -> Iterator[Step]:
        yield "sleep", self._service.wait_s(self._random)
        if self._service.shared:
            yield "take", self._shared
            yield "sleep", self._service.held_s
            yield "give", self._shared
        yield "take", self._gil
        yield "sleep", self._service.gil_s * self._random.uniform(0.5, 1.5)
        yield "give", self._gil
