"""Promise: unmoved by hostile HTTP/2 peers. During each attack an honest client is answered, and soon.

``python -m tests.reliability.hostile_http2 [--minutes]``, on a machine with two cores that nobody else uses. The honest
client makes 200 calls a second on a connection of its own, each due at its time, whatever became of those before it.
"""

import os
import subprocess
import sys
import threading
import time

import psutil

from stock_service.rpc.transports import Address
from stock_service.trading.service import LOOKUP
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.end_to_end.process import ROOT, Server
from tests.reliability.http2_attacker import ATTACKS

RATE_HZ = 200.0
SUCCESS, P99_S = 0.999, 0.02

Row = tuple[str, str, str, bool]
"""Promise, goal, figure, and whether it was reached."""


def check(minutes: bool) -> list[Row]:
    """Blocks for some two seconds an attack; with ``minutes`` for fifteen."""
    duration_s, rows = 15.0 if minutes else 2.0, []
    with Server(("stock_service", "serve", "--transport", "grpc_static", "--store", "memory")) as server:
        before = _threads_and_descriptors(server.pid)
        rows += [_row(server, name, duration_s) for name in ATTACKS]
        with RawHttp2(server.address) as client:
            client.send(headers(1, LOOKUP), message(1, b""))
            client.status(1)
        deadline_s = time.monotonic() + 2.0
        while _threads_and_descriptors(server.pid) != before and time.monotonic() < deadline_s:
            threading.Event().wait(0.05)
        after = _threads_and_descriptors(server.pid)
    rows.append(("threads and descriptors 2 s after all of them", f"{before}", f"{after}", after == before))
    return rows


def _row(server: Server, name: str, duration_s: float) -> Row:
    """One attack."""
    host, port = server.address
    command = [sys.executable, "-m", "tests.reliability.http2_attacker", host, str(port), name, str(duration_s + 0.5)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attacker:
        before_s = _processor_s(server.pid)
        took_s, failed = honest(server.address, duration_s)
        busy = (_processor_s(server.pid) - before_s) / duration_s
        opened, _ = attacker.communicate()
        assert not attacker.returncode
    p99_s = sorted(took_s)[int(0.99 * len(took_s))] if took_s else duration_s
    success = len(took_s) / (len(took_s) + failed)
    figure = f"{success:.2%}, p99 {p99_s * 1000:.1f} ms; {busy:.0%} of a core, {opened.strip()} hostile connections"
    return (f"HTTP/2: {name}", f"≥ {SUCCESS:.1%} answered, p99 ≤ 20 ms", figure, success >= SUCCESS and p99_s <= P99_S)


def honest(address: Address, duration_s: float) -> tuple[list[float], int]:
    """How long each call took, since it was due; and how many failed."""
    took_s: list[float] = []
    failed = number = 0
    with RawHttp2(address) as client:
        began_s = time.monotonic()
        while (due_s := began_s + number / RATE_HZ) < began_s + duration_s:
            threading.Event().wait(max(0.0, due_s - time.monotonic()))
            stream = 2 * number + 1
            client.send(headers(stream, LOOKUP), message(stream, b""))
            number += 1
            if client.status(stream):
                failed += 1
            else:
                took_s.append(time.monotonic() - due_s)
    return took_s, failed


def _processor_s(pid: int) -> float:
    """The processor time that a process has had."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _threads_and_descriptors(pid: int) -> tuple[int, int]:
    """How many a process has."""
    return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))


if __name__ == "__main__":
    for row in check("--minutes" in sys.argv):
        print(" | ".join((*row[:3], "yes" if row[3] else "no")))
