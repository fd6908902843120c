"""What a figure shows, as numbers: rows of results turned into points with their interval over runs.

Rules: a point is the mean over the runs of one setting (of lock waits, which are skewed, the geometric mean), and its
interval Student's t over those runs (``stats``); a run counts once, whatever its number of requests; a percentile is
never averaged within a run, only over runs. Settings that measured nothing (no reply, a wait not timed) have no point.
Left out: drawing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from experiments import stats
from experiments.results import ALL, Row

Measure = Callable[[Row], float | None]
"""One number of a row; None where it was not measured."""

Average = Callable[[Sequence[float]], stats.Estimate]

Refused = frozenset[tuple[str, str]]
"""Rows, by their run and request type, of which no verdict may be made since a gate refuses them."""

NONE_REFUSED: Refused = frozenset()

P99_COUNT_MIN = 1000
"""Fewer replies of a run than this carry no 99th percentile: not ten of them are beyond it. Replies that depend on each
other count for fewer (``effective_count``)."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A measure, and how its axis is labelled."""

    title: str
    """What stands above the panel."""
    axis: str
    """The y axis, with the unit."""
    of: Measure
    average: Average = stats.mean_interval
    """Over runs."""


@dataclass(frozen=True, slots=True)
class Point:
    """One setting: the mean over its runs and the 95 % interval of that mean."""

    x: float
    value: float
    low: float | None
    """None, as is ``high``: too few runs for an interval that stays above zero."""
    high: float | None
    runs: int
    load_limited: bool
    """In any of its runs."""
    refused: bool = False
    """Any of its runs, by a gate."""

    @property
    def hollow(self) -> bool:
        """Whether it says nothing of the server alone."""
        return self.load_limited or self.refused


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a figure."""

    transport: str
    request: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """The rows of one column of panels."""

    title: str
    rows: tuple[Row, ...]
    refused: Refused = NONE_REFUSED
    """Which of the rows gates refuse."""


def _milliseconds(measure: Measure) -> Measure:
    def converted(row: Row) -> float | None:
        value = measure(row)
        return None if value is None else value / 1000

    return converted


def carries_p99(row: Row) -> bool:
    """Whether a run has independent replies enough for a 99th percentile."""
    return (row.effective_count or 0.0) >= P99_COUNT_MIN


def p99_us(row: Row) -> float | None:
    """The 99th percentile of a run's latency, where the run carries one."""
    return row.response_us_p99 if carries_p99(row) else None


MEAN = Statistic("mean", "Latency, ms", _milliseconds(lambda row: row.response_us_mean))
MEDIAN = Statistic("median", "Latency, ms", _milliseconds(lambda row: row.response_us_p50))
P99 = Statistic("99th percentile", "Latency, ms", _milliseconds(p99_us))
N_OVER_X = Statistic("N ÷ throughput", "Latency, ms", _milliseconds(lambda row: row.n_over_x_us))
LOCK_WAIT = Statistic(
    "typical wait, µs", "Wait, µs", lambda row: row.lock_wait_us_mean or None, stats.geometric_interval
)
"""A run's mean wait. Exactly 0 means that no lock was taken: a snapshot's readers take none."""
LOCK_WAIT_P99 = Statistic(
    "99th percentile of waits, µs", "Wait, µs", lambda row: row.lock_wait_us_p99 or None, stats.geometric_interval
)
STARVED = Statistic(
    "clients that got no reply in the window", "Starved clients", lambda row: float(row.starved_clients)
)


def request_types(rows: Iterable[Row]) -> list[str]:
    """The request types that have rows of their own, Lookup first; the sum of a run is none."""
    order = ["lookup", "trade", "update"]
    found = {row.request for row in rows} - {ALL}
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def point(
    rows: Sequence[Row],
    measure: Measure,
    x: float,
    average: Average = stats.mean_interval,
    refused: Refused = NONE_REFUSED,
) -> Point | None:
    """The mean over the rows, each of another run; None if none of them measured it.

    A 99th percentile that one of them does not carry has no mean: those that carry it are the faster runs.
    """
    seen = [measure(row) for row in rows]
    values = [value for value in seen if value is not None]
    if not values or (measure in (p99_us, P99.of) and len(values) < len(seen)):
        return None
    mean = average(values)
    sure = mean.low > 0 or mean.low == mean.high
    low, high = (mean.low, mean.high) if sure else (None, None)
    limited = any(row.load_limited for row in rows)
    return Point(x, mean.value, low, high, mean.n, limited, any((row.run_id, row.request) in refused for row in rows))


def by_clients(rows: Sequence[Row], measure: Measure, refused: Refused = NONE_REFUSED) -> list[Series]:
    """One series per server and request type, its points by number of clients."""
    found = []
    for transport in sorted({row.transport for row in rows}):
        for request in request_types(rows):
            own = [row for row in rows if row.transport == transport and row.request == request]
            points = (
                point([row for row in own if row.clients == clients], measure, clients, refused=refused)
                for clients in sorted({row.clients for row in own})
            )
            series = Series(transport, request, tuple(p for p in points if p is not None))
            if series.points:
                found.append(series)
    return found


def split(rows: Sequence[Row], title_of: Callable[[Row], str], rank: Callable[[Row], int]) -> list[Facet]:
    """One facet per title, in the order that ``rank`` gives their rows."""
    ranks = {title_of(row): rank(row) for row in rows}
    titles = sorted(ranks, key=lambda title: ranks[title])
    return [Facet(title, tuple(row for row in rows if title_of(row) == title)) for title in titles]
