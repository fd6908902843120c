"""Stops of servers on grpcio: calls under way are finished, and the stop does not wait for silent clients."""

import signal
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.grpcio.draining import REFUSING_S, SERVING_S
from stock_service.rpc.wire.http2 import PREFACE, settings
from stock_service.trading.service import TRADE
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.covering import half
from tests.end_to_end.process import STARTS, TRADE_ONE, Ended, Server, serve

pytestmark = pytest.mark.slow

SERVERS = {
    "grpc": STARTS["grpc_server"],
    "grpc_aio": serve("grpc_aio"),
    "grpc_aio-request": serve("grpc_aio", "--dispatch", "request"),
}
every = pytest.mark.parametrize("start", SERVERS.values(), ids=SERVERS)

BURST, CONNECTIONS = 1_200, 24
"""Number of calls, of which each connection has fewer than 64 open, the limit of our own server; and of connections."""

CANCELLED = 1
"""gRPC status of a call that grpcio's ``stop`` ends."""


@every
def test_who_never_speaks_does_not_hold_up_the_stop(start: tuple[str, ...]) -> None:
    """Port probes and a silent client do not delay the stop: exit code 0, long before the grace ends."""
    with Server(start, "--grace-s", "3600") as server, ExitStack() as opened:
        for said in (b"", PREFACE[:10], PREFACE + settings()):
            opened.enter_context(socket.create_connection(server.address)).sendall(said)
        with RawHttp2(server.address) as speaking:
            speaking.send(headers(1, TRADE), message(1, TRADE_ONE))
            assert speaking.status(1) == 0, "all connections were accepted"
            ended = server.stopped()
        assert (ended.code, ended.stderr) == (0, "")


@pytest.mark.parametrize(("kind", "room"), half(SERVERS, (("--queue-limit", "2000"), ())))
def test_a_burst_is_answered(kind: str, room: tuple[str, ...]) -> None:
    """1,200 calls wait in the server's kernel when the signal comes. Each call is done, or refused for lack of room. On
    a very busy machine, calls after a second are refused, since the server is stopping. Half a second later the drain
    ends, and grpcio cancels the calls that it has not given to a handler.
    """
    refused = 0 if room else BURST
    statuses, took_s, ended = burst((*SERVERS[kind], *room))
    assert len(statuses) == BURST
    late = {FaultCode.UNAVAILABLE} if took_s >= SERVING_S else set()
    too_late = {CANCELLED} if took_s >= SERVING_S + REFUSING_S else set()
    assert set(statuses) <= {0, FaultCode.RESOURCE_EXHAUSTED} | late | too_late
    assert statuses.count(FaultCode.RESOURCE_EXHAUSTED) <= refused
    assert (ended.code, ended.stderr) == (0, "")


def burst(start: Sequence[str]) -> tuple[list[int], float, Ended]:
    """The statuses of calls that wait in the server's kernel when SIGTERM comes, their time, and the server's end."""
    with Server(start) as server, ExitStack() as opened:
        clients = [opened.enter_context(RawHttp2(server.address)) for _ in range(CONNECTIONS)]
        for client in clients:
            client.send(headers(1, TRADE), message(1, TRADE_ONE))
            assert client.status(1) == 0
        server.signal(signal.SIGSTOP)
        for client in clients:
            streams = range(3, 3 + 2 * BURST // CONNECTIONS, 2)
            calls = ((headers(stream, TRADE), message(stream, TRADE_ONE)) for stream in streams)
            client.send(*chain.from_iterable(calls))  # at once: the server's kernel has room for few small pieces
        server.signal(signal.SIGTERM)
        began_s = time.monotonic()
        server.signal(signal.SIGCONT)
        statuses = [status for client in clients for stream, status in client.rest().items() if stream > 1]
        return statuses, time.monotonic() - began_s, server.ended()
