"""Numbers and orders that the document states, with the place. Context only: other machines.

Its graphs have no numbers in its text; it says of each which API did best. So no mean of theirs can be drawn.
"""

from collections.abc import Mapping

SIZES = (10_000, 100_000)
"""Table 1: bytes of a message (10 KB, 100 KB)."""

RATES = (30.0, 50.0)
"""Table 1: messages a second."""

THROUGHPUT_SAMPLES = 60
"""Samples, each the mean of a second, 4.1.5: a minute."""

GRAPHS: Mapping[tuple[float, int], int] = {(30.0, 10_000): 1, (50.0, 10_000): 2, (30.0, 100_000): 3, (50.0, 100_000): 4}
"""Response time, 5.1.1: the graph of each rate and size."""

MESSAGES: Mapping[tuple[float, int], int] = {cell: round(3600 * cell[0]) for cell in GRAPHS}
"""Messages of an API for each graph: an hour of them, 5."""

LINES: Mapping[str, int] = {"berkeley": 23, "zeromq": 9, "nanomsg": 20}
"""Lines of code to create, connect, send, receive and close: section 5.1.2, at table 2."""

TABLE_2: Mapping[str, tuple[str, str, str]] = {
    "berkeley": ("much", "little", "excellent"),
    "zeromq": ("little", "much", "reasonable"),
    "nanomsg": ("much", "medium", "excellent"),
}
"""Table 2: amount of code, ease of programming, performance."""
