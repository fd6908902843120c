"""Promise: unmoved by hostile peers. During each of 33 attacks an honest client is answered in time. A process attacks
(``socket_attacker.py``). It shares a core with the honest client, and has a lower priority. The last attack takes the
server's descriptors away while clients connect: connected clients are served, and new clients wait. After each attack
all workers must be free: as many requests meet in their handlers (``more_methods.py``).
"""

import resource
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack

from stock_service.rpc.transports import Address
from tests.conformance.raw_socket import RawSocket, frame
from tests.end_to_end.process import WAIT_S, Running, Server
from tests.more_methods import MEET, MEET_S, MET, PROGRAM
from tests.reliability.honest import P99_S, SUCCESS, Served, honest
from tests.reliability.rows import Row
from tests.reliability.serving import BASELINE_S, at_rest, files_at_most, threads_and_descriptors, usual_server, within
from tests.reliability.socket_attacker import ATTACKS

GOAL = f"≥ {SUCCESS:.1%} answered, p99 ≤ {P99_S * 1000:g} ms"

DIALERS = 1_000

NO_ROOM = "no room for another connection"
"""Text in the log of a server that may open no further file."""

STARVED = "no file to be had"

WORKERS = 8
"""Default number of workers of a server."""


def check(minutes: bool, seed: int = 0) -> list[Row]:
    """Blocks for about a second for each attack, with ``minutes`` for about two. The bytes of one attack are drawn at
    random."""
    return attacked((*ATTACKS, STARVED), 2.0 if minutes else 0.5, seed)


def attacked(names: Sequence[str], duration_s: float, seed: int) -> list[Row]:
    """Rows of these attacks, each for this time, and until a new client is answered."""
    rows = []
    with usual_server("sockets", (PROGRAM,)) as server:
        honest("sockets", server.address, 0.2)
        before = at_rest(server.pid)
        leaks = []
        for name in names:
            if name == STARVED:
                served, figure, tried = _starved(server, duration_s)
            else:
                served, figure, tried = _attacked(server, name, duration_s, seed)
            met_s = met_after_s(server.address, name)
            free = "a worker was stuck" if met_s is None else f"all workers free after {met_s * 1000:.0f} ms"
            sound = tried and met_s is not None and served.success >= SUCCESS and max(served.took_s) <= MEET_S
            measured = served.p99_s * 1000 if sound else float("inf")  # no bound excuses more than a late p99
            rows.append(Row(f"sockets: {name}", GOAL, f"{served}{figure}; {free}", sound and served.well, measured))
            if not within(BASELINE_S, lambda: threads_and_descriptors(server.pid) == before):
                leaks.append(f"{threads_and_descriptors(server.pid)} after {name}")
        ended = server.stopped()
    goal = f"{before} {BASELINE_S:g} s after each"
    rows.append(Row("sockets: threads and descriptors after attacks", goal, "; ".join(leaks) or goal, not leaks))
    said = f"exit code {ended.code}, {len(ended.stderr.splitlines())} lines in the log"
    silent = "Traceback" not in ended.stderr and not ended.code
    rows.append(Row("sockets: the server that was attacked stops", "exit code 0, no traceback", said, silent))
    return rows


def _attacked(server: Server, name: str, duration_s: float, seed: int) -> tuple[Served, str, bool]:
    """The honest client's outcomes, the number of attacking connections, and whether the attack took place."""
    arguments = (*server.address, name, duration_s + WAIT_S, seed)
    with ExitStack() as stack:
        attackers = []

        def begin() -> None:
            attackers.append(stack.enter_context(Running("tests.reliability.socket_attacker", *map(str, arguments))))
            assert attackers[0].line() == "begun"

        served = honest("sockets", server.address, duration_s, begin)
        dialled_s = time.monotonic()
        new = honest("sockets", server.address, 0.001)
        dialled_s = time.monotonic() - dialled_s
        attackers[0].signal(signal.SIGTERM)
        ended = attackers[0].ended()
        assert not ended.code, ended.stderr
    opened = int(ended.stdout)
    met = f"a new client was {'refused' if new.failed else 'answered'} after {dialled_s * 1000:.0f} ms"
    return served, f"; {opened:,} hostile connections; {met}", opened > 0


def _starved(server: Server, duration_s: float) -> tuple[Served, str, bool]:
    """The row of an attack on a server that may open no further file, while many clients connect. Also tells if the
    server reached the limit."""
    files_at_most(4 * DIALERS)
    limit, before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE), server.said().count(NO_ROOM)
    with ExitStack() as dialers:

        def dial() -> None:
            soon_full = threads_and_descriptors(server.pid)[1] + 5
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soon_full, limit[1]))
            for _ in range(DIALERS):
                dialer = dialers.enter_context(socket.socket())
                dialer.setblocking(False)
                dialer.connect_ex(server.address)

        try:
            served = honest("sockets", server.address, duration_s, dial)
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limit)
    met = server.said().count(NO_ROOM) - before
    return served, f"; {DIALERS:,} dialers, no room {met} times", met > 0


def met_after_s(address: Address, name: str) -> float | None:
    """The time until all workers of the server were at a meeting; None if they never were."""
    with ExitStack() as stack:
        clients = [stack.enter_context(RawSocket(address)) for _ in range(WORKERS)]
        began_s = time.monotonic()
        for client in clients:
            client.send(frame(1, MEET, name.encode()))
        replies = [client.reply() for client in clients]
        took_s = time.monotonic() - began_s
    return took_s if all(reply is not None and reply.payload == MET for reply in replies) else None
