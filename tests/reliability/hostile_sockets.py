"""Promise: unmoved by hostile peers. During each of 33 attacks an honest client is answered, and soon.

The attacks are a process's (``socket_attacker.py``), nicer than the honest client, with which it shares a core. The
last one takes the server's descriptors away while others dial: who is connected is served, who is not waits.
"""

import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack

from tests.end_to_end.process import ROOT, Server
from tests.reliability.honest import P99_S, SUCCESS, Served, honest
from tests.reliability.rows import Row
from tests.reliability.serving import BASELINE_S, at_rest, files_at_most, threads_and_descriptors, usual_server, within
from tests.reliability.socket_attacker import ATTACKS

GOAL = f"≥ {SUCCESS:.1%} answered, p99 ≤ {P99_S * 1000:g} ms"

DIALERS = 1_000

STUCK_S = 1.0
"""No worker is stuck for longer, or the honest client would wait so long."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for a second an attack; with ``minutes`` for three."""
    duration_s, rows = 2.5 if minutes else 0.5, []
    with usual_server("sockets") as server:
        honest(server.address, 0.2)
        before = at_rest(server.pid)
        leaks = []
        for name in (*ATTACKS, "no file to be had"):
            served, figure = _attacked(server, name, duration_s) if name in ATTACKS else _starved(server, duration_s)
            passed = served.well and max(served.took_s) <= STUCK_S
            rows.append(Row(f"sockets: {name}", GOAL, f"{served}{figure}", passed))
            if not within(BASELINE_S, lambda: threads_and_descriptors(server.pid) == before):
                leaks.append(f"{threads_and_descriptors(server.pid)} after {name}")
        ended = server.stopped()
    goal = f"{before} {BASELINE_S:g} s after each"
    rows.append(Row("sockets: threads and descriptors after attacks", goal, "; ".join(leaks) or goal, not leaks))
    said = f"exit code {ended.code}, {len(ended.stderr.splitlines())} lines in the log"
    silent = "Traceback" not in ended.stderr and not ended.code
    rows.append(Row("sockets: the server that was attacked stops", "exit code 0, no traceback", said, silent))
    return rows


def _attacked(server: Server, name: str, duration_s: float) -> tuple[Served, str]:
    """How the honest client fared, and by how many connections the server was attacked."""
    host, port = server.address
    command = [sys.executable, "-m", "tests.reliability.socket_attacker", host, str(port), name, str(duration_s + 1)]
    with ExitStack() as stack:
        attackers = []

        def begin() -> None:
            attacker = stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
            attackers.append(attacker)
            before = threads_and_descriptors(server.pid)
            within(10.0, lambda: threads_and_descriptors(server.pid) != before or attacker.poll() is not None)

        served = honest(server.address, duration_s, begin)
        dialled_s = time.monotonic()
        new = honest(server.address, 0.001)
        dialled_s = time.monotonic() - dialled_s
        opened, _ = attackers[0].communicate()
        assert not attackers[0].returncode
    met = f"a new client was {'refused' if new.failed else 'answered'} after {dialled_s * 1000:.0f} ms"
    return served, f"; {int(opened):,} hostile connections; {met}"


def _starved(server: Server, duration_s: float) -> tuple[Served, str]:
    """The same where the server may open no file more, and many dial."""
    files_at_most(4 * DIALERS)
    limit = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    with ExitStack() as dialers:

        def dial() -> None:
            soon_full = threads_and_descriptors(server.pid)[1] + 5
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soon_full, limit[1]))
            for _ in range(DIALERS):
                dialer = dialers.enter_context(socket.socket())
                dialer.setblocking(False)
                dialer.connect_ex(server.address)

        try:
            served = honest(server.address, duration_s, dial)
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limit)
    return served, f"; {DIALERS:,} dialers"
