"""Promise: fair. 16 polite connections get their share while 64 greedy connections send without pause, and during
storms of connects and resets. A polite connection has one request under way, and sends the next request after the
reply. The greedy connections belong to a process: ``python -m tests.reliability.fair HOST PORT SECONDS``, which prints
its number of answers. On ``grpc_static`` each greedy connection keeps 64 calls open, the most that are allowed
(``fair_calls.py``).
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.wire.framing import reply_decoder
from stock_service.trading.service import LOOKUP
from tests.conformance.raw_socket import RawSocket, frame
from tests.end_to_end.process import ROOT, Server
from tests.reliability import hostile_http2
from tests.reliability.fair_calls import called
from tests.reliability.honest import ASK, P99_S, SUCCESS, Served, honest
from tests.reliability.rows import Row
from tests.reliability.serving import LEADING, usual_server
from tests.reliability.socket_attacker import NICE

GREEDY, POLITE = 64, 16

SHARE = 0.9
"""Least share of a polite connection, as a part of the fair share. With fair shares all connections would have equally
many answers."""

GOAL = f"≥ {SUCCESS:.1%}, p99 ≤ {P99_S * 1000:g} ms"

STORMS = ("connected and closed", "connected and reset")

Honest = Callable[[Address, float, Callable[[], object]], Served]
"""An honest client of a transport. It calls the given function once it is connected."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for a minute."""
    duration_s = 6.0 if minutes else 1.0
    rows: list[Row] = []
    for name, options in (("sockets", ()), ("sockets, leader/followers", LEADING)):
        with usual_server("sockets", options=options) as server:
            command = ("tests.reliability.fair", *map(str, (*server.address, duration_s)))
            rows += _shared(name, command, partial(politely, server.address, duration_s))
            rows += [_stormed(name, server, storm, honest, duration_s) for storm in STORMS]
    with usual_server("grpc_static") as server:
        numbers = (*server.address, GREEDY, ServeOptions().pipeline_max, duration_s)
        command = ("tests.reliability.fair_calls", "grpc_static", *map(str, numbers))
        polite = partial(called, "grpc_static", server.address, POLITE, 1, duration_s)
        rows += _shared("grpc_static", command, polite)
        return rows + [_stormed("grpc_static", server, name, hostile_http2.honest, duration_s) for name in STORMS]


def _shared(transport: str, greedily: Sequence[str], politely: Callable[[], Served]) -> list[Row]:
    """Rows on the polite clients, during the greedy process with these arguments."""
    with subprocess.Popen([sys.executable, "-m", *greedily], cwd=ROOT, stdout=subprocess.PIPE, text=True) as greedy:
        assert greedy.stdout is not None
        assert greedy.stdout.readline() == "begun\n"
        polite = politely()
        answered = int(greedy.communicate()[0])
    share = (len(polite.took_s) / POLITE) / ((answered + len(polite.took_s)) / (GREEDY + POLITE))
    what = f"{transport}: {POLITE} polite connections beside {GREEDY} greedy ones"
    return [
        Row(f"{what}: share", f"≥ {SHARE:.0%} of the fair one", f"{share:.0%}", share >= SHARE),
        Row(f"{what}: answers", GOAL, str(polite), polite.well),
    ]


def _stormed(transport: str, server: Server, name: str, honest_for: Honest, duration_s: float) -> Row:
    """An honest client, connected before a storm of connections that end at once."""
    host, port = server.address
    command = [sys.executable, "-m", "tests.reliability.socket_attacker", host, str(port), name, str(duration_s)]
    with ExitStack() as storms:
        storm = partial(subprocess.Popen, command, cwd=ROOT, stdout=subprocess.DEVNULL)
        served = honest_for(server.address, duration_s, lambda: storms.enter_context(storm()))
    return Row(f"{transport}: a storm of what is {name}", GOAL, str(served), served.well)


def politely(address: Address, duration_s: float) -> Served:
    """Replies of the polite clients."""
    served, request = Served(), frame(1, LOOKUP, ASK)
    with ExitStack() as clients, select.epoll() as epoll:
        polite, sent_s = {}, {}
        for _ in range(POLITE):
            client = clients.enter_context(RawSocket(address))
            descriptor = client.socket.fileno()
            polite[descriptor] = client
            epoll.register(descriptor, select.EPOLLIN)
        began_s = time.monotonic()
        for descriptor, client in polite.items():
            sent_s[descriptor] = time.monotonic()
            client.send(request)
        while time.monotonic() < began_s + duration_s:
            for descriptor, _ in epoll.poll(0.1):
                reply = polite[descriptor].reply()
                assert reply is not None, "a polite connection was closed"
                if reply.code:
                    served.failed += 1
                else:
                    served.took_s.append(time.monotonic() - sent_s[descriptor])
                sent_s[descriptor] = time.monotonic()
                polite[descriptor].send(request)
    return served


def greedily(address: Address, duration_s: float) -> int:
    """Sends as many requests as the server takes. Gives the number of answers in this time."""
    requests, answered = frame(1, LOOKUP, ASK) * 1000, 0
    with ExitStack() as clients, select.epoll() as epoll:
        greedy = {}
        for _ in range(GREEDY):
            client = clients.enter_context(RawSocket(address))
            client.socket.setblocking(False)
            greedy[client.socket.fileno()] = (client.socket, reply_decoder(), [b""])
            epoll.register(client.socket, select.EPOLLIN | select.EPOLLOUT)
        until_s = time.monotonic() + duration_s
        while time.monotonic() < until_s:
            for descriptor, events in epoll.poll(0.1):
                connection, decoder, unsent = greedy[descriptor]
                if events & select.EPOLLIN:
                    answered += sum(not reply.code for reply in decoder.feed(connection.recv(1 << 16)))
                if events & select.EPOLLOUT:
                    data = unsent[0] or requests
                    unsent[0] = data[connection.send(data) :]
    return answered


if __name__ == "__main__":
    host, port, seconds = sys.argv[1:]
    os.nice(NICE)
    print("begun", flush=True)
    print(greedily((host, int(port)), float(seconds)))
