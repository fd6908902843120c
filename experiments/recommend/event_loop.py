"""Predicted throughput of a closed loop on a server with asyncio's event loop. The event loop works in rounds, and its
timers have a resolution of one millisecond.

In each round asyncio calls all ready callbacks (``BaseEventLoop._run_once``). A **turn** is one callback of a request.
A request takes several turns, so concurrent requests advance together. Without a ready callback the loop sleeps in
epoll until the next timer. This sleep is rounded up to a whole millisecond (``EpollSelector.select``). So all timers of
one millisecond end together. Requests therefore gather into **waves**: the requests of a wave wait at the same time.
While a wave waits, the processor is idle. The queueing network in ``model`` has no waves, and predicts a higher
throughput.

No formula gives this throughput, so this module simulates the loop, turn by turn. A simulated request has as many turns
as a request to grpcio's asyncio server. A test counts these turns. All turns of a request take equal processor time.
The clients start at the same time, as in a real load.

The error depends on the number of clients. In the following measurements, each request waits for 10 ms and computes for
0.2 ms. For waves of 16 requests, the predicted throughput is within 2 % of the measured throughput. 16 clients got
1,200 replies a second. With a selector that does not round its timeout, 16 clients got 1,390. Waves of 32 requests
partly dissolve: 2,330 replies a second were measured, 1,940 are predicted. With 64 clients the prediction depends on
the processor time of each turn. With equal times for all turns, as in this module, the prediction is 4,300 replies a
second. With the turns' times that were measured with one client, the prediction is 3,400. The measured throughput was
3,850. The simulation leaves out the work that grpcio does on another thread.
"""

import heapq
import math
from collections import deque
from functools import lru_cache
from random import Random

from experiments.design.demands import Demands
from stock_service.rpc.errors import UsageError

CLOCK_S = 0.001
"""Unit of epoll's timeout, in seconds."""

TURNS_BEFORE, TURNS_AFTER = 8, 6
"""Number of turns of a request before and after the request's wait, on the asyncio server of grpcio 1.85."""

REPLIED_AFTER = 2
"""Number of turns from the end of the wait until the reply is sent. Later turns clean up."""

_STARTS = 3
"""Number of simulations whose results are averaged. Each simulation has another seed: in some simulations the waves
last, and in others they dissolve.
"""

_REPLIES = 2_000
"""Number of counted replies in each simulation. The warm-up has a tenth of this number of replies."""


@lru_cache(maxsize=256)
def event_loop_hz(demands: Demands, clients: int) -> float:
    """Predicted number of replies a second to all clients together, in a closed loop. ``clients``: number of clients, 1
    or more. Raises UsageError.

    All processor time of ``demands`` blocks the loop. ``demands.wait_s`` is the delay of the loop's timer. The first
    call with these arguments blocks for some 0.1 s; 256 results are cached.
    """
    if clients < 1:
        raise UsageError("clients", str(clients), "1 or more")
    return sum(_Loop(demands, clients, seed).run() for seed in range(_STARTS)) / _STARTS


class _Loop:
    """Simulation of an event loop and its clients. ``run`` may be called once."""

    def __init__(self, demands: Demands, clients: int, seed: int) -> None:
        self._demands = demands
        self._turn_s = demands.processor_s / (TURNS_BEFORE + TURNS_AFTER)
        self._random = Random(seed)
        self._now_s = 0.0
        self._ready: deque[tuple[int, float]] = deque()  # for each request: turns so far, slowness
        self._arriving = [0.0] * clients
        self._timers: list[tuple[float, float]] = []  # for each request: end of its wait, slowness
        self._replied_at: list[float] = []

    def run(self) -> float:
        """Runs the simulation. Returns the replies a second."""
        skipped = _REPLIES // 10
        while len(self._replied_at) < _REPLIES + skipped:
            self._look()
            for _ in range(len(self._ready)):
                self._turn(*self._ready.popleft())
        return _REPLIES / (self._replied_at[_REPLIES + skipped - 1] - self._replied_at[skipped - 1])

    def _look(self) -> None:
        """Makes requests ready: requests that have arrived, and requests whose wait has ended. Without a ready request
        the clock first advances to the next arrival or timer."""
        if not self._ready:
            next_s = self._arriving[0] if self._arriving else math.inf
            if self._timers:
                left_s = max(0.0, self._timers[0][0] - self._now_s)
                next_s = min(next_s, self._now_s + math.ceil(left_s / CLOCK_S - 1e-6) * CLOCK_S)
            self._now_s = max(self._now_s, next_s)
        while self._arriving and self._arriving[0] <= self._now_s:
            heapq.heappop(self._arriving)
            self._ready.append((0, self._drawn()))
        while self._timers and self._timers[0][0] <= self._now_s + 1e-9:
            self._ready.append((TURNS_BEFORE, heapq.heappop(self._timers)[1]))

    def _turn(self, turns: int, slowness: float) -> None:
        """Runs the next turn of a request. ``turns``: number of turns that the request has had. ``slowness``: see
        ``_drawn``."""
        self._now_s += self._turn_s * slowness
        turns += 1
        if turns == TURNS_BEFORE and self._demands.wait_s:
            heapq.heappush(self._timers, (self._now_s + self._demands.wait_s, slowness))
            return
        if turns == TURNS_BEFORE + REPLIED_AFTER:
            self._replied_at.append(self._now_s)
            heapq.heappush(self._arriving, self._now_s + self._demands.overhead_s)
        if turns < TURNS_BEFORE + TURNS_AFTER:
            self._ready.append((turns, slowness))

    def _drawn(self) -> float:
        """Draws a request's slowness: a factor on its processor time, 1 on average, with a gamma distribution."""
        variation = self._demands.variation
        return self._random.gammavariate(variation**-2, variation**2) if variation else 1.0
