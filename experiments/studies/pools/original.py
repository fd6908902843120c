"""The original document's numbers: tables 1 and 2, JMeter's two tables, and the faults in these tables.

The numbers are of another machine, and the load program ``ab`` was the limit in all 72 cells. So the numbers are
context for ours. In tables 1 and 2 the percentages are from ``pidstat``: of one core, and of the machine's memory. All
other numbers there are from ``ab``, which prints the times of connecting and processing in whole milliseconds. The
functions are pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

REQUESTS = 100_000
"""Number of requests in each cell."""

LITTLE_SHARE = 0.02
"""Largest allowed difference between the printed mean time of a request and the time by Little's law (connections ×
total time ÷ requests), as a share. Rounding explains a difference up to this share."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of table 1 or table 2, as printed, for one cell. ``pool`` is the number of threads. Percentages are of one
    core and of the machine's memory, as means and as maxima (``_max``)."""

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


TABLE_1 = """
go 2 10 116.556 119 0.117 0.12 9.215 0.922 1345.86 0 0 1
go 4 10 119.1 129 0.113 0.12 10.408 1.041 1191.65 0 0 1
go 8 10 120.608 132 0.113 0.12 11.418 1.142 1086.20 0 0 1
go 16 10 123.1 131 0.111 0.12 9.92 0.992 1250.18 0 0 1
go 32 10 117.572 132 0.111 0.12 12 1.2 1033.55 0 0 1
go 64 10 120.8 125 0.11 0.11 10.554 1.055 1175.08 0 0 1
go 2 100 103.889 107 0.101 0.11 9.795 9.795 1266.15 0 4 6
go 4 100 108.667 111 0.1 0.1 9.245 9.245 1341.55 0 4 5
go 8 100 110.444 113 0.1 0.1 9.313 9.313 1331.75 0 4 5
go 16 100 103.2 114 0.115 0.12 10.687 10.687 1160.46 0 5 6
go 32 100 104.9 115 0.109 0.11 10.142 10.142 1222.85 0 5 5
go 64 100 108.9 116 0.113 0.12 10.176 10.176 1218.77 0 5 5
go 2 1000 94.7 100 0.104 0.11 9.987 99.868 1241.87 0 42 57
go 4 1000 91.333 95 0.112 0.12 9.623 96.232 1288.80 0 43 53
go 8 1000 89.111 92 0.118 0.12 9.872 98.717 1256.35 0 45 53
go 16 1000 87.6 91 0.128 0.13 10.106 101.063 1227.19 0 47 53
go 32 1000 90.3 96 0.115 0.12 10.008 100.076 1239.29 0 47 53
go 64 1000 92.1 98 0.114 0.12 9.916 99.155 1250.80 0 47 52
rust 2 10 99 102 0.04 0.04 7 0.7 1813.55 0 0 0
rust 4 10 106.429 108 0.03 0.03 7.468 0.747 1699.87 0 0 0
rust 8 10 117 118 0.03 0.03 7.702 0.77 1648.27 0 0 0
rust 16 10 119.143 121 0.04 0.04 7.723 0.772 1643.81 0 0 0
rust 32 10 122 123 0.04 0.04 7.685 0.769 1651.93 0 0 0
rust 64 10 124.571 126 0.06 0.06 7.661 0.766 1657.21 0 0 0
rust 2 100 96.429 103 0.03 0.03 7.087 7.087 1791.45 0 3 4
rust 4 100 107.286 108 0.03 0.03 7.084 7.084 1792.08 0 3 4
rust 8 100 118.429 120 0.04 0.04 7.378 7.378 1720.80 0 3 4
rust 16 100 123 124 0.02 0.02 7.427 7.427 1709.43 0 4 4
rust 32 100 124.857 126 0.04 0.04 7.633 7.633 1663.28 0 4 4
rust 64 100 119.75 122 0.06 0.06 7.972 7.972 1592.43 0 4 4
rust 2 1000 94.286 102 0.03 0.03 7.246 72.465 1751.93 0 37 35
rust 4 1000 103.286 112 0.04 0.04 7.235 72.351 1754.69 0 37 35
rust 8 1000 107.714 122 0.03 0.03 7.524 75.241 1687.28 0 41 34
rust 16 1000 109 113 0.02 0.02 7.8 78.005 1627.51 0 41 36
rust 32 1000 114.571 124 0.03 0.03 7.754 77.542 1637.23 0 42 36
rust 64 1000 116.857 119 0.069 0.07 7.749 77.493 1638.24 0 42 35
"""

TABLE_2 = """
go 2 10 127.375 129 0.12 0.12 8.405 0.841 441.51 2393.43 0 0
go 4 10 129 131 0.105 0.11 8.476 0.848 437.84 2373.55 0 0
go 8 10 136.625 138 0.129 0.13 8.691 0.869 426.98 2314.67 0 1
go 16 10 137.33 139 0.1 0.1 8.723 0.872 425.4 2306.09 0 1
go 32 10 138.5 140 0.115 0.12 8.72 0.872 425.57 2307.03 0 1
go 64 10 138.875 141 0.1 0.11 8.791 0.879 422.13 2288.37 0 1
go 2 100 118.75 119 0.116 0.12 8.877 0.877 418.05 2266.29 4 5
go 4 100 128 129 0.112 0.12 8.668 0.668 428.11 2320.80 4 5
go 8 100 131.125 135 0.115 0.12 8.675 0.675 427.78 2318.99 4 5
go 16 100 133.125 137 0.114 0.12 8.576 0.576 432.72 2345.78 4 5
go 32 100 132.125 134 0.101 0.11 8.589 0.589 432.04 2342.12 4 4
go 64 100 126 128 0.129 0.13 9.229 9.229 402.1 2179.78 4 5
go 2 1000 120.625 122 0.117 0.12 8.732 87.317 425 2303.92 36 51
go 4 1000 116.5 119 0.111 0.12 8.674 86.745 427.8 2319.12 38 49
go 8 1000 115.375 117 0.1 0.1 8.527 85.268 435.21 2359.28 39 46
go 16 1000 115.375 118 0.114 0.12 8.535 85.347 434.81 2357.11 40 45
go 32 1000 117.605 120 0.086 0.09 8.565 85.653 433.25 2348.68 40 45
go 64 1000 118.875 123 0.125 0.13 8.592 85.918 431.92 2341.44 41 44
rust 2 10 112.429 115 0.02 0.02 7.146 0.715 519.28 2815.03 0 0
rust 4 10 124.143 126 0.02 0.02 7.514 0.751 493.9 2677.45 0 0
rust 8 10 127.375 140 0.04 0.04 8.653 0.865 428.86 2324.87 0 1
rust 16 10 138 144 0.04 0.04 8.231 0.823 450.85 2444.09 0 0
rust 32 10 145.286 148 0.06 0.06 7.781 0.778 476.93 2585.46 0 0
rust 64 10 146.286 148 0.06 0.06 7.844 0.784 473.08 2564.57 0 0
rust 2 100 103.571 107 0.02 0.02 7.614 7.614 487.38 2642.12 3 4
rust 4 100 115.143 118 0.04 0.04 7.666 7.666 484.06 2624.12 3 4
rust 8 100 123.5 129 0.02 0.02 8.014 8.014 463.07 2510.35 4 4
rust 16 100 133.286 135 0.04 0.04 7.854 7.854 472.51 2561.51 4 4
rust 32 100 133.125 137 0.04 0.04 8.16 8.16 454.74 2465.19 4 4
rust 64 100 122.889 136 0.06 0.06 9.751 9.751 380.55 2063.00 5 5
rust 2 1000 97 100 0.02 0.02 7.79 77.904 476.35 2582.32 40 37
rust 4 1000 107.851 112 0.03 0.03 7.879 78.788 471 2553.32 41 37
rust 8 1000 107.75 116 0.04 0.04 8.326 83.264 445.68 2416.08 43 40
rust 16 1000 110.3 133 0.035 0.08 9.867 98.668 376.1 2038.87 52 46
rust 32 1000 116.125 131 0.04 0.04 8.594 85.944 431.79 2340.74 47 39
rust 64 1000 122 131 0.06 0.06 8.335 83.354 445.2 2413.47 45 38
"""


def _rows(text: str) -> tuple[Row, ...]:
    kinds = [str, int, int, *[float] * (len(fields(Row)) - 3)]
    words = (line.split() for line in text.strip().splitlines())
    return tuple(Row(*(kind(word) for kind, word in zip(kinds, line, strict=True))) for line in words)


TABLES: dict[str, tuple[Row, ...]] = {"get": _rows(TABLE_1), "put": _rows(TABLE_2)}
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
    """Languages and numbers of connections for which 64 threads took no more of a quantity than 2 threads. The
    document's conclusions 1 and 4 say otherwise."""
    few, many = (
        {(each.language, each.connections): each for each in TABLES[request] if each.pool == n} for n in (2, 64)
    )
    keys = [(language, connections) for language in ("rust", "go") for connections in (10, 100, 1000)]
    return tuple(key for key in keys if getattr(many[key], quantity) <= getattr(few[key], quantity))


def go_connects_later(request: str) -> tuple[int, ...]:
    """Sizes of the pool with which, at 1000 connections, connecting to Go took longer than connecting to Rust. The
    document's conclusion 8 says otherwise."""
    return tuple(
        rust.pool for rust, go in pairs(request) if rust.connections == 1000 and go.connect_ms > rust.connect_ms
    )


def cpu_us(of: Row) -> float:
    """Processor time of a request in µs, from the mean share of a core and the total time. The document's tables lack
    this time."""
    return of.cpu_percent / 100 * of.total_s / REQUESTS * 1e6
