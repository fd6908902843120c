"""Promise: fair. 16 polite connections get their share while 64 greedy connections send without pause, and during
storms of connects and resets. A polite connection has one request under way, and sends the next request after the
reply. The greedy connections belong to a process (``fair_calls.py``). Each of them keeps many calls open: on
``grpc_static`` 64, the most that are allowed.
"""

import subprocess
import sys
from contextlib import ExitStack
from functools import partial

from stock_service.rpc.transports import Address, ServeOptions
from tests.end_to_end.process import ROOT
from tests.reliability.fair_calls import called
from tests.reliability.honest import P99_S, SUCCESS, honest
from tests.reliability.rows import Row
from tests.reliability.serving import LEADING, usual_server

GREEDY, POLITE = 64, 16

SHARE = 0.9
"""Least share of a polite connection, as a part of the fair share. With fair shares all connections would have equally
many answers."""

GOAL = f"≥ {SUCCESS:.1%}, p99 ≤ {P99_S * 1000:g} ms"

STORMS = ("connected and closed", "connected and reset")

TRIED: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("sockets", "sockets", (), 1_000),
    ("sockets, leader/followers", "sockets", LEADING, 1_000),
    ("grpc_static", "grpc_static", (), ServeOptions().pipeline_max),
)
"""Each server's name in the rows, its transport and options, and the calls that a greedy connection keeps open."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for a minute."""
    duration_s = 6.0 if minutes else 1.0
    rows: list[Row] = []
    for name, transport, options, calls in TRIED:
        with usual_server(transport, options=options) as server:
            rows += _shared(name, transport, server.address, calls, duration_s)
            rows += [_stormed(name, transport, server.address, storm, duration_s) for storm in STORMS]
    return rows


def _shared(name: str, transport: str, address: Address, calls: int, duration_s: float) -> list[Row]:
    """Rows on the polite clients, during the greedy process."""
    words = ("tests.reliability.fair_calls", transport, *map(str, (*address, GREEDY, calls, duration_s)))
    with subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True) as greedy:
        assert greedy.stdout is not None
        assert greedy.stdout.readline() == "begun\n"
        polite = called(transport, address, POLITE, 1, duration_s)
        answered = int(greedy.communicate()[0])
    share = (len(polite.took_s) / POLITE) / ((answered + len(polite.took_s)) / (GREEDY + POLITE))
    what = f"{name}: {POLITE} polite connections beside {GREEDY} greedy ones"
    return [
        Row(f"{what}: share", f"≥ {SHARE:.0%} of the fair one", f"{share:.0%}", share >= SHARE),
        Row(f"{what}: answers", GOAL, str(polite), polite.well),
    ]


def _stormed(name: str, transport: str, address: Address, storm: str, duration_s: float) -> Row:
    """An honest client, connected before a storm of connections that end at once."""
    words = ("tests.reliability.socket_attacker", *map(str, (*address, storm, duration_s)))
    with ExitStack() as storms:
        begin = partial(subprocess.Popen, [sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.DEVNULL)
        served = honest(transport, address, duration_s, lambda: storms.enter_context(begin()))
    return Row(f"{name}: a storm of what is {storm}", GOAL, str(served), served.well)
