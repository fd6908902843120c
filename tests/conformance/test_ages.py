"""A connection that is old: its client goes on with another one, and no request is lost on the way."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from threading import Thread

import grpc
import pytest

from stock_service.rpc.errors import NotBegun, Unavailable
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Connection, ServeOptions
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import ReplyFrame
from tests.conformance.kept import GRPC
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.raw_socket import DISPATCHES, RawSocket, frame
from tests.conformance.running import (
    BLOCK,
    ECHO,
    WAIT_S,
    Kind,
    Limits,
    Probe,
    maker,
    one_executor_each,
    stopping,
)
from tests.conformance.test_http1 import ask, client
from tests.raw_service import raw_call

AGE_S = 0.06
"""Least of a connection: it is drawn from nine to eleven tenths of an age, and noticed up to 0.05 s later."""

LASTING = [kind for kind in one_executor_each(0) if kind.dispatch == "request"]
"""Kinds of servers that end a connection of a certain age."""

WHO = "/tests.v1.Who/Ask"
"""Method whose reply is the address that the call came from."""


def aging(age_s: float = AGE_S, grace_s: float = WAIT_S) -> Limits:
    """Limits of a server whose connections have an age."""
    return Limits(options=ServeOptions(connection_age_s=age_s, connection_grace_s=grace_s))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in LASTING if kind.transport in GRPC], ids=str)
def test_clients_of_grpc_go_on_with_another_connection(kind: Kind) -> None:
    """A channel that is never idle has used several connections, and none of its calls failed."""
    service = Service("tests.v1.Who", {WHO: raw_call(lambda call: call.peer.encode())})
    with maker(kind)(service, aging()) as running:
        with grpc.insecure_channel("{}:{}".format(*running.address)) as channel:
            ask_who: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(WHO)
            ports: set[bytes] = set()
            while len(ports) < 3:
                calls = [ask_who.future(b"", WAIT_S) for _ in range(8)]
                ports |= {call.result() for call in calls}


def test_a_connection_of_http_ends_with_a_reply_that_says_so() -> None:
    """Every request is answered, and the last one with ``Connection: close``."""
    with maker(Kind("http1", "leader-followers"))(Probe().service, aging()) as running:
        with client(running.address) as connection:
            assert ask(connection, "POST", ECHO, b"first") == (200, b"first")
            first = connection.sock
            while connection.sock is first:  # which Python's client closes as it is told
                assert ask(connection, "POST", ECHO, b"again") == (200, b"again")
            assert connection.sock is None


@pytest.mark.slow
def test_a_connection_of_sockets_ends_with_a_goodbye() -> None:
    """The goodbye follows the replies to requests that were read. The client knows that later requests were not
    begun."""
    probe = Probe()
    with DISPATCHES[0](probe.service, aging()) as running, probe:
        with RawSocket(running.address) as client:
            client.send(frame(1, BLOCK))
            probe.entered()
            assert client.silent(2 * AGE_S), "a goodbye before the reply"
            client.send(frame(2))
            probe.released.set()
            assert (client.rest(), client.goodbyes) == ([ReplyFrame(1, 0, b"")], 1)
        connection = running.connect()
        with pytest.raises(NotBegun):
            echo_on(connection)
        assert connection.call(ECHO, b"echo", WAIT_S) == b"echo"


@pytest.mark.slow
def test_connections_that_came_together_leave_one_after_the_other() -> None:
    """Connections end at ages that differ by up to a fifth, and none before nine tenths of the age."""
    age_s, left_s = 1.0, list[float]()
    with DISPATCHES[0](Probe().service, aging(age_s)) as running, ExitStack() as clients:
        began_s = time.monotonic()
        waiting = [clients.enter_context(socket.create_connection(running.address, WAIT_S)) for _ in range(24)]
        while waiting:
            left, _, _ = select.select(waiting, (), (), WAIT_S)
            left_s += [time.monotonic() - began_s] * len(left)
            waiting = [each for each in waiting if each not in left]
    assert min(left_s) >= 0.9 * age_s
    assert sum(later - before > 0.03 for before, later in pairwise(left_s)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", LASTING, ids=str)
def test_a_request_that_outlasts_the_grace_is_given_up(kind: Kind) -> None:
    """The client of a request that outlasts the grace sees a lost connection long before the handler ends."""
    probe = Probe()
    with maker(kind)(probe.service, aging(grace_s=0.05)) as running, probe:
        with pytest.raises(Unavailable):
            running.connect().call(BLOCK, b"", WAIT_S)
        assert not probe.released.is_set()


@pytest.mark.parametrize("kind", [kind for kind in LASTING if kind.transport in ("sockets", "grpc_static")], ids=str)
def test_a_server_with_old_connections_stops_in_time(kind: Kind) -> None:
    """Some have heard that they are old, and some have a request under way."""
    probe = Probe()
    with maker(kind)(probe.service, aging()) as running, probe:
        connections = [running.connect() for _ in range(4)]
        pending(connections[0].call, probe)
        probe.released.wait(2 * AGE_S)
        probe.released.set()
        assert running.stop()


def test_a_stop_lets_an_old_connection_take_its_reply() -> None:
    """Whose window had no room for it: its client widens the window once the server is stopping."""
    with maker(Kind("grpc_static", "leader-followers"))(Probe().service, aging()) as running:
        with RawHttp2(running.address) as slow:
            slow.send(http2.settings((http2.INITIAL_WINDOW_SIZE, 0)), headers(1, ECHO), message(1, b"long"))
            slow.said(http2.GOAWAY)
            slow.said(http2.GOAWAY)
            stop = stopping(running)
            slow.send(http2.window_update(1, 100))
            assert slow.status(1) == 0
            assert slow.rest() == {1: 0}
            assert stop.result()


@pytest.mark.parametrize("transport", ["sockets", "http1", "grpc_static"])
def test_a_client_that_says_nothing_is_closed_after_the_grace(transport: str) -> None:
    """A client that neither sends nor acknowledges is closed after the grace."""
    with maker(Kind(transport, "leader-followers"))(Probe().service, aging(grace_s=0.05)) as running:
        with socket.create_connection(running.address, WAIT_S) as silent:
            while silent.recv(4096):
                pass


def echo_on(connection: Connection) -> None:
    """Asks until a fault comes."""
    while True:
        assert connection.call(ECHO, b"echo", WAIT_S) == b"echo"


def pending(call: Callable[[str, bytes, float], bytes], probe: Probe) -> None:
    """Has a call begin that waits; a thread of its own hears of its end."""
    Thread(target=call, args=(BLOCK, b"", WAIT_S), name="pending").start()
    probe.entered()
