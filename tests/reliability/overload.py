"""Promise: bounded under overload. A service that computes for 0.5 ms is offered 2, 5 and 10 times its capacity.

``python -m tests.reliability.overload [--minutes]``, on a machine with two cores that nobody else uses. The peak is
what 16 connections in a closed loop get. Goodput is what is answered within the deadline, of the peak.
"""

import sys
import time

from stock_service.rpc.transports import Address
from tests.conformance.raw_socket import RawSocket, frame
from tests.end_to_end.process import Server
from tests.reliability.open_loop import Offered, offer
from tests.reliability.rows import Row
from tests.reliability.serving import memory_mib
from tests.reliability.spinning_server import DEADLINE, LATE, SPIN

DEADLINE_S = 0.1
P99_S = 0.05
GOALS = {2: 0.95, 5: 0.85, 10: 0.75}
"""Goodput by the multiple of capacity that is offered."""

BACK_S = 2.0
"""Within so long after an overload a closed loop gets what it got before, nearly."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for a quarter of a minute; with ``minutes`` for one and a half."""
    start = ("tests.reliability.spinning_server", "--transport", "sockets")
    duration_s, rows = 20.0 if minutes else 3.0, []
    with Server(start) as server:
        peak_hz = closed_loop(server.address, 1.5)
        before_mib = memory_mib(server.pid, "VmHWM")
        for times, goal in GOALS.items():
            offered = offer(server.address, SPIN.encode(), DEADLINE.pack, times * peak_hz, duration_s, DEADLINE_S)
            rows += rows_of(f"sockets at {times} times its capacity", offered, goal, peak_hz * duration_s)
            closed_loop(server.address, BACK_S)
            back = closed_loop(server.address, 1.0) / peak_hz
            what = f"sockets after {times} times: back within {BACK_S:g} s"
            rows.append(Row(what, "≥ 90 % of the peak", f"{back:.0%}", back >= 0.9))
        grown_mib = memory_mib(server.pid, "VmHWM") - before_mib
        rows.append(Row("sockets: memory over all of it", "≤ 64 MiB more", f"{grown_mib:.0f} MiB", grown_mib <= 64))
        late = late_handlers(server.address)
        rows.append(Row("sockets: handlers that began after their deadline", "0", str(late), late == 0))
    return rows


def rows_of(what: str, offered: Offered, goal: float, peak: float) -> list[Row]:
    """What became of one open loop; ``peak``: answers that a closed loop would have had in its time."""
    goodput = offered.in_time(DEADLINE_S) / peak
    p99_s = sorted(offered.answered_s)[int(0.99 * len(offered.answered_s))]
    return [
        Row(f"{what}: goodput", f"≥ {goal:.0%} of the peak", f"{goodput:.0%}", goodput >= goal),
        Row(f"{what}: p99 of what is answered", f"≤ {P99_S * 1000:g} ms", f"{p99_s * 1000:.0f} ms", p99_s <= P99_S),
        Row(f"{what}: requests of which nothing is heard", "0", str(offered.unanswered), not offered.unanswered),
    ]


def closed_loop(address: Address, duration_s: float) -> float:
    """Requests a second that 16 connections get, each with one under way."""
    clients = [RawSocket(address) for _ in range(16)]
    request = frame(1, SPIN, DEADLINE.pack(2**62))
    answered, began_s = 0, time.monotonic()
    try:
        for client in clients:
            client.send(request)
        while time.monotonic() - began_s < duration_s:
            for client in clients:
                reply = client.reply()
                assert reply is not None
                assert not reply.code, reply
                answered += 1
                client.send(request)
        return answered / (time.monotonic() - began_s)
    finally:
        for client in clients:
            client.socket.close()


def late_handlers(address: Address) -> int:
    """How many handlers began after their clients had given up."""
    with RawSocket(address) as client:
        client.send(frame(1, LATE))
        reply = client.reply()
        assert reply is not None
        return int(reply.payload)


if __name__ == "__main__":
    for row in check(minutes="--minutes" in sys.argv):
        print(row)
