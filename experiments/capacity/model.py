"""Throughput and response time of a closed loop, predicted: bounds first, then a queueing network.

The network, from the inside out. Each level is one chain of states, and the next one sees it as a single station whose
rate depends on how many requests are inside:

1. *Processor.* Requests need the GIL of their process (``gil_s``, one at a time) and processor time without it
   (``free_s``). All of them share the ``cores``. Requests are spread over the processes at random.
2. *Workers.* A request in a worker is at the processor or waits (``wait_s``) beside the others.
3. *Clients.* A client is outside (``overhead_s``), or at the server, where at most so many requests are in workers and
   the rest queue.

This is hierarchical decomposition with flow-equivalent stations (Chandy, Herzog and Woo, *Parametric analysis of
queuing networks*, IBM J. Res. Dev. 19, 1975; Lazowska et al., *Quantitative System Performance*, 1984, chapters 8 and
9). Without limit of workers and with cores to spare, it gives what exact mean value analysis gives (Reiser and
Lavenberg, *Mean-value analysis of closed multichain queuing networks*, JACM 27, 1980). The bounds are those of Denning
and Buzen, *The operational analysis of queueing network models*, ACM Computing Surveys 10, 1978.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from experiments.capacity.demands import Demands
from stock_service.rpc.errors import UsageError

USEFUL_SHARE = 0.95
"""A pool is useful up to where it reaches this share of the throughput of any pool."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no load can go beyond."""

    capacity_hz: float
    """Replies a second of any number of clients."""
    limit: str
    """What it is that is busy then: ``gil``, ``cores``, ``lock`` or ``workers``."""
    response_s: float
    """The response time of one client alone."""

    def throughput_hz(self, clients: int) -> float:
        """Replies a second that so many clients cannot go beyond."""
        return min(self.capacity_hz, clients / self.response_s)

    @property
    def knee_clients(self) -> float:
        """Where the two asymptotes meet: more clients than this queue."""
        return self.capacity_hz * self.response_s


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a closed loop of some clients gets of a server."""

    throughput_hz: float
    """Replies a second, of all clients together."""
    response_s: float
    """Mean response time: from a request's send to its reply."""
    useful_workers: int
    """The least pool (of each process) that reaches ``USEFUL_SHARE`` of the throughput of any pool."""
    knee_clients: float
    """Where the two asymptotes meet: more clients than this queue."""


def bounds(demands: Demands, workers: int, cores: int = 1, processes: int = 1) -> Bounds:
    """The asymptotic bounds of a server of ``processes`` with a pool of ``workers`` each, on ``cores``."""
    busiest = {
        "gil": demands.gil_s / processes,
        "cores": demands.processor_s / cores,
        "lock": demands.lock_s,
        "workers": demands.service_s / (workers * processes),
    }
    limit = max(busiest, key=lambda name: busiest[name])
    return Bounds(1 / busiest[limit], limit, demands.response_s)


def predict(demands: Demands, workers: int, clients: int, cores: int = 1, processes: int = 1) -> Prediction:
    """What ``clients`` in a closed loop get of a server of ``processes``, with a pool of ``workers`` threads each.

    ``cores`` are those that the server may use. A server without a pool, such as one on asyncio, has as many workers as
    clients. Each number is 1 or more; raises UsageError. Takes milliseconds for 100 clients, half a second for 1,000.
    """
    for name, number in (("workers", workers), ("clients", clients), ("cores", cores), ("processes", processes)):
        if number < 1:
            raise UsageError(name, str(number), "1 or more")
    rates = inside_hz(demands, clients, cores, processes)
    throughput_hz = _pooled_hz(demands.overhead_s, rates, workers * processes)
    useful = _useful(demands.overhead_s, rates, processes)
    return Prediction(
        throughput_hz,
        response_s=clients / throughput_hz,
        useful_workers=useful,
        knee_clients=bounds(demands, workers, cores, processes).knee_clients,
    )


def _useful(overhead_s: float, rates: Sequence[float], processes: int) -> int:
    """The least pool of each process that reaches ``USEFUL_SHARE`` of the throughput with all clients inside."""
    enough_hz = USEFUL_SHARE * _pooled_hz(overhead_s, rates, len(rates))
    low, high = 1, len(rates)
    while low < high:
        middle = (low + high) // 2
        if _pooled_hz(overhead_s, rates, middle * processes) >= enough_hz:
            high = middle
        else:
            low = middle + 1
    return low


def _pooled_hz(overhead_s: float, rates: Sequence[float], inside: int) -> float:
    """Replies a second where at most ``inside`` requests are in workers; ``rates`` are those with 1, 2 … inside."""
    return alternating_hz(overhead_s, [rates[min(there, inside) - 1] for there in range(1, len(rates) + 1)])


@cache
def inside_hz(demands: Demands, inside: int, cores: int, processes: int) -> tuple[float, ...]:
    """Replies a second with 1, 2 … ``inside`` requests in workers all the time."""
    at_processor = [processor_hz(demands, count, cores, processes) for count in range(1, inside + 1)]
    lock_hz = 1 / demands.lock_s if demands.lock_s else math.inf
    return tuple(min(alternating_hz(demands.wait_s, at_processor[:count]), lock_hz) for count in range(1, inside + 1))


def processor_hz(demands: Demands, count: int, cores: int, processes: int) -> float:
    """Requests a second that the processor does, with ``count`` of them there all the time; inf where it does none.

    The states are how many of them need the GIL. With ``n`` of them, spread at random, ``p·n/(p+n-1)`` of ``p``
    processes have one: this is the network of ``p`` equal stations (Lazowska et al., section 5.4, balanced systems).
    """
    ups, downs = [], []  # from one state to the next, and back
    for at_gil in range(count + 1):
        holding = processes * at_gil / (processes + at_gil - 1) if at_gil else 0.0
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
    """How often customers go round, who are away for a time each and then at a station; one for each of ``rates``.

    ``rates`` are those of the station with 1, 2 … customers; inf where it takes no time.
    """
    customers = len(rates)
    if math.isinf(rates[-1]):
        return customers / away_s
    if away_s == 0:
        return rates[-1]
    shares = birth_death([(customers - there) / away_s for there in range(customers)], rates)
    return sum(share * rate for share, rate in zip(shares[1:], rates, strict=True))


def birth_death(ups: Sequence[float], downs: Sequence[float]) -> list[float]:
    """The shares of time in states 0, 1 … of a chain that goes up from each but the last, and down to each but it."""
    logs = [0.0]
    for up, down in zip(ups, downs, strict=True):
        logs.append(logs[-1] + math.log(up) - math.log(down))
    highest = max(logs)  # taken out, so that no power overflows
    weights = [math.exp(each - highest) for each in logs]
    whole = sum(weights)
    return [weight / whole for weight in weights]
