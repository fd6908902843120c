"""Stops of servers on grpcio: calls under way are finished, and the stop does not wait for silent clients."""

import signal
import socket
import time
from contextlib import ExitStack

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.grpcio.draining import REFUSING_S, SERVING_S
from stock_service.rpc.wire.http2 import PREFACE, settings
from stock_service.trading.service import TRADE
from stock_service.v1 import stock_pb2
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.covering import half
from tests.end_to_end.process import STARTS, Server

pytestmark = pytest.mark.slow

AIO = ("stock_service", "serve", "--transport", "grpc_aio", "--store", "memory")
SERVERS = {"grpc": STARTS["grpc_server"], "grpc_aio": AIO, "grpc_aio-request": (*AIO, "--dispatch", "request")}
every = pytest.mark.parametrize("start", SERVERS.values(), ids=SERVERS)

CANCELLED = 1
"""gRPC status of a call that grpcio's ``stop`` ends."""

TRADE_ONE = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()


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
    refused = 0 if room else 1200
    with Server(SERVERS[kind], *room) as server, ExitStack() as opened:
        clients = [opened.enter_context(RawHttp2(server.address)) for _ in range(20)]
        server.signal(signal.SIGSTOP)
        for client in clients:
            for stream in range(1, 121, 2):
                client.send(headers(stream, TRADE), message(stream, TRADE_ONE))
        server.signal(signal.SIGTERM)
        began_s = time.monotonic()
        server.signal(signal.SIGCONT)
        statuses = [status for client in clients for status in client.rest().values()]
        took_s = time.monotonic() - began_s
        ended = server.ended()
    assert len(statuses) == 1200
    late = {FaultCode.UNAVAILABLE} if took_s >= SERVING_S else set()
    too_late = {CANCELLED} if took_s >= SERVING_S + REFUSING_S else set()
    assert set(statuses) <= {0, FaultCode.RESOURCE_EXHAUSTED} | late | too_late
    assert statuses.count(FaultCode.RESOURCE_EXHAUSTED) <= refused
    assert (ended.code, ended.stderr) == (0, "")
