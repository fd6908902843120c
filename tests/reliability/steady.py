"""Promise: steady. Under a long load a server's memory does not grow, and its threads and descriptors stay.

The run is cut into ten equal parts. The slope's interval (95 %) is of the steps between their means. A sample depends
on the one before it, so the samples themselves would give an interval that is far too narrow.

A wide interval always includes 0. So half of the interval is bounded, too. In a run shorter than ten minutes the memory
is still settling. Such a run has one more row: the interval of the bytes that a request leaves behind must begin under
one byte, and end under four. One more entry in a list that is never emptied takes eight bytes. A run of seconds does
not judge the memory, and says so: the allocator still gives back a MiB at a time.

A client that gets no answer counts the request, and goes on. The server is not overloaded, so it must answer every
request. Only in a run of seconds, which other programs disturb, one request in a thousand may have no answer.
"""

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from scipy import stats

from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import Connection, load
from stock_service.trading.service import LOOKUP, TRADE
from tests.end_to_end.process import LOOKUP_ONE, TRADE_ONE, WAIT_S
from tests.reliability.honest import SUCCESS
from tests.reliability.rows import Row
from tests.reliability.serving import memory_mib, threads_and_descriptors, usual_server

TRANSPORTS_TRIED = ("sockets", "grpc_static")

CLIENTS = 8
"""A client's pattern: of ten requests one is a Trade without an id, and nine are Lookups."""

WARM_SHARE = 0.25
"""Warm-up, as a share of the counted time. After it a server has allocated its permanent memory."""

PARTS = 10
SAMPLE_S = 0.05

SOAK_S = 600.0
"""A load of this length or more is a soak: only its slope is judged."""

HALF_MIB, SOAK_HALF_MIB = 1.0, 0.2
"""Limits of half of the slope's interval, a minute; the second is a soak's. Measured in 20 s: 0.04 to 0.1."""

SHORT_S = 10.0
"""A shorter load is a run of seconds."""

LEFT_BYTES_LOW, LEFT_BYTES_HIGH = 1.0, 4.0
"""Limits of the interval's two ends: bytes that a request leaves behind, in a run under a soak. 0.94 was the most."""

PAUSE_S = 0.05
"""Pause of a client that got no answer, before its next request."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Runs for some seconds; with ``minutes`` for a minute. Nothing is drawn."""
    return soak(20.0 if minutes else 2.0)


def check_overnight(_minutes: bool = True, _seed: int = 0) -> list[Row]:
    """Runs for a quarter of an hour on each transport. Nothing is drawn."""
    return soak(SOAK_S)


def soak(duration_s: float) -> list[Row]:
    """The rows of a load of ``duration_s`` on each transport."""
    return [row for transport in TRANSPORTS_TRIED for row in _soaked(transport, duration_s)]


def _soaked(transport: str, duration_s: float) -> list[Row]:
    over = threading.Event()
    samples: list[float] = []
    counts: set[tuple[int, int]] = set()
    with usual_server(transport) as server, ThreadPoolExecutor(CLIENTS) as threads:
        connections = [load(transport).connect(server.address, WAIT_S) for _ in range(CLIENTS)]
        clients = [threads.submit(_ask, connection, over) for connection in connections]
        try:
            over.wait(WARM_SHARE * duration_s)
            until_s = time.monotonic() + duration_s
            while time.monotonic() < until_s or len(samples) < PARTS:  # a busy machine may take few in time
                samples.append(memory_mib(server.pid))
                counts.add(threads_and_descriptors(server.pid))
                over.wait(SAMPLE_S)
        finally:
            over.set()
        asked, failed = (sum(counts) for counts in zip(*(client.result() for client in clients), strict=True))
        for connection in connections:
            connection.close()
    different = " or ".join(map(str, sorted(counts)))
    return [
        *grown(transport, slope_mib_a_minute(samples, duration_s), asked, duration_s),
        Row(f"{transport}: threads and descriptors under load", "constant", different, len(counts) == 1),
        answers(transport, asked, failed, duration_s),
    ]


def answers(transport: str, asked: int, failed: int, duration_s: float) -> Row:
    """The row of the answered requests: all must be. In a run of seconds one in a thousand may have no answer."""
    short = duration_s < SHORT_S
    goal = f"≥ {SUCCESS:.1%} answered" if short else "all answered"
    passed = asked > 0 and failed <= (asked * (1 - SUCCESS) if short else 0)
    return Row(f"{transport}: requests under load", goal, f"{failed:,} of {asked:,} were not", passed)


def grown(transport: str, slope: tuple[float, float], asked: int, duration_s: float) -> list[Row]:
    """The rows of the memory."""
    (low, high), half = slope, (slope[1] - slope[0]) / 2
    left = f"{transport}: what a request leaves behind"
    if duration_s < SHORT_S:
        return [Row.stated(left, f"not judged: {duration_s:g} s are too short")]
    a_request = 2**20 / 60 * (1 + WARM_SHARE) * duration_s / max(1, asked)
    half_at_most = HALF_MIB if duration_s < SOAK_S else SOAK_HALF_MIB
    goal = f"the slope's interval includes 0, and its half is ≤ {half_at_most:g} MiB a minute"
    figure = f"{low:+.3f} to {high:+.3f} MiB a minute, {asked:,} requests in {duration_s:g} s of load"
    what = "memory under load" if duration_s < SOAK_S else "memory in a soak"  # the former is known to fall short
    rows = [Row(f"{transport}: {what}", goal, figure, low <= 0 <= high and half <= half_at_most, low)]
    if duration_s < SOAK_S:
        goal = f"the interval begins under {LEFT_BYTES_LOW:g} byte and ends under {LEFT_BYTES_HIGH:g}"
        figure = f"{low * a_request:+.2f} to {high * a_request:+.2f} bytes"
        passed = low * a_request < LEFT_BYTES_LOW and high * a_request < LEFT_BYTES_HIGH
        rows.append(Row(left, goal, figure, passed))
    return rows


def slope_mib_a_minute(samples: list[float], duration_s: float) -> tuple[float, float]:
    """The interval of the samples' growth, in MiB a minute."""
    size = len(samples) // PARTS
    means = [statistics.fmean(samples[part * size : (part + 1) * size]) for part in range(PARTS)]
    steps = [later - earlier for earlier, later in pairwise(means)]
    half = float(stats.t.ppf(0.975, len(steps) - 1)) * statistics.stdev(steps) / len(steps) ** 0.5
    a_minute = 60 / (duration_s / PARTS)
    return (statistics.fmean(steps) - half) * a_minute, (statistics.fmean(steps) + half) * a_minute


def _ask(connection: Connection, over: threading.Event) -> tuple[int, int]:
    """The number of a client's requests until the run was over, and the number of its requests without an answer."""
    asked = failed = 0
    while not over.is_set():
        path, payload = (TRADE, TRADE_ONE) if asked % 10 == 0 else (LOOKUP, LOOKUP_ONE)
        asked += 1
        try:
            connection.call(path, payload, WAIT_S)
        except Fault:  # it is counted, and the connection connects anew where it must
            failed += 1
            over.wait(PAUSE_S)
    return asked, failed
