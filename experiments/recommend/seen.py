"""Advice from measurements of a server: the smallest pool that reaches nearly the best rate, and the cause that limits
the rate. Pure.

The model: a server's rate is a function of the number of concurrent requests. A pool of N workers has N concurrent
requests. N connections in a closed loop also have N concurrent requests, since each connection sends again after its
reply. So ``--start`` measures the rate of each pool, and ``--address`` the rate of each number of connections. The
advice is the smallest number whose rate is at least ``RATE_NEAR`` × the best rate. Every stated rate was measured.

If requests only compute, the number of connections cannot stand for the number of workers. A connection then has no
request at the server for much of the time: its next request is still at the client or on the wire. So one busy worker
needs several connections. If the cores are the limit, or if the Python has no GIL, the advice is one worker for each
core. Otherwise the advice is one worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from clients.load.record.result import CLIENT_CPU_LIMIT
from experiments.recommend.advice import BUSIEST, POOLS, RATE_NEAR, Choice, Kind, Wish

WAIT_LEAST_S = 0.0003
"""Shortest time that counts as a wait of a request, in seconds. A shorter time may only be the delay of waking threads.
"""

BUSY = 0.75
"""Smallest share of the GIL, or of the free cores, that a busy server uses. Free cores are the cores that the client
does not use. If the server uses a smaller share when the rate stops growing, the processor is not the limit.
"""

ALL_CORES = 0.85
"""Smallest share of the free cores that a server with a GIL uses if the cores are the limit. This share is larger than
``BUSY``, since the kernel can work for one thread while another thread has the GIL."""

RATE_FAIR = 0.9
"""Smallest ratio of a level's rate to the best level's rate, as the median over the rounds. A level with a smaller
ratio is not near the best level, even if the level was faster in a single round.
"""

ONE_AT_A_TIME = 1.5
"""Limit of ``Found.at_a_time``. A number under the limit counts as one request at a time, since measured rates have
errors of some per cent.
"""


@dataclass(frozen=True, slots=True)
class Load:
    """Results of one window of a load on a number of connections. Times are in seconds."""

    connections: int
    throughput_hz: float
    p99_s: float
    processor_s: float | None
    """Processor time of the server for each request, in seconds; None if unknown."""
    client_share: float
    """Share of a core that the client used. If this share is over ``CLIENT_CPU_LIMIT``, the client also limits the
    throughput.
    """
    is_disturbed: bool = False
    """True if other programs, or the hypervisor, took the cores in every try of this window."""


@dataclass(frozen=True, slots=True)
class Level:
    """A number of concurrent requests, and the loads that were measured with this number. Several levels are loaded in
    turn."""

    at_once: int
    """Number of workers of each process, or number of connections."""
    rounds: tuple[Load, ...]

    @property
    def throughput_hz(self) -> float:
        """Median throughput over the rounds, in replies a second."""
        return median(load.throughput_hz for load in self.rounds)

    @property
    def busy_cores(self) -> float | None:
        """Median number of cores that the server kept busy; None if the server's processor time is unknown."""
        read = [load.processor_s * load.throughput_hz for load in self.rounds if load.processor_s is not None]
        return median(read) if read else None

    @property
    def client_share(self) -> float:
        """Median share of a core that the client used."""
        return median(load.client_share for load in self.rounds)


class Limit(StrEnum):
    """Cause that limits the rate of a server."""

    CLIENT = "client"
    CORES = "cores"
    GIL = "gil"
    INSIDE = "inside"
    """The processor is idle, and more concurrent requests add nothing: a lock or a pool of connections is the limit."""
    WORKERS = "workers"
    """The number of workers, or of connections, is the limit: only the largest level is near the highest rate."""
    UNREAD = "unread"
    """The limit is unknown. More concurrent requests add nothing, so the workers are not the limit. The processor time
    cannot be read.
    """


@dataclass(frozen=True, slots=True)
class Program:
    """A server's program, and the number of cores of its machine."""

    has_gil: bool
    """True for a Python with a GIL."""
    cores: int
    """Number of cores of the machine."""
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Tail:
    """A p99, measured in an open loop."""

    workers: int
    """Number of workers of the measured pool. For a running server, the advised number of workers."""
    rate_hz: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Found:
    """Measurements of a server, and the advice."""

    workers: int
    processes: int
    by_workers: bool
    """True if each level is a pool that was started. False if each level is a number of connections."""
    levels: tuple[Level, ...]
    highest_hz: float
    """Measured rate of the advised pool, in replies a second. For a running server, the rate with as many connections
    as workers are advised. If its requests only compute (see the module), the running server's best rate.
    """
    limit: Limit
    at_a_time: float
    """Number of concurrent requests at the best rate, by Little's law: this rate × the time of a single request. For a
    running server, the client's own time is first subtracted.
    """
    alone_s: float
    """Time of a single request, in seconds. For a started pool, the time in a worker. For a running server, the time
    until the reply to our client.
    """
    processor_s: float | None
    """Processor time of a request at the highest rate, in seconds; None if unknown."""
    tails: tuple[Tail, ...] = ()
    """Measurements of the p99. The last measurement is of the advised pool."""

    @property
    def best(self) -> Level:
        """Level with the highest rate."""
        return best_of(self.levels)

    def carried(self, wish: Wish) -> bool:
        """True if the server carries the wished rate and kept the wished p99. Also true if there is no wish."""
        is_kept = wish.target_p99_s is None or (bool(self.tails) and self.tails[-1].p99_s <= wish.target_p99_s)
        return is_kept and (wish.rate_hz is None or wish.rate_hz <= BUSIEST * self.highest_hz)

    def __str__(self) -> str:
        """Words for the advice, such as ``16 threads``."""
        return str(Choice(self.workers, self.processes, Kind.PROCESSES if self.processes > 1 else Kind.THREADS))


def best_of(levels: Sequence[Level]) -> Level:
    """Level with the highest rate."""
    return max(levels, key=lambda level: level.throughput_hz)


def enough(levels: Sequence[Level], rate_hz: float | None = None) -> Level:
    """Smallest level that is near the best level (``is_near``), or that carries the wished rate ``rate_hz``."""
    best = best_of(levels)
    return next(
        level
        for level in levels
        if is_near(level, best) or (rate_hz is not None and rate_hz <= BUSIEST * level.throughput_hz)
    )


def is_near(level: Level, best: Level) -> bool:
    """True if a level's rate is near the rate of the level ``best``. The difference of the two rates may then be noise.

    The ratio of the two rates is computed in each round. The median of the ratios must be at least ``RATE_NEAR``. A
    median of ``RATE_FAIR`` is enough if the level's rate reached the rate of ``best`` in an undisturbed round.
    """
    pairs = list(zip(level.rounds, best.rounds, strict=False))
    middle = median(own.throughput_hz / other.throughput_hz for own, other in pairs)
    in_full = any(
        own.throughput_hz >= other.throughput_hz for own, other in pairs if not (own.is_disturbed or other.is_disturbed)
    )
    return middle >= (RATE_FAIR if in_full else RATE_NEAR)


def of_pools(levels: Sequence[Level], program: Program, wish: Wish) -> Found:
    """Findings on pools that were started. ``levels``: one level for each pool size, in ascending order."""
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
    """Findings on connections to a running server. ``levels``: in ascending order, beginning with one connection.
    ``floor_s``: the response time that our client measures on a server that does nothing."""
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
    """Cause that limits the rate. ``grows``: true if only the largest level is near the best rate."""
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
    """Processor time of a request at a level, in seconds; None if unknown."""
    return None if level.busy_cores is None else level.busy_cores / level.throughput_hz
