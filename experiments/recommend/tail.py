"""Predicted percentile of response times in an open loop. The server is a pool whose workers share a GIL.

No formula gives this percentile, so a discrete-event simulation computes it:

- Requests are due at the times of a Poisson process. Each request goes to a random process of the server, and queues
  for a worker of this process. Workers serve requests in the order of arrival.
- Each process has a GIL. A thread releases the GIL after the switch interval if other threads want the GIL (Beazley,
  *Understanding the Python GIL*, 2010).
- All running threads share the cores evenly.

The seed is fixed, so that equal arguments give an equal result.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Request:
    """A request in the server. The work of a request has four parts, in order."""

    due_s: float
    process: int
    left_s: float = 0.0
    """Processor time that the request still needs in its present part, in seconds."""
    part: int = 0
    """Number of the present part: 0 and 3 with the GIL, 1 waiting, 2 without the GIL."""


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
        half_gil_s = self._times(demands.gil_s / 2, demands.variation)
        waits = self._times(demands.wait_s, demands.wait_variation)
        self._draws = (half_gil_s, waits, self._times(demands.free_s, demands.variation), half_gil_s)
        self._idle = [workers] * processes
        self._queues: list[deque[_Request]] = [deque() for _ in range(processes)]
        self._wanting: list[deque[_Request]] = [deque() for _ in range(processes)]
        self._held = [False] * processes
        self._now_s = 0.0
        self._work_s = 0.0
        """Processor time so far of a thread that was running since the start."""
        self._running: list[tuple[float, int, _Request]] = []
        self._waits: list[tuple[float, int, _Request]] = []
        self._number = 0
        self._responses: list[float] = []

    def run(self, rate_hz: float) -> list[float]:
        """Response times of all requests that count, in the order of the replies."""
        skipped, processes = REQUESTS // 10, len(self._idle)
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
                self._part_done(heappop(running)[2])
            elif next_s == wakes_s:
                self._begin(heappop(waits)[2], 2)
            else:
                self._arrive(_Request(next_s, self._random.randrange(processes)))
                arrival_s = next_s + self._random.expovariate(rate_hz)
        return responses[skipped:]

    def _arrive(self, request: _Request) -> None:
        """Gives an arrived request to an idle worker of its process, or queues the request."""
        if self._idle[request.process]:
            self._idle[request.process] -= 1
            self._begin(request, 0)
        else:
            self._queues[request.process].append(request)

    def _begin(self, request: _Request, part: int) -> None:
        """Begins a part of the request; skips parts that take no time. After the last part the request leaves the
        server."""
        draws = self._draws
        while part < len(draws):
            if (drawn := draws[part]) is not None:
                break
            part += 1
        else:
            self._leave(request)
            return
        request.part, request.left_s = part, drawn()
        if part == 1:
            self._put(self._waits, self._now_s + request.left_s, request)
        elif part == 2:
            self._put(self._running, self._work_s + request.left_s, request)
        else:
            self._wanting[request.process].append(request)
            self._next_holder(request.process)

    def _part_done(self, request: _Request) -> None:
        """Ends a request's part without the GIL, or one turn of at most ``SWITCH_S`` with the GIL."""
        if request.part == 2:
            self._begin(request, 3)
            return
        self._held[request.process] = False
        if request.left_s > 0:
            self._wanting[request.process].append(request)
        self._next_holder(request.process)
        if request.left_s <= 0:
            self._begin(request, request.part + 1)

    def _next_holder(self, process: int) -> None:
        """If the GIL of a process is free, gives it to the thread that has waited longest, for one turn of at most
        ``SWITCH_S``."""
        wanting = self._wanting[process]
        if self._held[process] or not wanting:
            return
        request = wanting.popleft()
        turn_s = request.left_s if request.left_s < SWITCH_S else SWITCH_S
        request.left_s -= turn_s
        self._held[process] = True
        self._put(self._running, self._work_s + turn_s, request)

    def _leave(self, request: _Request) -> None:
        """Ends a request: its worker takes the next queued request, or becomes idle."""
        self._responses.append(self._now_s - request.due_s)
        queue = self._queues[request.process]
        if queue:
            self._begin(queue.popleft(), 0)
        else:
            self._idle[request.process] += 1

    def _put(self, heap: list[tuple[float, int, _Request]], at_s: float, request: _Request) -> None:
        """Puts an event into a heap. Events of equal time keep their order."""
        self._number += 1  # orders events of equal time
        heappush(heap, (at_s, self._number, request))

    def _times(self, mean_s: float, variation: float) -> Callable[[], float] | None:
        """Function that draws times from a gamma distribution of this mean and variation; None if all times are 0."""
        if not mean_s:
            return None
        if not variation:
            return lambda: mean_s
        shape = variation**-2
        return partial(self._random.gammavariate, shape, mean_s / shape)
