"""Promise: bounded under overload. A stock server with its defaults is offered all the Lookups that one load can send.

The check needs a machine with two free cores. The peak is that of a second server, which is never overloaded: 16
connections to it keep eight calls open each. The load is one thread of Python. A trial measures first how much
processor time the load takes for a request. The load then offers a rate that fills only a part of its core, since a
late load tells nothing about a server. A row has the rate ÷ the peak, and the load's share of its core. Under
``LEAST_TIMES`` the rate is not an overload, and the promise is not kept. The promise asks for a load in C, which would
offer more. This project has no open loop in C.
"""

import time
from dataclasses import replace
from statistics import fmean

from stock_service.trading.service import LOOKUP
from tests.end_to_end.process import LOOKUP_ONE
from tests.reliability.open_loop import Offered, offer
from tests.reliability.overload import DEADLINE_S, Lengths, block_of, closed_loop, rows_of
from tests.reliability.rows import Row
from tests.reliability.serving import usual_server

TRANSPORTS_TRIED = ("sockets", "grpc_static")

GOODPUT = 0.7

CALLS = 8
"""Calls open on each connection of a closed loop. With one call the loop would measure its client."""

TRIED_S = 0.5
TRIED_TIMES = 2
"""Length of the load's trial, and the rate of the trial ÷ the peak."""

LEAST_TIMES = 1.2
"""Smallest rate ÷ the peak that is an overload."""

FILLED = 0.7
"""Share of its core that the load should fill, computed from the processor time of a request in the trial."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Runs for some seconds; with ``minutes`` for half a minute."""
    lengths = Lengths(3, 2.0, 1.0) if minutes else Lengths(1, 0.5, 0.4)
    return [row for transport in TRANSPORTS_TRIED for row in _looked_up(transport, lengths)]


def _looked_up(transport: str, lengths: Lengths) -> list[Row]:
    """The rows of one transport."""
    with usual_server(transport) as server, usual_server(transport) as rested:

        def offered_at(rate_hz: float, duration_s: float) -> Offered:
            return offer(transport, server.address, LOOKUP, lambda _: LOOKUP_ONE, rate_hz, duration_s, DEADLINE_S)

        def peak_hz() -> float:
            return fmean(closed_loop(transport, rested.address, LOOKUP, LOOKUP_ONE, lengths.closed_s, CALLS))

        peaks_hz = [peak_hz()]
        began_s = time.thread_time()
        tried = offered_at(TRIED_TIMES * peaks_hz[-1], TRIED_S)
        rate_hz = FILLED * (tried.due - tried.given_up) / (time.thread_time() - began_s)
        blocks, times, filled = [], [], []
        for _ in range(lengths.blocks):
            began_s, began_cpu_s = time.monotonic(), time.thread_time()
            offered = offered_at(rate_hz, lengths.block_s)
            filled.append((time.thread_time() - began_cpu_s) / (time.monotonic() - began_s))
            back_hz = closed_loop(transport, server.address, LOOKUP, LOOKUP_ONE, lengths.closed_s, CALLS)[-1]
            peaks_hz.append(peak_hz())
            blocks.append(block_of(offered, lengths.block_s, peaks_hz[-2:], back_hz))
            times.append(rate_hz / fmean(peaks_hz[-2:]))
    what = f"{transport}: all Lookups that one load in Python offers"
    goodput, *others = rows_of(what, blocks, GOODPUT, lengths.closed_s)
    load = f"at {fmean(times):.1f} times the peak, by a load that takes {fmean(filled):.0%} of its core"
    kept = goodput.passed and fmean(times) >= LEAST_TIMES
    return [replace(goodput, figure=f"{goodput.figure}, {load}", passed=kept), *others]
