"""The original document's numbers: tables 1 and 2 (``original.csv``), JMeter's two tables, the faults in these tables.

The numbers are of another machine, and the load program ``ab`` was the limit in all 72 cells. So the numbers are
context for ours. In tables 1 and 2 the percentages are from ``pidstat``: of one core, and of the machine's memory. All
other numbers in these tables are from ``ab``. It prints the times of connecting and processing in whole milliseconds.
The tables are read once, when the module is imported. The public functions are pure.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

REQUESTS = 100_000
"""Number of requests in each cell."""

LITTLE_SHARE = 0.02
"""Largest allowed difference between the printed mean time of a request and the time by Little's law (connections ×
total time ÷ requests), as a share. Rounding explains a difference up to this share."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of table 1 or table 2, as printed, for one cell. ``pool`` is the number of threads. Percentages are of one
    core and of the machine's memory. They are means; fields that end with ``_max`` are maxima.
    """

    language: str
    pool: int
    connections: int
    cpu_percent: float
    cpu_percent_max: float
    memory_percent: float
    memory_percent_max: float
    total_s: float
    response_ms: float
    """Mean time of a request."""
    received_kb_s: float
    sent_kb_s: float
    connect_ms: float
    processing_ms: float

    @property
    def little_ms(self) -> float:
        """Mean time in ms that follows from the total time. In a closed loop of N connections this time is N × total
        time ÷ requests."""
        return self.connections * self.total_s / REQUESTS * 1000

    @property
    def breaks_littles_law(self) -> bool:
        """True where the printed mean time does not follow from the printed total time."""
        return abs(self.response_ms / self.little_ms - 1) > LITTLE_SHARE


@dataclass(frozen=True, slots=True)
class StressRow:
    """Row of JMeter's tables (figures 1 and 2 of the document), for one kind of request or for ``TOTAL``."""

    language: str
    kind: str
    samples: int
    throughput_hz: float
    received_kb_s: float
    sent_kb_s: float


def _rows(verb: str) -> tuple[Row, ...]:
    with Path(__file__).with_name("original.csv").open(encoding="utf-8", newline="") as file:
        printed = [row for row in csv.DictReader(file) if row["verb"] == verb]
    return msgspec.convert(printed, tuple[Row, ...], strict=False)  # every column is text


TABLES = {verb: _rows(verb) for verb in ("get", "put")}
"""Rows of table 1 (``get``) and of table 2 (``put``)."""

JMETER = (
    StressRow("rust", "PUT new data", 10_000, 947.0, 35.14, 228.96),
    StressRow("rust", "GET data", 10_000, 929.2, 137.07, 105.16),
    StressRow("rust", "PUT update data", 20_000, 832.5, 30.89, 201.29),
    StressRow("rust", "TOTAL", 40_000, 882.3, 57.09, 184.95),
    StressRow("go", "PUT new data", 10_000, 1503.5, 55.80, 363.52),
    StressRow("go", "GET data", 10_000, 1533.7, 224.76, 173.58),
    StressRow("go", "PUT update data", 20_000, 1838.2, 68.22, 444.45),
    StressRow("go", "TOTAL", 40_000, 1663.3, 107.23, 348.67),
)
"""Rows of JMeter's tables. Figure 1 is of Rust, and figure 2 is of Go."""


def pairs(request: str) -> Iterator[tuple[Row, Row]]:
    """Rust's row and Go's row, for each pool and number of connections."""
    go = {(each.pool, each.connections): each for each in TABLES[request] if each.language == "go"}
    for each in TABLES[request]:
        if each.language == "rust":
            yield each, go[each.pool, each.connections]


def impossible_means() -> tuple[Row, ...]:
    """Rows whose printed mean time does not follow from their total time, by Little's law."""
    return tuple(each for rows in TABLES.values() for each in rows if each.breaks_littles_law)


def rust_not_faster(request: str) -> tuple[tuple[Row, Row], ...]:
    """Pairs of rows in which Rust took longer than Go for 100,000 requests. The total times decide, since some printed
    means are misprints."""
    return tuple(pair for pair in pairs(request) if pair[0].total_s > pair[1].total_s)


def pool_lowers(quantity: str, request: str) -> tuple[tuple[str, int], ...]:
    """Languages and numbers of connections for which a server with 64 threads took no more of a quantity than the
    server with 2 threads. The document's conclusions 1 and 4 say otherwise.
    """
    few, many = (
        {(each.language, each.connections): each for each in TABLES[request] if each.pool == n} for n in (2, 64)
    )
    keys = [(language, connections) for language in ("rust", "go") for connections in (10, 100, 1000)]
    return tuple(key for key in keys if getattr(many[key], quantity) <= getattr(few[key], quantity))


def go_connects_later(request: str) -> tuple[int, ...]:
    """Sizes of the pool for which, at 1000 connections, connecting to Go took longer than connecting to Rust. The
    document's conclusion 8 says otherwise.
    """
    return tuple(
        rust.pool for rust, go in pairs(request) if rust.connections == 1000 and go.connect_ms > rust.connect_ms
    )


def cpu_us(of: Row) -> float:
    """Processor time of a request in µs, from the mean share of a core and the total time. The document's tables lack
    this time."""
    return of.cpu_percent / 100 * of.total_s / REQUESTS * 1e6
