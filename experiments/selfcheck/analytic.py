"""Analytic: compares response times measured in M/M/c queues with queueing theory, which gives the exact mean and
percentiles.

A queue server (``queue_server.py``) is loaded in an open loop with Poisson arrivals. The measurement of each queue is
repeated ten times. Each replication has its own seed and server process. A **cell** is one statistic of one queue. The
expected value of a cell is the theoretical value plus the null round trip. The null round trip is the mean response
time under the same load without service time. If the null round trip is short, it shifts every percentile by the same
amount. In every cell, the value over all replications must be within 5 % + 100 µs of the expected value. In three
quarters of the cells, the 95 % interval must cover the expected value. The interval is Student's t on the replications'
values.

The number of requests was computed beforehand, from simulations of each queue. Neighbouring requests have similar
response times, so many requests are needed. The 99th percentile is the least certain cell. For each queue, the table
has a number of requests, in thousands. With this number, three standard errors of the least certain cell are 5 % + 100
µs. S is the mean service time, c the number of servers, ρ the utilisation:

    S = 2 ms   c=1 ρ=.5: 118   c=2 ρ=.5: 29   c=4 ρ=.6: 27
    S = 5 ms   c=1 ρ=.8: 1774   c=2 ρ=.7: 388   c=4 ρ=.7: 120   c=8 ρ=.8: 98

The first queue takes 250 requests a second, so 118,000 requests need eight minutes in one queue. A server process
therefore hosts several equal queues, each with its own part of the Poisson process. The version for minutes measures
the queues in the first line of the table, and 5 % + 100 µs are some four standard errors. The version for a night
measures the queues in the second line, and 5 % + 100 µs are three standard errors or more.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.times import DIGITS, HIGHEST_NS, LOWEST_NS
from experiments.judge.stats import ratio_interval
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import found, known, lookups, queue_server, run, times
from experiments.selfcheck.queue_server import Options
from experiments.selfcheck.theory import Mmc
from stock_service.rpc.transports import Address

CONNECTIONS = 64

COVERING_SHARE = 0.75
"""Smallest share of cells whose intervals must cover the expected values: 9 of 12 cells."""

CONFIDENCE = 0.95

NULL_S = 2.0
"""Duration of the measurement of the null round trip, in seconds."""

PERCENTILES = (50, 90, 99)

STATISTICS = ("mean", *(f"p{percentile}" for percentile in PERCENTILES))


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of queue, and the size of its measurement."""

    queue: Mmc
    side_by_side: int
    """Number of queues on one server process."""
    duration_s: float
    """Duration of each replication, in seconds."""
    warm_up_s: float
    """Duration of the warm-up before each replication, in seconds. The queue is empty at the start, and reaches its
    steady state in some ten relaxation times. The relaxation time is 1 ÷ (μ (1 - √ρ)²), where μ is the service rate."""

    @property
    def name(self) -> str:
        """Name in the findings."""
        return f"analytic, c={self.queue.servers} ρ={self.queue.utilisation:g}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the check. ``MINUTES`` is for minutes, ``OVERNIGHT`` is for a night."""

    rows: tuple[Row, ...]
    replications: int = 10
    within_share: float = 0.05
    """Largest error of a cell, as a share of the expected value. ``within_ms`` is allowed in addition."""
    within_ms: float = 0.1


MINUTES = Scale(
    (
        Row(Mmc(1, 0.5, 0.002), 12, 7.0, 0.5),
        Row(Mmc(2, 0.5, 0.002), 5, 2.5, 0.5),
        Row(Mmc(4, 0.6, 0.002), 2, 2.5, 0.5),
    )
)
OVERNIGHT = Scale(
    (
        Row(Mmc(1, 0.8, 0.005), 20, 60.0, 5.0),
        Row(Mmc(2, 0.7, 0.005), 12, 15.0, 2.0),
        Row(Mmc(4, 0.7, 0.005), 6, 8.0, 2.0),
        Row(Mmc(8, 0.8, 0.005), 2, 10.0, 5.0),
    )
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One statistic of one queue, in ms."""

    measured: float
    low: float
    high: float
    """Upper end of the 95 % interval. ``low`` is the lower end."""
    known: float
    """Expected value: the value of theory plus the null round trip."""

    @property
    def covers(self) -> bool:
        """True if the interval covers the expected value."""
        return self.low <= self.known <= self.high

    def within(self, scale: Scale) -> bool:
        """True if the cell's error is within the limits of ``scale``."""
        return abs(self.measured - self.known) <= scale.within_share * self.known + scale.within_ms


def check(scale: Scale) -> list[Finding]:
    """Measures and judges every cell. The call takes three minutes with the scale ``MINUTES``. Raises
    KeyboardInterrupt.
    """
    must = f"within {scale.within_share:.0%} + {scale.within_ms * 1000:g} µs of theory and null round trip"
    cells: list[Cell] = []

    def look(row: Row, seed: int) -> list[Finding]:
        own = measure(row, scale.replications, seed)
        cells.extend(own)
        return [
            Finding(f"{row.name}, {name}", shown(each), must, each.within(scale))
            for name, each in zip(STATISTICS, own, strict=True)
        ]

    findings = []
    for number, row in enumerate(scale.rows, 1):
        findings += found(row.name, must, partial(look, row, 1000 * number))
    return [*findings, _covering(sum(each.covers for each in cells), len(scale.rows) * len(STATISTICS))]


def measure(row: Row, replications: int, seed: int) -> list[Cell]:
    """Measures the cells of one row, in the order of ``STATISTICS``. Blocks. Raises ProgramFailed, and the errors of
    ``run``."""
    null_ms = _null_ms(row, seed)
    whole = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    values, means, counts = [], [], []
    for replication in range(1, replications + 1):
        options = Options(row.queue.servers, row.side_by_side, row.queue.service_s, seed=seed + replication, spin=True)
        with queue_server(options) as (_, address):
            measured = times(run(_plan(row, address, seed + replication)))
        histogram = measured.response
        whole.add(histogram)
        means.append(known(measured.mean_us) / 1000)
        counts.append(measured.count)
        values.append([means[-1], *(histogram.get_value_at_percentile(each) / 1e6 for each in PERCENTILES)])
    together = [
        float(np.average(means, weights=counts)),
        *(whole.get_value_at_percentile(each) / 1e6 for each in PERCENTILES),
    ]
    theory = [row.queue.mean_s, *(row.queue.quantile_s(each / 100) for each in PERCENTILES)]
    return [
        cell(together[place], [each[place] for each in values], 1000 * theory[place] + null_ms)
        for place in range(len(STATISTICS))
    ]


def cell(measured: float, replications: list[float], theory: float) -> Cell:
    """Makes a cell, in ms.

    ``measured``: the mean or percentile over the requests of all replications. ``replications``: the same statistic of
    each replication, two or more.
    ``theory``: the expected value, with the null round trip. The interval is computed from logarithms, so the
    interval's lower end is over 0.
    """
    over_all = ratio_interval([math.log(each) for each in replications], CONFIDENCE)
    return Cell(measured, over_all.low, over_all.high, theory)


def _null_ms(row: Row, seed: int) -> float:
    """Measures the null round trip in ms: the mean response time under the same load, with a service time of 0. The
    server spins, as in the measurement itself."""
    options = Options(row.queue.servers, row.side_by_side, 0.0, seed, spin=True)
    with queue_server(options) as (_, address):
        result = run(replace(_plan(row, address, seed), duration_s=min(NULL_S, row.duration_s)))
    return known(times(result).mean_us) / 1000


def _plan(row: Row, address: Address, seed: int) -> LoadPlan:
    """Plan of the load on all queues of one server process."""
    return replace(
        lookups("sockets", address),
        connections_per_client=CONNECTIONS,
        rate_hz=row.queue.rate_hz * row.side_by_side,
        arrivals="poisson",
        warm_up_s=row.warm_up_s,
        duration_s=row.duration_s,
        seed=seed,
    )


def shown(cell: Cell) -> str:
    """Words for a cell: the measured value, its interval, and the expected value."""
    off = cell.measured / cell.known - 1
    seen = f"{cell.measured:.2f} ms ({cell.low:.2f} to {cell.high:.2f}) where {cell.known:.2f} is known: {off:+.1%}"
    return seen if cell.covers else f"{seen}, outside its interval"


def _covering(covering: int, cells: int) -> Finding:
    """Finding on the number of intervals that cover their expected values."""
    least = round(COVERING_SHARE * cells)
    seen = f"{covering} of {cells} intervals cover the expected value"
    return Finding("analytic, intervals", seen, f"at least {least} of {cells}", covering >= least)
