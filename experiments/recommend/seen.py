"""What a request needs, inferred from how a running server answered some loads. Pure; ``asking`` sends them.

With one connection a request meets nobody else. Its response time less its processor time and the client's own is what
it waited. Under the highest load the server is not woken for each request: its processor time a request there is what
more workers would meet. Of that, what the kernel computes is without the GIL, as calls that may block release it. So is
what keeps more than one core busy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from clients.load.record.result import CLIENT_CPU_LIMIT
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
    client_share: float
    """Of a core that the client took; beyond ``CLIENT_CPU_LIMIT`` this is the throughput of both together."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """What one request needs, and what else the loads show."""

    demands: Demands
    highest_hz: float
    """The throughput that the server keeps up under more connections than it needs for it: the middle one."""
    pool: int | None
    """How many requests the server works at once, at most; None where that was not its limit."""
    error: float
    """The median deviation of predicted from measured throughput, over the loads, as a share."""
    reached: float
    """Of the throughput that is predicted with all cores for itself, what was measured; at most 1. Less where our load
    took a part of cores that it needs, or the machine had other things to do."""
    client_limited: bool
    """The highest load was as much as our client sends: the server may do more."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside the loads."""

    floor_s: float
    """What the client reads of a server that does nothing."""
    has_gil: bool
    """Whether the server is a Python with a GIL."""
    kernel_share: float
    """Of the server's processor time, what the kernel computed."""
    cores: int
    """Of the machine."""


def infer(loads: Sequence[Load], around: Around) -> Inferred:
    """What the loads show; at least two, the first with one connection."""
    alone, busy = loads[0], _busy(loads)
    highest_hz = kept_up_hz(loads)
    read = [load.processor_s for load in busy if load.processor_s is not None]
    processor_s = median(read) if read else 1 / highest_hz
    waited_s = max(0.0, alone.mean_s - (alone.processor_s or processor_s) - around.floor_s)
    wait_s = waited_s if waited_s > max(WAIT_LEAST_S, processor_s) else 0.0
    gil_s = min((1 - around.kernel_share) * processor_s, 1 / highest_hz) if around.has_gil else 0.0
    demands = Demands(
        gil_s=gil_s,
        free_s=processor_s - gil_s,
        wait_s=wait_s,
        overhead_s=max(0.0, alone.mean_s - wait_s - processor_s),
        wait_variation=min(2.0, alone.deviation_s / wait_s) if wait_s else 0.0,
    )
    client_limited = max(load.client_share for load in busy) > CLIENT_CPU_LIMIT
    pool = None if client_limited else _pool(loads, highest_hz, demands, around.cores)
    workers = pool or max(load.connections for load in loads)

    def predicted_hz(load: Load, cores: float) -> float:
        return predict(demands, workers, load.connections, cores).throughput_hz

    reached = min(1.0, highest_hz / max(predicted_hz(load, around.cores) for load in busy))
    error = median(
        abs(predicted_hz(load, max(1.0, around.cores - load.client_share)) / load.throughput_hz - 1) for load in loads
    )
    return Inferred(demands, highest_hz, pool, error, reached, client_limited)


def kept_up_hz(loads: Sequence[Load]) -> float:
    """The throughput under more connections than it takes: the middle one, from the first load that comes near."""
    return median(load.throughput_hz for load in _busy(loads))


def _busy(loads: Sequence[Load]) -> Sequence[Load]:
    """Those from the first on that comes near the highest throughput."""
    near_hz = NEAR_MOST * max(load.throughput_hz for load in loads)
    return loads[next(place for place, load in enumerate(loads) if load.throughput_hz >= near_hz) :]


def _pool(loads: Sequence[Load], highest_hz: float, demands: Demands, cores: int) -> int | None:
    """How many requests are worked at once, where throughput stopped growing while requests waited and the processor
    was at rest."""
    stopped = loads[-1].throughput_hz < GROWS * loads[-2].throughput_hz
    able_hz = bounds(demands, loads[-1].connections, cores).capacity_hz
    if not demands.wait_s or not stopped or highest_hz >= NOT_BUSY * able_hz:
        return None
    return max(1, round(highest_hz * demands.service_s))
