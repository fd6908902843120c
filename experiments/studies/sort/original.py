"""Numbers and parameters of the document, with their places. Context only: another machine.

Its table of results is a slide for each N, "Resultados": mean round-trip time at the client in µs, without intervals,
and a figure of the same four means. Its parameters are the table "Parâmetros".
"""

from collections.abc import Mapping

CALLS = (100, 1000, 10000)
"""Levels of its factor N: how often it calls, as its client's loop has it."""

ARRAY = (38, 27, 43, 3, 9, 82, 10)
"""Array that it sorts, at every N (slide "Conexão GoRPC")."""

MEAN_US: Mapping[tuple[str, str, int], float] = {
    ("grpc", "merge", 100): 205.083,
    ("grpc", "quick", 100): 124.32,
    ("net-rpc", "merge", 100): 136.06,
    ("net-rpc", "quick", 100): 90.229,
    ("grpc", "merge", 1000): 79.98,
    ("grpc", "quick", 1000): 80.25,
    ("net-rpc", "merge", 1000): 33.208,
    ("net-rpc", "quick", 1000): 33.5,
    ("grpc", "merge", 10000): 51.417,
    ("grpc", "quick", 10000): 50.083,
    ("net-rpc", "merge", 10000): 31.625,
    ("net-rpc", "quick", 10000): 32.375,
}
"""Mean round-trip time in µs, by mechanism, algorithm and N (slides "Resultados", one for each N)."""

PARAMETERS: Mapping[str, str] = {
    "Hardware": "MacBook M2 Pro, 16 GB",
    "Operating system": "macOS (Sonoma 14.1.1)",
    "Programming language": "Go",
    "Network interfaces": "off",
    "Power supply": "the mains",
    "Running processes": "only those that the experiment needs",
}
"""Its table of parameters, in its order."""


def ratio(above: tuple[str, str, int], below: tuple[str, str, int]) -> float:
    """A mean of its table ÷ another."""
    return MEAN_US[above] / MEAN_US[below]
