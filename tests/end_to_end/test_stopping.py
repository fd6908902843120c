"""Servers that get SIGTERM under load: no accepted request is lost, and a second signal ends the server."""

import fcntl
import select
import signal
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psutil
import pytest

from experiments.helloworld import greeter_pb2
from experiments.services.greeter import SAY_HELLO
from stock_service.rpc.errors import Fault, Unavailable
from stock_service.rpc.transports import Connection, load
from stock_service.trading.service import TRADE
from stock_service.v1 import stock_pb2
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import refuses, until
from tests.end_to_end.process import TRADE_ONE, WAIT_S, Server, serve
from tests.more_methods import HANG, HANGING, PROGRAM

pytestmark = pytest.mark.slow

GREETER = ("experiments.services", "serve", "greeter", "--transport", "sockets")
KINDS = {
    "request": ("sockets",),
    "leading": ("sockets", "--executor", "leader-followers"),
    "connection": ("sockets", "--dispatch", "connection"),
    "processes": ("sockets", "--processes", "2"),
    "grpc": ("grpc",),
    "grpc_aio": ("grpc_aio",),
    "grpc_aio-request": ("grpc_aio", "--dispatch", "request"),
    "grpc_static": ("grpc_static",),
}
"""Transport and options of each kind of server."""

on_sockets = pytest.mark.parametrize("kind", ["request", "connection"])


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *((kind, signal.SIGTERM) for kind in ("request", "processes", "grpc", "grpc_aio", "grpc_static")),
        ("request", signal.SIGINT),
    ],
)
def test_a_stop_under_load_loses_nothing(kind: str, number: signal.Signals) -> None:
    """Each closed loop of trades ends with Unavailable, the exit code is 0, and every trade that was done was answered.
    Fifty loops have a request under way when the signal comes; four on ``grpc_aio``, which takes no more at a time.
    ``check_stop_under_load`` tries four loops on every kind of server.
    """
    stop_under_load(kind, clients=4 if kind == "grpc_aio" else 50, trades=300, number=number)


def stop_under_load(kind: str, clients: int, trades: int, number: signal.Signals) -> None:
    """Has clients trade until the server stops, and checks the end of every request."""
    transport = load(KINDS[kind][0])
    with Server(serve(*KINDS[kind])) as server, ThreadPoolExecutor(clients) as threads:
        connections = [transport.connect(server.address, WAIT_S) for _ in range(clients)]
        traded, over = threading.Semaphore(0), threading.Event()
        traders = [threads.submit(trade_on, connection, traded.release, over) for connection in connections]
        try:
            assert all(traded.acquire(timeout=WAIT_S) for _ in range(trades))
            ended = server.stopped(number)
            results = [each.result(WAIT_S) for each in traders]
        finally:
            over.set()
        for connection in connections:
            connection.close()
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")
    sequences = sorted(sequence for answered, _ in results for sequence in answered)
    assert sequences == list(range(1, len(sequences) + 1)), "a commit that no reply tells of"
    assert all(isinstance(fault, Unavailable) for _, fault in results), [fault for _, fault in results]


def trade_on(
    connection: Connection, traded: Callable[[], None], over: threading.Event
) -> tuple[list[int], Fault | None]:
    """Trades until a fault. Gives the acknowledged commits, and the fault."""
    sequences: list[int] = []
    try:
        while not over.is_set():
            reply = connection.call(TRADE, TRADE_ONE, WAIT_S)
            sequences.append(stock_pb2.TradeResponse.FromString(reply).sequence)
            traded()
    except Fault as fault:
        return sequences, fault
    return sequences, None


@on_sockets
def test_what_had_arrived_when_the_signal_came_is_answered(kind: str) -> None:
    """Requests that wait in the server's kernel when SIGTERM comes all get replies. Requests and signal come while the
    process is stopped, on an accepted connection and on a new connection."""
    with Server(serve(*KINDS[kind])) as server, RawSocket(server.address) as client:
        client.send(frame(1, TRADE, TRADE_ONE))
        assert client.reply()
        server.signal(signal.SIGSTOP)
        with RawSocket(server.address) as unknown:
            for each in (client, unknown):
                each.send(b"".join(frame(call, TRADE, TRADE_ONE) for call in range(1, 101)))
            server.signal(signal.SIGTERM)
            server.signal(signal.SIGCONT)
            ended = server.ended()
            assert sorted(reply.call for reply in client.rest()) == list(range(1, 101))
            assert sorted(reply.call for reply in unknown.rest()) == list(range(1, 101))
        assert (ended.code, ended.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["request", "connection", "processes"])
def test_what_had_arrived_behind_a_full_pipeline_is_answered(kind: str) -> None:
    """More requests come at once than the server reads at once. Requests behind the pipeline's limit are answered,
    too."""
    count = 1500
    with Server(serve(*KINDS[kind])) as server, RawSocket(server.address) as client:
        client.send(frame(1, TRADE, TRADE_ONE))
        assert client.reply()
        client.send(b"".join(frame(call, TRADE, TRADE_ONE) for call in range(1, count + 1)))
        while unacknowledged(client):
            assert server.runs(), "the server's kernel takes the rest"
        ended = server.stopped()
        assert sorted(reply.call for reply in client.rest()) == list(range(1, count + 1))
        assert (ended.code, ended.stderr) == (0, "")


@on_sockets
def test_a_client_that_pipelines_and_reads_late_gets_every_reply(kind: str) -> None:
    """The client sends trades before and after the signal. It reads only when the server is stopping. Until the server
    refuses new clients it sends 20,000 trades at most: the kernels have room for these replies. Without room the
    connection's thread would wait for the client until the grace ends. Every request that the server's kernel had
    acknowledged at the signal is answered or refused. Every trade that was done has a reply, and the exit code is 0.
    """
    data = b"".join(frame(call, TRADE, TRADE_ONE) for call in range(1, 200_001))
    size, at_once, over, stops = len(data) // 200_000, 1 << 14, threading.Event(), threading.Event()
    start = serve(*KINDS[kind], "--grace-s", "20")
    with Server(start) as server, RawSocket(server.address, receive_bytes=4096) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, at_once)
        sent = 0

        def send() -> None:
            nonlocal sent
            try:
                while not over.is_set() and sent < len(data):
                    if sent > 20_000 * size:
                        stops.wait(WAIT_S)
                    sent += client.socket.send(data[sent : sent + at_once])
            except OSError:
                pass  # the server has closed, of which the replies tell more

        sender = threading.Thread(target=send, name="sender")
        sender.start()
        try:
            until(lambda: sent > 2_000 * size, "the server takes some thousand trades")
            accepted = (sent - unacknowledged(client)) // size
            server.signal(signal.SIGTERM)
            until(lambda: refuses(server.address), "it stops accepting")
            stops.set()
            until(lambda: not server.runs() or sent == len(data), "the server has ended, or drops what comes now")
        finally:
            over.set()
            stops.set()
            sender.join()
        if sent == len(data):
            client.half_close()
        replies = client.rest()
        ended = server.ended()
    assert (ended.code, ended.stderr) == (0, "")
    calls = sorted(reply.call for reply in replies)
    assert calls == list(range(1, len(calls) + 1))
    assert len(calls) >= accepted > 0, f"{accepted} were accepted, {len(calls)} answered"
    traded = [stock_pb2.TradeResponse.FromString(reply.payload) for reply in replies if not reply.code]
    assert sorted(trade.sequence for trade in traded) == list(range(1, len(traded) + 1))


def unacknowledged(client: RawSocket) -> int:
    """Bytes that a client has sent and the server's kernel has not acknowledged."""
    return int.from_bytes(fcntl.ioctl(client.socket, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


@contextmanager
def hanging_server(kind: str, *options: str) -> Iterator[Server]:
    """A server with one request under way that never ends."""
    transport = load(KINDS[kind][0])
    with Server((PROGRAM, "--transport", *KINDS[kind]), *options) as server, ThreadPoolExecutor() as threads:
        hanging = transport.connect(server.address, WAIT_S)
        hung = threads.submit(hanging.call, HANG, b"", 2 * WAIT_S)

        def hangs() -> bool:
            with closing(transport.connect(server.address, WAIT_S)) as asking:  # at any of several processes
                return asking.call(HANGING, b"", WAIT_S) == b"\x01"

        try:
            until(hangs, "the handler hangs")
            yield server
            with pytest.raises(Unavailable):
                hung.result()
        finally:
            server.signal(signal.SIGKILL)
            hanging.close()


@pytest.mark.parametrize(
    ("kind", "second"), [("leading", signal.SIGINT), ("processes", signal.SIGINT), ("grpc", signal.SIGTERM)]
)
def test_a_second_signal_ends_it_at_once(kind: str, second: signal.Signals) -> None:
    """While a request hangs the server waits for its whole grace. A second signal ends it with exit code 1."""
    with hanging_server(kind, "--grace-s", "3600") as server:
        server.signal(signal.SIGTERM)
        until(lambda: refuses(server.address), "it stops accepting")
        assert server.runs()
        processes = psutil.Process(server.pid).children()
        server.signal(second)
        began_s = time.monotonic()
        ended = server.ended()
        assert (ended.code, ended.stdout, ended.stderr) == (1, "", "")
        assert not any(psutil.pid_exists(each.pid) for each in processes)
        assert time.monotonic() - began_s < WAIT_S / 2


@pytest.mark.parametrize("kind", ["connection", "processes", "grpc_aio-request", "grpc_static"])
def test_a_grace_that_is_too_short_is_said(kind: str) -> None:
    """A hanging request is given up after ``--grace-s``: one line in the log, exit code 1. ``check_stuck_handler``
    tries every kind of server.
    """
    with hanging_server(kind, "--grace-s", "0.3") as server:
        ended = server.stopped()
        assert (ended.code, ended.stdout) == (1, "")
        assert "--grace-s 0.3 was too short" in ended.error


def test_a_client_that_takes_no_replies_is_given_up_after_the_grace() -> None:
    """On sockets a reply that the client does not take is given up after ``--grace-s``, with exit code 1."""
    with Server(GREETER, "--grace-s", "0.3") as server, RawSocket(server.address, receive_bytes=4096) as client:
        client.socket.setblocking(False)
        asked = greeter_pb2.HelloRequest(name="x" * 20_000).SerializeToString()  # the reply is as long
        requests = b"".join(frame(call, SAY_HELLO, asked) for call in range(1, 11))
        while select.select([], [client.socket], [], 1.0)[1]:  # a server that is merely slow takes more within it
            client.socket.send(requests)
        ended = server.stopped()
        assert (ended.code, ended.stdout) == (1, "")
        assert "--grace-s 0.3 was too short" in ended.error


@pytest.mark.parametrize("kind", ["leading", "grpc", "grpc_aio", "processes"])
def test_an_idle_server_stops_without_any_grace(kind: str) -> None:
    """An idle server needs no grace: exit code 0 even with ``--grace-s 0``."""
    with Server(serve(*KINDS[kind]), "--grace-s", "0") as server:
        ended = server.stopped()
        assert (ended.code, ended.stderr) == (0, "")
