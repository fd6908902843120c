"""Numbers of the original studies, as printed there: what the gates must refuse was once published.

Seed 003's tables are those of its chapter 7: pool, connections, seconds for all 100,000 requests, and "per request mean
time" in ms. Five of the Go cells under PUT are misprinted, the first digit lost: 0.877 for 8.877, and so on.
"""

from dataclasses import dataclass

REQUESTS = 100_000

POOLS = (2, 4, 8, 16, 32, 64)
CONNECTIONS = (10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Printed:
    """One cell of seed 003."""

    method: str
    language: str
    pool: int
    connections: int
    total_s: float
    mean_ms: float

    @property
    def corrected_ms(self) -> float:
        """The mean that the cell's own total says: a closed loop of N connections over 100,000 requests."""
        return self.total_s / REQUESTS * self.connections * 1000


_TOTALS_AND_MEANS = {
    ("GET", "go", 10): "9.215 0.922 10.408 1.041 11.418 1.142 9.920 0.992 12.000 1.200 10.554 1.055",
    ("GET", "go", 100): "9.795 9.795 9.245 9.245 9.313 9.313 10.687 10.687 10.142 10.142 10.176 10.176",
    ("GET", "go", 1000): "9.987 99.868 9.623 96.232 9.872 98.717 10.106 101.063 10.008 100.076 9.916 99.155",
    ("GET", "rust", 10): "7.000 0.700 7.468 0.747 7.702 0.770 7.723 0.772 7.685 0.769 7.661 0.766",
    ("GET", "rust", 100): "7.087 7.087 7.084 7.084 7.378 7.378 7.427 7.427 7.633 7.633 7.972 7.972",
    ("GET", "rust", 1000): "7.246 72.465 7.235 72.351 7.524 75.241 7.800 78.005 7.754 77.542 7.749 77.493",
    ("PUT", "go", 10): "8.405 0.841 8.476 0.848 8.691 0.869 8.723 0.872 8.720 0.872 8.791 0.879",
    ("PUT", "go", 100): "8.877 0.877 8.668 0.668 8.675 0.675 8.576 0.576 8.589 0.589 9.229 9.229",
    ("PUT", "go", 1000): "8.732 87.317 8.674 86.745 8.527 85.268 8.535 85.347 8.565 85.653 8.592 85.918",
    ("PUT", "rust", 10): "7.146 0.715 7.514 0.751 8.653 0.865 8.231 0.823 7.781 0.778 7.844 0.784",
    ("PUT", "rust", 100): "7.614 7.614 7.666 7.666 8.014 8.014 7.854 7.854 8.160 8.160 9.751 9.751",
    ("PUT", "rust", 1000): "7.790 77.904 7.879 78.788 8.326 83.264 9.867 98.668 8.594 85.944 8.335 83.354",
}

TABLE: tuple[Printed, ...] = tuple(
    Printed(method, language, pool, connections, *(float(number) for number in numbers[2 * place : 2 * place + 2]))
    for (method, language, connections), text in _TOTALS_AND_MEANS.items()
    for numbers in (text.split(),)
    for place, pool in enumerate(POOLS)
)

MISPRINTED = tuple(cell for cell in TABLE if (cell.method, cell.language, cell.connections) == ("PUT", "go", 100))[:5]

SORT_US = {
    ("gRPC", "merge"): {100: 205.083, 1000: 79.98, 10_000: 51.417},
    ("gRPC", "quick"): {100: 124.32, 1000: 80.25, 10_000: 50.083},
    ("net/rpc", "merge"): {100: 136.06, 1000: 33.208, 10_000: 31.625},
    ("net/rpc", "quick"): {100: 90.229, 1000: 33.5, 10_000: 32.375},
}
"""Seed 000: mean of so many calls; over gRPC the connection was made within the first."""

GREETER_HZ = 3297.24
"""Seed 002: the rate of one of two clients, sold as the server's."""

LOOKUP_MS = {"grpc": 17.92, "sockets": 12.38}
"""Seed 004, one client."""

MESSAGES_HZ = 30
"""Seed 001: so the idle wait in each of its samples is 33 ms."""
