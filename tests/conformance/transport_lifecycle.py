"""Stops of servers and ends of clients, alike on every transport: each check takes a maker of one kind.

That no thread and no descriptor is left is checked after each of them, by ``tests/conftest.py``.
"""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from stock_service.rpc.errors import Fault, Unavailable
from stock_service.rpc.transports import Connection, ServeOptions
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Limits, Maker, Probe, stopping, until


def check_client_leaves_first(make: Maker) -> None:
    """Clients come and go, having called or not; closing twice does nothing more."""
    with make(Probe().service, Limits(workers=1)) as running:
        for call in (True, False, True):
            connection = running.connect()
            assert not call or connection.call(ECHO, b"1", WAIT_S) == b"1"
            connection.close()
            connection.close()
        assert running.connect().call(ECHO, b"last", WAIT_S) == b"last"


def check_client_stays(make: Maker) -> None:
    """A client that keeps its connection does not hold up the stop, nor a second stop; its next call is Unavailable."""
    with make(Probe().service) as running:
        kept = running.connect()
        assert kept.call(ECHO, b"1", WAIT_S) == b"1"
        running.connect()
        began_s = time.monotonic()
        assert running.stop()
        assert time.monotonic() - began_s < WAIT_S / 2
        assert running.stop()
        with pytest.raises(Unavailable, match=f"{running.address[0]}:{running.address[1]}"):
            kept.call(ECHO, b"2", 1.0)


def check_accepted_is_finished(make: Maker) -> None:
    """A request that was accepted before the stop is answered after it began; the stop waits for it."""
    probe = Probe()
    with make(probe.service) as running, ThreadPoolExecutor() as threads, probe:
        connections = [running.connect() for _ in range(3)]
        payloads = [b"accepted", b"", b"\xff" * 500_000]  # many segments
        calls = [
            threads.submit(connection.call, BLOCK, payload, WAIT_S)
            for connection, payload in zip(connections, payloads, strict=True)
        ]
        for _ in calls:
            probe.entered()
        stop = stopping(running)
        assert not stop.done()
        assert not any(call.done() for call in calls)
        probe.released.set()
        assert [call.result() for call in calls] == payloads
        assert stop.result()


def check_stuck_handler(make: Maker) -> None:
    """A handler that does not end is given up after the grace: the stop says so, and the client gets a fault."""
    probe = Probe()
    with make(probe.service) as running, ThreadPoolExecutor() as threads, probe:
        call = threads.submit(running.connect().call, BLOCK, b"stuck", WAIT_S)
        probe.entered()
        began_s = time.monotonic()
        assert not running.server.stop(0.1)
        assert 0.1 <= time.monotonic() - began_s < WAIT_S / 2
        with pytest.raises(Unavailable):
            call.result()
        assert not running.stop(0.05)
        probe.released.set()
        assert running._executor.stop(WAIT_S)


def check_port_in_use(make: Maker) -> None:
    """A second server on a port that is taken raises OSError, and the first one goes on."""
    with make(Probe().service) as running:
        with pytest.raises(OSError, match=r"."):
            make(Probe().service, Limits(options=ServeOptions(port=running.address[1])))
        assert running.connect().call(ECHO, b"1", WAIT_S) == b"1"


def check_reconnect(make: Maker) -> None:
    """A connection is good again once the server is back on its port."""
    with make(Probe().service) as first:
        connection = first.connect()
        assert connection.call(ECHO, b"1", WAIT_S) == b"1"
        assert first.stop()
        with make(Probe().service, Limits(options=ServeOptions(port=first.address[1]))) as second:
            until(lambda: answers(connection), "the connection is made anew")
            connection.close()
            assert second.connect().call(ECHO, b"2", WAIT_S) == b"2"


def answers(connection: Connection) -> bool:
    """Tell whether a call is answered; Unavailable is not, and any other fault is raised."""
    try:
        return connection.call(ECHO, b"again", WAIT_S) == b"again"
    except Unavailable:
        return False


def check_nobody_listens(make: Maker) -> None:
    """A connection to a port without a server is Unavailable, and the message has the port. A server without any call
    stops at once, at the end of ``with``."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with make(Probe().service) as running:
        running.address = ("127.0.0.1", port)
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
            running.connect(0.2)


def check_stop_under_load(make: Maker) -> None:
    """Under load, every request ends: with its reply, or with Unavailable once the stop has begun."""
    over = threading.Event()

    def client(connection: Connection) -> list[Fault]:
        number = 0
        while not over.is_set():
            number += 1
            try:
                assert connection.call(ECHO, b"%d" % number, WAIT_S) == b"%d" % number
            except Fault as fault:
                return [fault]
            under_way.release()
        return []

    under_way = threading.Semaphore(0)
    with make(Probe().service) as running, ThreadPoolExecutor() as threads:
        clients = [threads.submit(client, running.connect()) for _ in range(4)]
        try:
            assert all(under_way.acquire(timeout=WAIT_S) for _ in range(100))
            assert running.stop()
            ended = [fault for each in clients for fault in each.result(WAIT_S)]
        finally:
            over.set()
        assert len(ended) == 4
        assert all(isinstance(fault, Unavailable) for fault in ended), ended


CHECKS = (
    check_client_leaves_first,
    check_client_stays,
    check_accepted_is_finished,
    check_stuck_handler,
    check_port_in_use,
    check_reconnect,
    check_nobody_listens,
    check_stop_under_load,
)
