"""Predicted percentile of response times in an open loop. The server is a pool whose workers share a GIL.

No formula gives this percentile, so a discrete-event simulation computes it:

- Requests are due at the times of a Poisson process. Each request goes to a random process of the server, and queues
  for a worker of this process. Workers serve requests in the order of arrival.
- Each process has a GIL. A thread releases the GIL after the switch interval if other threads want the GIL (Beazley,
  *Understanding the Python GIL*, 2010).
- All running threads share the cores evenly.

The seed is fixed. So equal arguments give an equal result.
"""

import math
from collections import deque
from collections.abc import Callable, Generator
from functools import lru_cache, partial
from heapq import heappop, heappush
from random import Random

from experiments.design.demands import Demands
from experiments.recommend.model import capacity_hz
from stock_service.rpc.errors import UsageError

SWITCH_S = 0.005
"""Seconds for which a thread keeps a GIL that other threads want: CPython's ``sys.getswitchinterval()``."""

REQUESTS = 20_000
"""Number of simulated requests that count; 200 of these requests are over the 99th percentile. The warm-up has a tenth
of this number of requests."""


class _Tokens:
    """Tokens, given out in the order of the requests. A token is a worker of a process, or a process's GIL."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.waiting: deque[_Request] = deque()


_Heap = list[tuple[float, int, "_Request"]]
"""Heap of events. An event has its time, a number that orders events of equal time, and the request that continues
then.
"""

_Request = Generator[_Tokens | tuple[_Heap, float], None, None]
"""Request as a generator. To take a token, the request yields the tokens. To wait, the request yields a heap and the
time of the wait's end on the clock of this heap.
"""


@lru_cache(maxsize=256)
def tail(
    demands: Demands,
    workers: int,
    rate_hz: float,
    quantile: float = 0.99,
    *,
    cores: float = 1,
    processes: int = 1,
) -> float:
    """Percentile of response times in seconds; inf if the server cannot keep up.

    Open loop: requests are due at random moments, at ``rate_hz``. A response time begins when the request is due. The
    first call with these arguments blocks for some 0.2 s; 256 results are cached. Raises UsageError.
    """
    if not (rate_hz > 0 and 0 < quantile < 1 and workers >= 1):
        raise UsageError("a tail", f"{workers} workers, {rate_hz}/s, quantile {quantile}", "over 0; a quantile under 1")
    if rate_hz >= capacity_hz(demands, workers, cores, processes):
        return math.inf
    responses = sorted(_Simulation(demands, workers, cores, processes).run(rate_hz))
    return responses[math.ceil(quantile * len(responses)) - 1] + demands.overhead_s


class _Simulation:
    """Simulation of a server and its requests. ``run`` may be called once."""

    def __init__(self, demands: Demands, workers: int, cores: float, processes: int) -> None:
        self._cores = cores
        self._random = Random(20_041)
        self._half_gil_s = self._times(demands.gil_s / 2, demands.variation)
        self._wait_s = self._times(demands.wait_s, demands.wait_variation)
        self._free_s = self._times(demands.free_s, demands.variation)
        self._processes = [(_Tokens(workers), _Tokens(1)) for _ in range(processes)]  # for each process: workers, GIL
        self._now_s = 0.0
        self._work_s = 0.0
        """Processor time that a thread would have so far if it had run since the start of the simulation."""
        self._running: _Heap = []
        self._waits: _Heap = []
        self._number = 0
        self._responses: list[float] = []

    def run(self, rate_hz: float) -> list[float]:
        """Response times of all requests that count, in the order of the replies."""
        skipped = REQUESTS // 10
        cores, running, waits, responses = self._cores, self._running, self._waits, self._responses
        arrival_s = self._random.expovariate(rate_hz)
        while len(responses) < REQUESTS + skipped:
            speed = cores / len(running) if len(running) > cores else 1.0
            ends_s = self._now_s + (running[0][0] - self._work_s) / speed if running else math.inf
            next_s = wakes_s = waits[0][0] if waits else math.inf
            if arrival_s < next_s:
                next_s = arrival_s
            if ends_s < next_s:
                next_s = ends_s
            self._work_s += (next_s - self._now_s) * speed
            self._now_s = next_s
            if next_s == ends_s:
                self._go_on(heappop(running)[2])
            elif next_s == wakes_s:
                self._go_on(heappop(waits)[2])
            else:
                self._go_on(self._request())
                arrival_s = next_s + self._random.expovariate(rate_hz)
        return responses[skipped:]

    def _request(self) -> _Request:
        """A request that arrives now, at a random process."""
        due_s = self._now_s
        workers, gil = self._processes[self._random.randrange(len(self._processes))]
        yield workers
        yield from self._holding(gil)
        if self._wait_s is not None:
            yield self._waits, self._now_s + self._wait_s()
        if self._free_s is not None:
            yield self._running, self._work_s + self._free_s()
        yield from self._holding(gil)
        self._responses.append(self._now_s - due_s)
        self._give(workers)

    def _holding(self, gil: _Tokens) -> _Request:
        """Half of a request's work with the GIL, in turns of at most ``SWITCH_S``."""
        if self._half_gil_s is None:
            return
        left_s = self._half_gil_s()
        while True:
            yield gil
            turn_s = min(left_s, SWITCH_S)
            left_s -= turn_s
            yield self._running, self._work_s + turn_s
            self._give(gil)
            if left_s <= 0:
                return

    def _go_on(self, request: _Request) -> None:
        """Runs a request until it waits: for a token, or for a time."""
        for step in request:
            if isinstance(step, tuple):
                self._number += 1
                heappush(step[0], (step[1], self._number, request))
                return
            if not step.left:
                step.waiting.append(request)
                return
            step.left -= 1

    def _give(self, tokens: _Tokens) -> None:
        """Gives a token back: the request that has waited longest gets the token, and goes on."""
        if tokens.waiting:
            self._go_on(tokens.waiting.popleft())
        else:
            tokens.left += 1

    def _times(self, mean_s: float, variation: float) -> Callable[[], float] | None:
        """Function that draws times from a gamma distribution of this mean and variation; None if all times are 0."""
        if not mean_s:
            return None
        if not variation:
            return lambda: mean_s
        shape = variation**-2
        return partial(self._random.gammavariate, shape, mean_s / shape)
