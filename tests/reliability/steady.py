"""Promise: steady. Under load for long, a server's memory does not grow, and its threads and descriptors stay.

The run is cut into ten equal parts. The slope's interval (95 %) is of the steps between their means. A sample depends
on the one before it, so the samples themselves would give an interval that is far too narrow.

A run shorter than ten minutes is still settling. It has a row more: the interval of what each request leaves behind is
to begin under a byte. A leak is larger.
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
from stock_service.v1 import stock_pb2
from tests.end_to_end.process import WAIT_S
from tests.reliability.honest import ASK
from tests.reliability.rows import Row
from tests.reliability.serving import memory_mib, threads_and_descriptors, usual_server

TRANSPORTS_TRIED = ("sockets", "grpc_static")

CLIENTS = 8
"""Each trades once in ten requests, without an id, and looks up else."""

WARM_SHARE = 0.25
"""Of the load before it counts: what a server keeps once, it has by then."""

PARTS = 10
SAMPLE_S = 0.05

SOAK_S = 600.0
"""From so long a load on the slope is judged by itself."""

LEFT_BYTES = 1.0
"""What a request may leave behind in a shorter one."""

BUY = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for a minute."""
    return soak(20.0 if minutes else 2.0)


def check_overnight(_minutes: bool = True, _seed: int = 0) -> list[Row]:
    """Blocks for a quarter of an hour on each transport."""
    return soak(SOAK_S)


def soak(duration_s: float) -> list[Row]:
    """The rows of so long a load on each transport."""
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
            while time.monotonic() < until_s:
                samples.append(memory_mib(server.pid))
                counts.add(threads_and_descriptors(server.pid))
                over.wait(SAMPLE_S)
        finally:
            over.set()
        asked = sum(client.result() for client in clients)
        for connection in connections:
            connection.close()
    low, high = slope_mib_a_minute(samples, duration_s)
    figure = f"{low:+.3f} to {high:+.3f} MiB a minute, {asked:,} requests in {duration_s:g} s of load"
    a_request = 2**20 / 60 * (1 + WARM_SHARE) * duration_s / asked
    left = f"{low * a_request:+.2f} to {high * a_request:+.2f} bytes"
    goal = f"the interval begins under {LEFT_BYTES:g} byte"
    settling = Row(f"{transport}: what a request leaves behind", goal, left, low * a_request < LEFT_BYTES)
    different = " or ".join(map(str, sorted(counts)))
    return [
        Row(f"{transport}: memory under load", "the slope's interval includes 0", figure, low <= 0 <= high),
        *([settling] if duration_s < SOAK_S else []),
        Row(f"{transport}: threads and descriptors under load", "constant", different, len(counts) == 1),
    ]


def slope_mib_a_minute(samples: list[float], duration_s: float) -> tuple[float, float]:
    """The interval of how fast samples grow."""
    size = len(samples) // PARTS
    means = [statistics.fmean(samples[part * size : (part + 1) * size]) for part in range(PARTS)]
    steps = [later - earlier for earlier, later in pairwise(means)]
    half = float(stats.t.ppf(0.975, len(steps) - 1)) * statistics.stdev(steps) / len(steps) ** 0.5
    a_minute = 60 / (duration_s / PARTS)
    return (statistics.fmean(steps) - half) * a_minute, (statistics.fmean(steps) + half) * a_minute


def _ask(connection: Connection, over: threading.Event) -> int:
    """How many requests a client made, until it was over."""
    asked = 0
    while not over.is_set():
        try:
            path, payload = (TRADE, BUY) if asked % 10 == 0 else (LOOKUP, ASK)
            connection.call(path, payload, WAIT_S)
        except Fault as fault:
            raise AssertionError(f"a request failed under a load of {CLIENTS}: {fault}") from fault
        asked += 1
    return asked
