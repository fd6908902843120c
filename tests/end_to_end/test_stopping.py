"""Servers told to stop while they are at work: nothing that was accepted is lost, and a second signal ends it."""

import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from stock_service.errors import Fault, Unavailable
from stock_service.service import LOOKUP, TRADE
from stock_service.transports import load
from stock_service.v1 import stock_pb2
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import refuses, until
from tests.end_to_end.blocking_server import HANG, HANGING
from tests.end_to_end.process import WAIT_S, Server

pytestmark = pytest.mark.slow

SOCKETS = ("stock_service.socket_server",)
GRPC = ("stock_service.grpc_server",)
CONNECTION = (*SOCKETS, "--dispatch", "connection")
SERVERS = {"request": SOCKETS, "connection": CONNECTION, "grpc": GRPC}
every = pytest.mark.parametrize("start", SERVERS.values(), ids=SERVERS)
on_sockets = pytest.mark.parametrize("start", [SOCKETS, CONNECTION], ids=["request", "connection"])

TRADE_ONE = stock_pb2.TradeRequest(name="FishCo", quantity=1, side=stock_pb2.SIDE_BUY).SerializeToString()
LOOKUP_ONE = stock_pb2.LookupRequest(name="FishCo").SerializeToString()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@every
def test_a_stop_under_load_loses_nothing(start: tuple[str, ...], number: signal.Signals) -> None:
    """Four closed loops of trades: each ends with Unavailable, exit code 0, and no trade was done and not answered."""
    with Server(start) as server, ThreadPoolExecutor() as threads:
        trades, over = threading.Semaphore(0), threading.Event()
        transport = "grpc" if start is GRPC else "sockets"
        clients = [threads.submit(trader, server, transport, trades.release, over) for _ in range(4)]
        try:
            assert all(trades.acquire(timeout=WAIT_S) for _ in range(300))
            ended = server.stopped(number)
        finally:
            over.set()
        results = [client.result() for client in clients]
        assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")
        assert [type(fault) for _, fault in results] == [Unavailable] * 4, [fault for _, fault in results]
        sequences = sorted(sequence for answered, _ in results for sequence in answered)
        assert sequences == list(range(1, len(sequences) + 1)), "a commit that no reply tells of"


def trader(
    server: Server, transport: str, traded: Callable[[], None], over: threading.Event
) -> tuple[list[int], Fault | None]:
    """Trades until a fault; the commits it was told of, and the fault."""
    connection = load(transport).connect(server.address, WAIT_S)
    sequences: list[int] = []
    try:
        while not over.is_set():
            reply = connection.call(TRADE, TRADE_ONE, WAIT_S)
            sequences.append(stock_pb2.TradeResponse.FromString(reply).sequence)
            traded()
    except Fault as fault:
        return sequences, fault
    finally:
        connection.close()
    return sequences, None


@pytest.mark.parametrize("count", [100, 10_000], ids=["one_read", "many_reads"])
@on_sockets
def test_what_had_arrived_when_the_signal_came_is_answered(start: tuple[str, ...], count: int) -> None:
    """Requests sent at once and followed by SIGTERM all get their replies, and then the end."""
    with Server(start) as server, RawSocket(server.address) as client:
        client.send(frame(1, TRADE, TRADE_ONE))
        assert client.reply()
        with ThreadPoolExecutor(1) as threads:
            replies = threads.submit(client.rest)
            client.send(b"".join(frame(call, TRADE, TRADE_ONE) for call in range(1, count + 1)))
            ended = server.stopped()
            assert sorted(reply.call for reply in replies.result()) == list(range(1, count + 1))
        assert (ended.code, ended.stderr) == (0, "")


@pytest.mark.parametrize("transport", ["sockets", "grpc"])
def test_a_burst_is_answered_or_refused(transport: str) -> None:
    """200 clients whose requests are under way when the signal comes: each has its reply, or Unavailable undone."""
    start = SOCKETS if transport == "sockets" else GRPC
    with Server(start) as server, ThreadPoolExecutor(50) as threads:
        over, traded = threading.Event(), threading.Semaphore(0)
        clients = [threads.submit(trader, server, transport, traded.release, over) for _ in range(50)]
        try:
            assert all(traded.acquire(timeout=WAIT_S) for _ in range(50))
            ended = server.stopped()
        finally:
            over.set()
        results = [client.result() for client in clients]
        assert ended.code == 0
        assert {type(fault) for _, fault in results} == {Unavailable}, [fault for _, fault in results]
        sequences = sorted(sequence for answered, _ in results for sequence in answered)
        assert sequences == list(range(1, len(sequences) + 1))


@contextmanager
def hanging_server(kind: str, *options: str) -> Iterator[Server]:
    """A server with one request under way that never ends."""
    transport = "grpc" if kind == "grpc" else "sockets"
    dispatch = () if kind == "grpc" else ("--dispatch", kind)
    start = ("tests.end_to_end.blocking_server", "--transport", transport, *dispatch)
    with Server(start, *options) as server, ThreadPoolExecutor() as threads:
        asking, hanging = (load(transport).connect(server.address, WAIT_S) for _ in range(2))
        hung = threads.submit(hanging.call, HANG, b"", 2 * WAIT_S)
        try:
            until(lambda: asking.call(HANGING, b"", WAIT_S) == b"\x01", "the handler hangs")
            yield server
            with pytest.raises(Unavailable):
                hung.result()
        finally:
            server.signal(signal.SIGKILL)
            asking.close()
            hanging.close()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("kind", SERVERS)
def test_a_second_signal_ends_it_at_once(kind: str, second: signal.Signals) -> None:
    """While a request hangs the server waits for its whole grace; another signal ends it with 1."""
    with hanging_server(kind, "--grace-s", "3600") as server:
        server.signal(signal.SIGTERM)
        until(lambda: refuses(server.address), "it stops accepting")
        assert server.runs()
        server.signal(second)
        began_s = time.monotonic()
        ended = server.ended()
        assert (ended.code, ended.stdout, ended.stderr) == (1, "", "")
        assert time.monotonic() - began_s < WAIT_S / 2


@pytest.mark.parametrize("kind", SERVERS)
def test_a_grace_that_is_too_short_is_said(kind: str) -> None:
    """What hangs is given up after ``--grace-s``: one line in the log, exit code 1."""
    with hanging_server(kind, "--grace-s", "0.3") as server:
        ended = server.stopped()
        assert (ended.code, ended.stdout) == (1, "")
        assert "--grace-s 0.3 was too short" in ended.error


def test_a_call_whose_message_never_comes_is_given_up_after_the_grace() -> None:
    """On gRPC a call holds a thread from its headers on: given up after ``--grace-s``, exit code 1."""
    never_sent = threading.Event()

    def messages() -> Iterator[bytes]:
        never_sent.wait(2 * WAIT_S)
        yield from ()

    with Server(GRPC, "--grace-s", "0.3") as server, grpc.insecure_channel(server.at) as channel:
        channel.stream_unary(LOOKUP).future(messages())
        assert channel.unary_unary(LOOKUP)(LOOKUP_ONE, WAIT_S), "sent after the other's headers, and answered"
        ended = server.stopped()
        never_sent.set()
        assert (ended.code, ended.stdout) == (1, "")
        assert "--grace-s 0.3 was too short" in ended.error


def test_a_client_that_takes_no_replies_is_given_up_after_the_grace() -> None:
    """On sockets a reply that nobody takes is not finished: given up after ``--grace-s``, exit code 1."""
    with Server(SOCKETS, "--grace-s", "0.3") as server, RawSocket(server.address, receive_bytes=4096) as client:
        client.socket.setblocking(False)
        requests = b"".join(frame(call, LOOKUP, LOOKUP_ONE) for call in range(1, 1001))
        while select.select([], [client.socket], [], 0.2)[1]:
            client.socket.send(requests)
        ended = server.stopped()
        assert (ended.code, ended.stdout) == (1, "")
        assert "--grace-s 0.3 was too short" in ended.error


@every
def test_an_idle_server_stops_without_any_grace(start: tuple[str, ...]) -> None:
    """Nothing to finish takes no grace: exit code 0 even with ``--grace-s 0``."""
    with Server(start, "--grace-s", "0") as server:
        ended = server.stopped()
        assert (ended.code, ended.stderr) == (0, "")


@every
def test_idle_clients_do_not_hold_up_the_stop(start: tuple[str, ...]) -> None:
    """Kept-alive connections that wait for nothing are closed at once."""
    with Server(start, "--grace-s", "3600") as server:
        connections = [load("grpc" if start is GRPC else "sockets").connect(server.address, WAIT_S) for _ in range(4)]
        assert all(connection.call(LOOKUP, LOOKUP_ONE, WAIT_S) for connection in connections)
        ended = server.stopped()
        for connection in connections:
            connection.close()
        assert (ended.code, ended.stderr) == (0, "")
