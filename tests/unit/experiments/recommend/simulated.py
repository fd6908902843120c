"""A server simulated for the tests, without code of the package: each request is a coroutine that holds tokens.

A worker, the GIL and a core are tokens of pools that are served in order. A request takes a worker, then alternates
between the GIL (with a core), waiting, and a core alone. Cores are shared by slices. A service may have further tokens,
such as the connections of a pool: after the wait a request takes one of them for a time.
"""

import heapq
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from statistics import fmean

from experiments.design.demands import Demands

SLICE_S = 0.001
"""Time for which a thread keeps a core that others want."""


SWITCH_S = 0.005
"""Time for which a thread keeps a GIL that others want."""


class Tokens:
    """A number of tokens, given out in order."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.queue: deque[Running] = deque()


Step = tuple[str, Tokens | float]
Running = Generator[Step, None, None]


class Clock:
    """Runs coroutines that yield ``("take", tokens)``, ``("give", tokens)`` or ``("sleep", seconds)``."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._events: list[tuple[float, int, Running]] = []
        self._numbers = count()

    def start(self, running: Running, at_s: float) -> None:
        """Starts the clients at this moment."""
        heapq.heappush(self._events, (at_s, next(self._numbers), running))

    def run_until(self, end_s: float) -> None:
        """Runs until this moment."""
        while self._events and self._events[0][0] <= end_s:
            self.now_s, _, running = heapq.heappop(self._events)
            self._resume(running)

    def _resume(self, running: Running) -> None:
        for do, what in running:
            if isinstance(what, float):
                self.start(running, self.now_s + what)
                return
            if do == "take":
                if not what.left:
                    what.queue.append(running)
                    return
                what.left -= 1
            elif what.queue:
                self.start(what.queue.popleft(), self.now_s)  # the token is its own now
            else:
                what.left += 1


@dataclass
class Simulated:
    """One server. ``responses`` has the time of each reply, and the response time, in seconds."""

    demands: Demands
    workers: int
    cores: int
    seed: int = 7
    shared: int = 0
    """Requests that are admitted inside at once; 0 where nothing is shared."""
    held_s: float = 0.0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.clock = Clock()
        self.pool, self.gil, self.core = Tokens(self.workers), Tokens(1), Tokens(self.cores)
        self.inside = Tokens(self.shared)
        self.responses: list[tuple[float, float]] = []

    def closed_hz(self, clients: int, replies: int) -> float:
        """Replies a second to clients that each wait for their reply, without the first quarter of the replies."""
        for _ in range(clients):
            self.clock.start(self._client(), self.random.random() * self.demands.response_s)
        end_s, first = 0.0, replies // 4
        while len(self.responses) <= replies:
            end_s += 0.1
            self.clock.run_until(end_s)
        return (replies - first) / (self.responses[replies][0] - self.responses[first][0])

    def open_s(self, rate_hz: float, end_s: float) -> tuple[float, float]:
        """Mean and 99th percentile of response times in an open loop, in the last three quarters of the time."""
        at_s = 0.0
        while at_s < end_s:
            at_s += self.random.expovariate(rate_hz)
            self.clock.start(self._request(), at_s)
        self.clock.run_until(end_s)
        times = sorted(time_s for at_s, time_s in self.responses if at_s > end_s / 4)
        return fmean(times), times[int(0.99 * len(times))]

    def _client(self) -> Running:
        while True:
            yield "sleep", self._drawn(self.demands.overhead_s, self.demands.variation)
            yield from self._request()

    def _request(self) -> Running:
        began_s, needs = self.clock.now_s, self.demands
        yield "take", self.pool
        yield from self._held(needs.gil_s / 2)
        yield "sleep", self._drawn(needs.wait_s, needs.wait_variation)
        if self.shared:
            yield "take", self.inside
            yield "sleep", self.held_s
            yield "give", self.inside
        yield from self._computing(self._drawn(needs.free_s, needs.variation))
        yield from self._held(needs.gil_s / 2)
        yield "give", self.pool
        self.responses.append((self.clock.now_s, self.clock.now_s - began_s))

    def _held(self, mean_s: float) -> Iterator[Step]:
        """A part with the GIL, which passes to others after each switch interval."""
        left_s = self._drawn(mean_s, self.demands.variation)
        while left_s > 0:
            yield "take", self.gil
            yield from self._computing(min(left_s, SWITCH_S))
            yield "give", self.gil
            left_s -= SWITCH_S

    def _computing(self, left_s: float) -> Iterator[Step]:
        """Time on a core, which passes to others after each slice."""
        while left_s > 0:
            yield "take", self.core
            yield "sleep", min(left_s, SLICE_S)
            yield "give", self.core
            left_s -= SLICE_S

    def _drawn(self, mean_s: float, variation: float) -> float:
        """A time of that mean and variation; of a gamma distribution."""
        if not (mean_s and variation):
            return float(mean_s)
        return self.random.gammavariate(variation**-2, mean_s * variation**2)
