"""Findings of measuring a server, and the advice: the pool that is enough, and what limits the rate. Pure.

Both ways of measuring have one model: a server's rate is a function of the number of concurrent requests. A pool of N
workers has N concurrent requests. N connections in a closed loop have N, too, since each sends again after its reply.
So ``--start`` measures rates of pools, and ``--address`` rates of connections. The advice is the smallest number whose
rate is within ``RATE_NEAR`` of the best. Every stated rate was measured.

Connections differ from workers in one case. Where requests only compute, a connection is at the client or on the wire
for much of the time, so that one busy worker needs several connections. Then the advice is one worker where the GIL is
the limit, and one worker for each core elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from clients.load.record.result import CLIENT_CPU_LIMIT
from experiments.recommend.advice import BUSIEST, POOLS, RATE_NEAR, Choice, Kind, Wish

WAIT_LEAST_S = 0.0003
"""Shortest wait that can be told from threads that wake up late."""

BUSY = 0.75
"""Share of the GIL, or of the free cores, in use. A server whose throughput stops growing under this share is limited
by something other than the processor."""

ALL_CORES = 0.85
"""The same share of all cores together, where there is a GIL: the kernel computes for one thread beside the GIL."""

RATE_FAIR = 0.9
"""A level under this share of the best rate in the middle round is not near it, whatever its other rounds show."""

ONE_AT_A_TIME = 1.5
"""Fewer concurrent requests than this count as one: the rate with one worker is known within some per cent."""


@dataclass(frozen=True, slots=True)
class Load:
    """One window of a load on a number of connections. Times are in seconds."""

    connections: int
    throughput_hz: float
    p99_s: float
    processor_s: float | None
    """Processor time of the server for each request; None where it cannot be read."""
    client_share: float
    """Share of a core that the client took. Beyond ``CLIENT_CPU_LIMIT`` the throughput is that of client and server
    together."""
    is_disturbed: bool = False
    """True where other programs, or the hypervisor, took the cores meanwhile, and in every try before."""


@dataclass(frozen=True, slots=True)
class Level:
    """One number of concurrent requests, measured by turns with other levels."""

    at_once: int
    """Workers of each process, or connections."""
    rounds: tuple[Load, ...]

    @property
    def throughput_hz(self) -> float:
        """Throughput of the middle round."""
        return median(load.throughput_hz for load in self.rounds)

    @property
    def busy_cores(self) -> float | None:
        """Cores that the server kept busy in the middle round; None where its processor time cannot be read."""
        read = [load.processor_s * load.throughput_hz for load in self.rounds if load.processor_s is not None]
        return median(read) if read else None

    @property
    def client_share(self) -> float:
        """Share of a core that the client took in the middle round."""
        return median(load.client_share for load in self.rounds)


class Limit(StrEnum):
    """Limit that stops the growth of the rate."""

    CLIENT = "client"
    CORES = "cores"
    GIL = "gil"
    INSIDE = "inside"
    """The processor is idle, and more concurrent requests add nothing: a lock or a pool of connections is the limit."""
    WORKERS = "workers"
    """No limit yet: the largest level has the highest rate."""
    UNREAD = "unread"
    """Unknown limit: more concurrent requests add nothing, and processor time cannot be read. The workers are not the
    limit."""


@dataclass(frozen=True, slots=True)
class Program:
    """Program of the server, and its machine."""

    has_gil: bool
    """True for a Python with a GIL."""
    cores: int
    """Number of cores of the machine."""
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Tail:
    """The p99 measured in an open loop."""

    workers: int
    """Workers of the measured pool. A server that runs has its own pool."""
    rate_hz: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Found:
    """Measurements, and the advice."""

    workers: int
    processes: int
    by_workers: bool
    """True where the levels are pools that were started. Else they are connections to a server that runs."""
    levels: tuple[Level, ...]
    highest_hz: float
    """Measured replies a second of the advised pool, or of a server that runs with as many concurrent requests."""
    limit: Limit
    at_a_time: float
    """Number of concurrent requests that the best rate needs, if each takes the time of a request alone."""
    alone_s: float
    """Time of a request without any other: in its worker, or until its reply."""
    processor_s: float | None
    """Processor time of a request, at the highest rate; None where it cannot be read."""
    tails: tuple[Tail, ...] = ()
    """Tails. That of the advised pool is the last."""

    @property
    def best(self) -> Level:
        """The level with the highest rate."""
        return best_of(self.levels)

    def carried(self, wish: Wish) -> bool:
        """True where the wished rate is carried and the wished p99 was kept, and where there is no wish."""
        is_kept = wish.target_p99_s is None or (bool(self.tails) and self.tails[-1].p99_s <= wish.target_p99_s)
        return is_kept and (wish.rate_hz is None or wish.rate_hz <= BUSIEST * self.highest_hz)

    def __str__(self) -> str:
        """The advice in a few words."""
        return str(Choice(self.workers, self.processes, Kind.PROCESSES if self.processes > 1 else Kind.THREADS))


def best_of(levels: Sequence[Level]) -> Level:
    """The level with the highest rate."""
    return max(levels, key=lambda level: level.throughput_hz)


def enough(levels: Sequence[Level], rate_hz: float | None = None) -> Level:
    """The smallest level within ``RATE_NEAR`` of the best rate; for a wished rate the smallest level that carries it.

    Noise does not count as a gain: a level within ``RATE_FAIR`` is also near the best if it reached the best rate in
    one of the undisturbed rounds.
    """
    best = best_of(levels)
    return next(
        level
        for level in levels
        if is_near(level, best) or (rate_hz is not None and rate_hz <= BUSIEST * level.throughput_hz)
    )


def is_near(level: Level, best: Level) -> bool:
    """True where a level's rate is near the best rate: within ``RATE_NEAR`` in the middle round; or within
    ``RATE_FAIR`` there, and as high in any undisturbed round."""
    pairs = list(zip(level.rounds, best.rounds, strict=False))
    middle = median(own.throughput_hz / other.throughput_hz for own, other in pairs)
    in_full = any(
        own.throughput_hz >= other.throughput_hz for own, other in pairs if not (own.is_disturbed or other.is_disturbed)
    )
    return middle >= (RATE_FAIR if in_full else RATE_NEAR)


def of_pools(levels: Sequence[Level], program: Program, wish: Wish) -> Found:
    """Findings on pools that were started, the smallest first. With several processes, each has such a pool."""
    best, chosen = best_of(levels), enough(levels, wish.rate_hz)
    alone_s = program.processes * levels[0].at_once / levels[0].throughput_hz
    return Found(
        workers=chosen.at_once,
        processes=program.processes,
        by_workers=True,
        levels=tuple(levels),
        highest_hz=chosen.throughput_hz,
        limit=limit(best, enough(levels) is levels[-1], program),
        at_a_time=best.throughput_hz * alone_s,
        alone_s=alone_s,
        processor_s=_processor_s(best),
    )


def of_connections(levels: Sequence[Level], program: Program, floor_s: float, wish: Wish) -> Found:
    """Findings on connections to a running server, one connection first.

    ``floor_s`` is the response time of a server that does nothing, as our client reads it.
    """
    best, alone_s = best_of(levels), 1 / levels[0].throughput_hz
    limited_by = limit(best, enough(levels) is levels[-1], program)
    chosen = enough([level for level in levels if level.at_once <= max(POOLS)], wish.rate_hz)
    workers, highest_hz, processor_s = chosen.at_once, chosen.throughput_hz, _processor_s(best)
    if processor_s is not None and alone_s - processor_s - floor_s <= max(WAIT_LEAST_S, processor_s):
        most = program.cores if limited_by is Limit.CORES or not program.has_gil else 1
        fewer = next(pool for pool in POOLS if pool >= min(most, max(POOLS)))
        if fewer < workers:
            workers, highest_hz = fewer, best.throughput_hz
    return Found(
        workers=workers,
        processes=1,
        by_workers=False,
        levels=tuple(levels),
        highest_hz=highest_hz,
        limit=limited_by,
        at_a_time=max(1.0, best.throughput_hz * (alone_s - floor_s)),
        alone_s=alone_s,
        processor_s=processor_s,
    )


def limit(best: Level, grows: bool, program: Program) -> Limit:
    """Limit of the rate. ``grows``: the best level is the largest, and no smaller level comes near."""
    busy_cores, free_cores = best.busy_cores, program.cores - best.client_share
    if best.client_share > CLIENT_CPU_LIMIT:
        return Limit.CLIENT
    if busy_cores is not None:
        if busy_cores >= (ALL_CORES if program.has_gil else BUSY) * free_cores:
            return Limit.CORES
        if program.has_gil and busy_cores >= BUSY * program.processes:
            return Limit.GIL
    if grows:
        return Limit.WORKERS
    return Limit.UNREAD if busy_cores is None else Limit.INSIDE


def _processor_s(level: Level) -> float | None:
    return None if level.busy_cores is None else level.busy_cores / level.throughput_hz
