"""What a request needs, inferred from how a running server answered some loads. Pure; ``asking`` sends them.

With one connection a request meets nobody else. Its response time less its processor time and the client's own is what
it waited. Under the highest load the server is not woken for each request: its processor time a request there is what
more workers would meet. Where more than one core was busy, the part beyond one was without the GIL.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.capacity import Demands, bounds, predict

WAIT_LEAST_S = 0.0003
"""A shorter wait cannot be told from threads that wake up late."""

GROWS = 1.05
"""Twice the connections that gain less do not count as growth."""

NEAR_MOST = 0.9
"""Loads whose throughput is at least this share of the highest are busy ones."""

NOT_BUSY = 0.75
"""A server that stopped growing with its processor less busy than this is held back by its pool or a lock."""


@dataclass(frozen=True, slots=True)
class Load:
    """A closed loop on some connections, and what was seen. Times in seconds."""

    connections: int
    throughput_hz: float
    mean_s: float
    """Of response times up to the 99th percentile: a stall of the machine says nothing of the server."""
    deviation_s: float
    """Their standard deviation."""
    p99_s: float
    processor_s: float | None
    """Of the server, for each request; None where it cannot be read."""
    client_busy: bool
    """The client was at its limit, and this is the throughput of both together."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """What one request needs, and what else the loads show."""

    demands: Demands
    pool: int | None
    """How many requests the server works at once, at most; None where that was not its limit."""
    error: float
    """The median deviation of predicted from measured throughput, over the loads, as a share."""
    client_limited: bool
    """The highest load was as much as our client sends: the server may do more."""


def infer(loads: Sequence[Load], floor_s: float, has_gil: bool, cores: int) -> Inferred:
    """What the loads show. The first has one connection. ``floor_s`` is what the client reads of a server that does
    nothing, ``has_gil`` whether the server is a Python with a GIL, ``cores`` those of the machine."""
    alone, most = loads[0], max(loads, key=lambda load: load.throughput_hz)
    processor_s = _processor_s(loads, most)
    waited_s = max(0.0, alone.mean_s - (alone.processor_s or processor_s) - floor_s)
    wait_s = waited_s if waited_s > max(WAIT_LEAST_S, processor_s) else 0.0
    gil_s = min(processor_s, 1 / most.throughput_hz) if has_gil else 0.0
    demands = Demands(
        gil_s=gil_s,
        free_s=processor_s - gil_s,
        wait_s=wait_s,
        overhead_s=max(0.0, alone.mean_s - wait_s - processor_s),
        wait_variation=min(2.0, alone.deviation_s / wait_s) if wait_s else 0.0,
    )
    pool = _pool(loads, most, demands, cores)
    workers = pool or max(load.connections for load in loads)
    deviations = sorted(
        abs(predict(demands, workers, load.connections, cores).throughput_hz / load.throughput_hz - 1) for load in loads
    )
    return Inferred(demands, pool, deviations[len(deviations) // 2], most.client_busy)


def _processor_s(loads: Sequence[Load], most: Load) -> float:
    """The processor time of a request under load; where it cannot be read, what the throughput leaves for it."""
    busy = [load for load in loads if load.throughput_hz >= NEAR_MOST * most.throughput_hz]
    read = sorted(load.processor_s for load in busy if load.processor_s is not None)
    return read[len(read) // 2] if read else 1 / most.throughput_hz


def _pool(loads: Sequence[Load], most: Load, demands: Demands, cores: int) -> int | None:
    """How many requests are worked at once, where throughput stopped growing with the processor at rest."""
    last, before = loads[-1], loads[-2]
    stopped = last.throughput_hz < GROWS * before.throughput_hz
    able_hz = bounds(demands, last.connections, cores).capacity_hz
    if not stopped or most.client_busy or most.throughput_hz >= NOT_BUSY * able_hz:
        return None
    return max(1, round(most.throughput_hz * demands.service_s))
