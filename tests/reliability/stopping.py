"""Promise: stops cleanly. After SIGTERM under load and in a burst, accepted requests are answered, and the exit code is
0."""

import signal
from contextlib import ExitStack

from stock_service.rpc.errors import FaultCode
from stock_service.trading.service import TRADE
from tests.conformance.raw_socket import RawSocket, frame
from tests.end_to_end.process import TRADE_ONE, Server, serve
from tests.end_to_end.test_grpc_stopping import BURST, CONNECTIONS, burst
from tests.end_to_end.test_stopping import stop_under_load, unacknowledged
from tests.reliability.rows import Row
from tests.reliability.serving import within

STOPS, SOME = 50, 2

WAIT_S = 10.0

REFUSED = (FaultCode.RESOURCE_EXHAUSTED, FaultCode.UNAVAILABLE)
"""Codes of a server that refuses a request. Any other code is a lost request."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for one and a half minutes."""
    stops, rows = STOPS if minutes else SOME, []
    kinds = (("request", "sockets"), ("leading", "sockets, leader/followers"), ("grpc_static", "grpc_static"))
    for kind, name in kinds:
        failed = [reason for reason in (_stopped(kind) for _ in range(stops)) if reason]
        figure = f"{len(failed)} of {stops} lost one{': ' if failed else ''}{'; '.join(failed[:2])}"
        rows.append(Row(f"{name}: SIGTERM under load", f"0 of {STOPS} lose a request", figure, not failed))
    for name, calls in (("sockets", _burst_on_sockets), ("grpc_static", _burst_on_http2)):
        codes = calls()
        answered, refused = codes.count(0), sum(map(codes.count, REFUSED))
        figure = f"{BURST - answered - refused:,} lost, {refused:,} refused by name"
        rows.append(
            Row(f"{name}: a burst when SIGTERM comes", f"0 of {BURST:,} lost", figure, answered + refused == BURST)
        )
    return rows


def _stopped(kind: str) -> str:
    """The losses of a stop under load, in words; empty: nothing."""
    try:
        stop_under_load(kind, clients=4, trades=100, number=signal.SIGTERM)
    except AssertionError as error:
        return " ".join(str(error).split())[:80] or "an assertion"
    return ""


def _burst_on_sockets() -> list[int]:
    """The code of each reply to the burst."""
    with Server(serve("sockets")) as server, ExitStack() as stack:
        clients = [stack.enter_context(RawSocket(server.address)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.send(frame(1, TRADE, TRADE_ONE))
            assert client.reply()
        server.signal(signal.SIGSTOP)
        for client in clients:
            client.send(b"".join(frame(call, TRADE, TRADE_ONE) for call in range(1, BURST // CONNECTIONS + 1)))
        assert within(WAIT_S, lambda: not any(map(unacknowledged, clients)))
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGCONT)
        codes = [reply.code for client in clients for reply in client.rest()]
        assert server.ended().code == 0
    return codes


def _burst_on_http2() -> list[int]:
    """A burst on gRPC."""
    statuses, _, ended = burst(serve("grpc_static"))
    assert ended.code == 0
    return statuses
