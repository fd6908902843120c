"""Advice on the size of a pool, computed from the demands of a request and from a user's wish. Pure. The module
``words`` has the sentences of the advice.

Demands are the times that a request needs: with the GIL, without the GIL, and waiting. A wish has a rate and a p99 (the
99th percentile of response times). Both are optional. The advice follows this rule:

- Pools have 1, 2, 4 … 64 threads. The advice is the smallest pool within a few per cent of the best pool.
- Without a wished rate, pools are compared by their highest rates.
- With a wished rate, each pool that carries the rate is compared with the largest pool, by the p99 at this rate. A pool
  carries a rate if the rate is at most ``BUSIEST`` of the pool's highest rate.
- Several processes are advised only if one process does not carry the wished rate, or does not keep the wished p99 at
  this rate. Asyncio is advised only if 64 threads are too few.

With this rule, small errors in the demands seldom change the advice.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from experiments.design.demands import Demands
from experiments.recommend.model import bounds, capacity_hz
from experiments.recommend.tail import tail
from experiments.show.numbers import number

POOLS = (1, 2, 4, 8, 16, 32, 64)
"""Sizes in threads of the pools that can be advised. Each size is twice the previous size, since smaller steps would
change the rate little.
"""

RATE_NEAR, TAIL_NEAR = 0.95, 1.10
"""Limits within which a smaller pool is preferred. ``RATE_NEAR``: smallest ratio of the smaller pool's highest rate to
the best pool's highest rate. ``TAIL_NEAR``: largest ratio of the smaller pool's p99 to the largest pool's p99.
"""

BUSIEST = 0.8
"""Largest share of a server's highest rate that the server should carry. Above this share, small changes of the rate
make long queues."""

USUAL = 0.7
"""Share of the highest rate. Without a wished rate, the p99 is predicted at this share."""

UNLIMITED = 512
"""Number of workers that stands for a server without a pool. Such a server serves any number of concurrent requests."""

SHORT_OF = 0.5
"""Share of an asyncio server's highest rate. If 64 threads do not reach this share, 64 threads are too few. If they
reach the share, asyncio gains too little to be worth the work to rewrite the program.
"""


class Kind(StrEnum):
    """Kind of the advised workers."""

    THREADS = "threads"
    ASYNCIO = "asyncio"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Wish:
    """Wish of the user: the cores, the rate and the p99 of the server. The rate or the p99 is None if the user does not
    wish it.
    """

    cores: int
    """Number of cores that the server may use."""
    rate_hz: float | None = None
    target_p99_s: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Number and kind of workers, without predictions."""

    workers: int
    """Number of threads of each process; ``UNLIMITED`` for asyncio."""
    processes: int
    kind: Kind

    def highest_hz(self, demands: Demands, wish: Wish) -> float:
        """Highest number of replies a second."""
        return capacity_hz(demands, self.workers, wish.cores, self.processes)

    def __str__(self) -> str:
        """Words for the choice, such as ``16 threads``, ``asyncio``, ``2 processes of 8 threads``."""
        if self.kind is Kind.ASYNCIO:
            return "asyncio"
        threads = "1 thread" if self.workers == 1 else f"{self.workers} threads"
        return threads if self.kind is Kind.THREADS else f"{self.processes} processes of {threads}"


@dataclass(frozen=True, slots=True)
class Size:
    """Predictions for a server of one size."""

    workers: int
    """Number of threads of each process; ``UNLIMITED`` for asyncio."""
    processes: int
    highest_hz: float
    """Highest number of replies a second."""
    limit: str
    """Resource that is always busy at the highest rate; see ``Bounds.limit``."""
    rate_hz: float
    """Rate at which the p99 is predicted."""
    p99_s: float
    """99th percentile of response times, in seconds; inf if the server cannot keep up."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice, and the pools that were compared."""

    kind: Kind
    chosen: Size
    pools: tuple[Size, ...]
    """Predictions for each size in ``POOLS``, with the number of processes of ``chosen``."""
    carried: bool
    """True if the chosen server carries the wished rate and keeps the wished p99. Also true if there is no wish."""
    highest_in_target_hz: float | None
    """Highest rate at which the server keeps the wished p99. None without a wished p99. 0 if no rate keeps the p99."""
    changes: tuple[tuple[str, str], ...]
    """Conditions that would change the advice. Each condition comes with the advice that it would give."""

    def __str__(self) -> str:
        """Words for the advice, such as ``16 threads``."""
        return str(Choice(self.chosen.workers, self.chosen.processes, self.kind))


def advise(demands: Demands, wish: Wish) -> Advice:
    """Computes the advice. Blocks for some seconds, since the p99 of every pool is simulated."""
    choice = _chosen(demands, wish)
    pools = tuple(sized(demands, workers, choice.processes, wish) for workers in POOLS)
    chosen = sized(demands, choice.workers, choice.processes, wish)
    within = _highest_in_target_hz(demands, chosen, wish)
    carried = math.isfinite(chosen.p99_s) and _is_enough(demands, choice, wish)
    return Advice(choice.kind, chosen, pools, carried, within, tuple(_changes(demands, wish, choice)))


def sized(demands: Demands, workers: int, processes: int, wish: Wish) -> Size:
    """Predictions for a server of this size."""
    highest_hz = capacity_hz(demands, workers, wish.cores, processes)
    rate_hz = wish.rate_hz or USUAL * highest_hz
    p99_s = _tail_s(demands, workers, processes, wish.cores, rate_hz)
    limit = bounds(demands, workers, wish.cores, processes).limit
    return Size(workers, processes, highest_hz, limit, rate_hz, p99_s)


def _chosen(demands: Demands, wish: Wish) -> Choice:
    """Choice by the rule in the module's docstring.

    More processes are tried while the choice does not carry the wished rate, or does not keep the wished p99. If no
    number of processes is enough, but one process carries the rate, the choice has one process.
    """
    choice = alone = _of_processes(demands, 1, wish)
    if wish.rate_hz is None:
        return choice
    for processes in _process_counts(wish.cores):
        if _is_enough(demands, choice, wish):
            break
        more = _of_processes(demands, processes, wish)
        if RATE_NEAR * more.highest_hz(demands, wish) > choice.highest_hz(demands, wish):
            choice = more
    carries = wish.rate_hz <= BUSIEST * alone.highest_hz(demands, wish)
    return alone if carries and not _is_enough(demands, choice, wish) else choice


def _of_processes(demands: Demands, processes: int, wish: Wish) -> Choice:
    """Choice for a given number of processes, by the rule in the module's docstring."""
    choice = Choice(_pool(demands, processes, wish), processes, Kind.PROCESSES if processes > 1 else Kind.THREADS)
    if processes > 1 or (wish.rate_hz is not None and _is_enough(demands, choice, wish)):
        return choice
    unlimited = Choice(UNLIMITED, 1, Kind.ASYNCIO)
    most_hz = capacity_hz(demands, max(POOLS), wish.cores)
    return unlimited if most_hz < SHORT_OF * unlimited.highest_hz(demands, wish) else choice


def _pool(demands: Demands, processes: int, wish: Wish) -> int:
    """Number of threads of the smallest pool near the best pool, by the rule in the module's docstring."""
    highest_hz = {workers: capacity_hz(demands, workers, wish.cores, processes) for workers in POOLS}
    least_hz = RATE_NEAR * max(highest_hz.values())
    if wish.rate_hz is not None:
        least_hz = min(least_hz, wish.rate_hz / BUSIEST)
    carrying = [workers for workers in POOLS if highest_hz[workers] >= least_hz]
    if wish.rate_hz is None:
        return carrying[0]
    near_s = TAIL_NEAR * _tail_s(demands, max(POOLS), processes, wish.cores, wish.rate_hz)
    return next(
        workers for workers in carrying if _tail_s(demands, workers, processes, wish.cores, wish.rate_hz) <= near_s
    )


def _is_enough(demands: Demands, choice: Choice, wish: Wish) -> bool:
    """True if a choice carries the wished rate and keeps the wished p99."""
    highest_hz = choice.highest_hz(demands, wish)
    rate_hz = wish.rate_hz or USUAL * highest_hz
    p99_s = _tail_s(demands, choice.workers, choice.processes, wish.cores, rate_hz)
    return rate_hz <= BUSIEST * highest_hz and p99_s <= (wish.target_p99_s or math.inf)


def _tail_s(demands: Demands, workers: int, processes: int, cores: int, rate_hz: float) -> float:
    """Predicted p99 in seconds, at a rate."""
    return tail(demands, workers, rate_hz, cores=cores, processes=processes)


def _process_counts(cores: int) -> Iterator[int]:
    """Numbers of processes that are tried: 2, 4, 8 … and the number of cores."""
    count = 2
    while count < cores:
        yield count
        count *= 2
    if cores > 1:
        yield cores


def _highest_in_target_hz(demands: Demands, of: Size, wish: Wish) -> float | None:
    """Highest rate at which a server keeps the wished p99, with an error of some per cent. None without a wished p99. 0
    if no rate keeps the p99.
    """
    if wish.target_p99_s is None:
        return None
    low, high = 0.0, 1.0
    for _ in range(6):
        middle = (low + high) / 2
        p99_s = _tail_s(demands, of.workers, of.processes, wish.cores, middle * of.highest_hz)
        low, high = (middle, high) if p99_s <= wish.target_p99_s else (low, middle)
    return low * of.highest_hz


def _changes(demands: Demands, wish: Wish, choice: Choice) -> Iterator[tuple[str, str]]:
    """Yields each change of a demand or of the wish that leads to another advice, with the other advice."""
    others = [
        ("requests waited twice as long", replace(demands, wait_s=2 * demands.wait_s), wish),
        ("requests waited half as long", replace(demands, wait_s=demands.wait_s / 2), wish),
        ("requests took twice the processor time", _busier(demands, 2), wish),
        ("requests took half the processor time", _busier(demands, 0.5), wish),
    ]
    if wish.rate_hz is not None:
        others.append(("the rate were twice as high", demands, replace(wish, rate_hz=2 * wish.rate_hz)))
    for what, needs, wished in others:
        then = _chosen(needs, wished)
        if then != choice:
            yield what, str(then)
    yield from _without_gil(demands, wish, choice)


def _without_gil(demands: Demands, wish: Wish, choice: Choice) -> Iterator[tuple[str, str]]:
    """Yields the advice for a Python without a GIL. Yields nothing if the GIL is not the limit, or if this advice
    equals ``choice``.
    """
    if bounds(demands, choice.workers, wish.cores, choice.processes).limit != "gil":
        return
    then = _chosen(demands.without_gil, wish)
    if then != choice:
        times = then.highest_hz(demands.without_gil, wish) / choice.highest_hz(demands, wish)
        yield "Python had no GIL, and were as quick", f"{then}, and {number(times)} times the highest rate"


def _busier(demands: Demands, times: float) -> Demands:
    """Copy of the demands, with the processor time multiplied by ``times``."""
    return replace(demands, gil_s=times * demands.gil_s, free_s=times * demands.free_s)
