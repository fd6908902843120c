"""Predicted throughput and response time of a closed loop, by asymptotic bounds and by a queueing network.

The network has three levels. Each level is a birth-death chain. An outer level treats the next inner level as a single
station. The station's rate depends on the number of requests inside. The levels, from the inside out:

1. *Processor.* Requests need processor time with the GIL (``gil_s``, one request at a time) and without the GIL
   (``free_s``). All requests share the ``cores``.
2. *Workers.* A request in a worker is at the processor, or waits (``wait_s``) without the processor.
3. *Clients.* A client is outside (``overhead_s``) or at the server. At the server each worker has one request at most,
   and the other requests queue.

Several processes are modelled as several servers. Each server has a part of the cores, and together the servers use no
more than all cores. The kernel spreads connections over the processes at random, and a connection stays at its process.
So with few clients some processes have more work than others.

This is hierarchical decomposition with flow-equivalent stations (Chandy, Herzog and Woo, *Parametric analysis of
queuing networks*, IBM J. Res. Dev. 19, 1975; Lazowska et al., *Quantitative System Performance*, 1984, chapters 8 and
9). With unlimited workers and spare cores, the result equals exact mean value analysis (Reiser and Lavenberg,
*Mean-value analysis of closed multichain queuing networks*, JACM 27, 1980). The bounds are from Denning and Buzen, *The
operational analysis of queueing network models*, ACM Computing Surveys 10, 1978.

The network assumes exponential processor times. With constant processor times, the throughput reaches the bounds. For
processor times that vary less than exponential times, ``between`` interpolates. The tests compare the result with a
simulation.

Two effects are left out. A switch from one thread to another costs time. Also, a request needs less processor time
under load, since a busy server need not be woken for each request. Demands that are measured under load include both
effects.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from experiments.design.demands import Demands
from stock_service.rpc.errors import UsageError

USEFUL_SHARE = 0.95
"""Share of the best pool's throughput. ``useful_workers`` is the size of the smallest pool that reaches this share,
since larger pools gain little throughput.
"""


NEVER = 1e-9
"""Limit of probability. The mean over the numbers of clients at one process leaves out each number with at most this
probability.
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Asymptotic bounds of a server. No load exceeds these bounds."""

    capacity_hz: float
    """Largest number of replies a second, for any number of clients."""
    limit: str
    """Resource that is always busy at the rate ``capacity_hz``: ``gil``, ``cores`` or ``workers``."""
    response_s: float
    """Response time with a single client, in seconds."""

    def throughput_hz(self, clients: int) -> float:
        """Largest number of replies a second to this number of clients together."""
        return min(self.capacity_hz, clients / self.response_s)

    @property
    def knee_clients(self) -> float:
        """Number of clients at which the bound ``clients / response_s`` reaches ``capacity_hz``. With more clients,
        requests queue.
        """
        return self.capacity_hz * self.response_s


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted throughput and response time of a closed loop."""

    throughput_hz: float
    """Replies a second to all clients together."""
    response_s: float
    """Mean response time in seconds, from a request's send to its reply."""
    useful_workers: int
    """Number of threads of each process in the smallest pool that reaches ``USEFUL_SHARE`` of the best pool's
    throughput.
    """
    knee_clients: float
    """Smallest number of clients at which requests queue: ``Bounds.knee_clients``."""


def bounds(demands: Demands, workers: int, cores: float = 1, processes: int = 1) -> Bounds:
    """Asymptotic bounds of a server on ``cores`` cores, with ``workers`` threads in each of its ``processes``."""
    busiest = {
        "gil": demands.gil_s / processes,
        "cores": demands.processor_s / cores,
        "workers": demands.service_s / (workers * processes),
    }
    limit = max(busiest, key=lambda name: busiest[name])
    return Bounds(1 / busiest[limit], limit, demands.response_s)


def predict(demands: Demands, workers: int, clients: int, cores: float = 1, processes: int = 1) -> Prediction:
    """Predicts a closed loop with this number of clients. The server has ``workers`` threads in each of its
    ``processes``.

    ``cores``: cores that the server may use. For a server without a pool, such as a server on asyncio, give as many
    workers as clients. Raises UsageError for a number under 1. Blocks for milliseconds with 100 clients, for half a
    second with 1,000.
    """
    for name, number in (("workers", workers), ("clients", clients), ("cores", cores), ("processes", processes)):
        if number < 1:
            raise UsageError(name, str(number), "1 or more")
    throughput_hz = _throughput_hz(demands, workers, clients, cores, processes)
    enough_hz = USEFUL_SHARE * _throughput_hz(demands, clients, clients, cores, processes)

    def is_enough(pool: int) -> bool:
        return _throughput_hz(demands, pool, clients, cores, processes) >= enough_hz

    useful = 1 + bisect_left(range(1, clients), True, key=is_enough)
    knee = bounds(demands, workers, cores, processes).knee_clients
    return Prediction(throughput_hz, clients / throughput_hz, useful_workers=useful, knee_clients=knee)


def capacity_hz(demands: Demands, workers: int, cores: float = 1, processes: int = 1) -> float:
    """Highest number of replies a second, for any number of clients. At this rate every worker has a request at all
    times."""
    bound_hz = bounds(demands, workers, cores, processes).capacity_hz
    full_hz = processes * inside_hz(demands, workers, _each(cores, processes))[-1]
    return between(min(full_hz, bound_hz), bound_hz, demands.variation)


def between(exponential_hz: float, bound_hz: float, variation: float) -> float:
    """Throughput if the processor times have this ``variation`` (standard deviation ÷ mean).

    Constant times (variation 0) reach ``bound_hz``. Exponential times (variation 1) reach ``exponential_hz``. Between
    the two, the throughput is ``bound - sqrt(variation) * (bound - exponential)``. The square root fits simulated
    throughputs; no theory gives this formula.
    """
    return bound_hz - math.sqrt(min(1.0, variation)) * (bound_hz - exponential_hz)


def _throughput_hz(demands: Demands, workers: int, clients: int, cores: float, processes: int) -> float:
    """Replies a second, as the mean over all ways in which the clients can be spread over the processes."""
    found_hz = 0.0
    for here in range(1, clients + 1):
        share = math.comb(clients, here) * (1 / processes) ** here * (1 - 1 / processes) ** (clients - here)
        if share > NEVER:
            found_hz += processes * share * _of_one_hz(demands, workers, here, _each(cores, processes))
    return min(found_hz, bounds(demands, workers, cores, processes).capacity_hz)


def _each(cores: float, processes: int) -> float:
    """Number of cores that one process can use: an equal part of all cores, but at least one core, since other
    processes may be idle.
    """
    return max(1.0, cores / processes)


def _of_one_hz(demands: Demands, workers: int, clients: int, cores: float) -> float:
    """Replies a second of one process. The process serves ``workers`` requests at a time; further requests queue."""
    rates = inside_hz(demands, clients, cores)
    pooled = [rates[min(there, workers) - 1] for there in range(1, clients + 1)]
    bound_hz = bounds(demands, workers, cores).throughput_hz(clients)
    return between(min(bound_hz, alternating_hz(demands.overhead_s, pooled)), bound_hz, demands.variation)


@cache
def inside_hz(demands: Demands, inside: int, cores: float) -> tuple[float, ...]:
    """Replies a second of one process that always has the same number of requests in its workers. The result has a rate
    for each number from 1 to ``inside``.
    """
    at_processor = [processor_hz(demands, count, cores) for count in range(1, inside + 1)]
    return tuple(alternating_hz(demands.wait_s, at_processor[:count]) for count in range(1, inside + 1))


def processor_hz(demands: Demands, count: int, cores: float) -> float:
    """Requests a second that the processor completes while ``count`` requests are always at the processor; inf for
    requests that need no processor time.

    A state of the chain is the number of requests that need the GIL. One of these requests has the GIL, the rest wait.
    """
    ups, downs = [], []  # rates from each state to the next state, and back
    for at_gil in range(count + 1):
        holding = min(1, at_gil)
        running = holding + count - at_gil
        speed = min(1.0, cores / running)
        ups.append(speed * (count - at_gil) / demands.free_s if demands.free_s else math.inf)
        downs.append(speed * holding / demands.gil_s if demands.gil_s else math.inf)
    if not demands.free_s:
        return downs[count]
    if not demands.gil_s:
        return ups[0]
    shares = birth_death(ups[:count], downs[1:])
    return sum(share * rate for share, rate in zip(shares, downs, strict=True))


def alternating_hz(away_s: float, rates: Sequence[float]) -> float:
    """Number of customers that a station serves in a second. Each customer is alternately away and at the station.

    ``away_s``: mean time away. ``rates``: rates of the station with 1, 2 … customers, up to the number of customers;
    inf for a station that takes no time.
    """
    customers = len(rates)
    if math.isinf(rates[-1]):
        return customers / away_s
    if away_s == 0:
        return rates[-1]
    shares = birth_death([(customers - there) / away_s for there in range(customers)], rates)
    return sum(share * rate for share, rate in zip(shares[1:], rates, strict=True))


def birth_death(ups: Sequence[float], downs: Sequence[float]) -> list[float]:
    """Shares of time that a birth-death chain spends in the states 0, 1 …. ``ups``: rates from each state to the next
    state. ``downs``: rates from the next state back."""
    logs = [0.0]
    for up, down in zip(ups, downs, strict=True):
        logs.append(logs[-1] + math.log(up) - math.log(down))
    highest = max(logs)  # is subtracted: no exponential can then overflow
    weights = [math.exp(each - highest) for each in logs]
    whole = sum(weights)
    return [weight / whole for weight in weights]
