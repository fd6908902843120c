"""Promise: unmoved by hostile HTTP/2 peers. During each attack an honest client is answered in time.

The check needs a machine with two free cores. The honest client makes 200 calls a second on one connection, in an open
loop.
"""

from collections.abc import Sequence

import psutil

from tests.end_to_end.process import Running, Server
from tests.reliability.honest import P99_S, SUCCESS, honest
from tests.reliability.http2_attacker import ATTACKS
from tests.reliability.rows import Row
from tests.reliability.serving import BASELINE_S, at_rest, threads_and_descriptors, usual_server, within


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for a second or two for each attack, with ``minutes`` for two or three. Nothing is drawn at random."""
    return attacked(tuple(ATTACKS), 2.0 if minutes else 1.0)


def attacked(names: Sequence[str], duration_s: float) -> list[Row]:
    """Rows of these attacks, each for this time from the start of its program."""
    rows = []
    with usual_server("grpc_static") as server:
        honest("grpc_static", server.address, 0.2)
        before = at_rest(server.pid)
        rows += [_row(server, name, duration_s) for name in names]
        same = within(BASELINE_S, lambda: threads_and_descriptors(server.pid) == before)
        after = threads_and_descriptors(server.pid)
    what = f"HTTP/2: threads and descriptors {BASELINE_S:g} s after all of them"
    return [*rows, Row(what, f"{before}", f"{after}", same)]


def _row(server: Server, name: str, duration_s: float) -> Row:
    """Row of one attack."""
    attack = ("tests.reliability.http2_attacker", *map(str, (*server.address, name, duration_s)))
    with Running(*attack) as attacker:
        before_s = _processor_s(server.pid)
        served = honest("grpc_static", server.address, duration_s)
        busy = (_processor_s(server.pid) - before_s) / duration_s
        ended = attacker.ended()
    assert not ended.code, ended.stderr
    opened = int(ended.stdout.split()[-1])
    figure = f"{served}; {busy:.0%} of a core, {opened:,} hostile connections"
    goal = f"≥ {SUCCESS:.1%} answered, p99 ≤ {P99_S * 1000:g} ms"
    return Row(f"HTTP/2: {name}", goal, figure, opened > 0 and served.well)


def _processor_s(pid: int) -> float:
    """Processor time of a process so far, in seconds."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
