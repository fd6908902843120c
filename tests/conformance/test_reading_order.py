"""Order in which ready connections are read: clients that send little first, then those that take long. Connections
whose client has gone are not read."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.server_core import closing
from stock_service.rpc.server_core.connection import PlainStream, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.http2 import PREFACE, settings
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Probe, refuses, until


class Noting(PlainStream):
    """A connection that notes its number when it is read, and can hold up the reading thread."""

    __slots__ = ("_number", "_order", "floods", "held_up", "reached")

    def __init__(self, accepted: socket.socket, peer: Address, number: int, order: list[int]) -> None:
        super().__init__(accepted, peer)
        self._number, self._order = number, order
        self.held_up, self.reached, self.floods = Event(), Event(), Event()
        self.held_up.set()
        receive = self.receive

        def noting(size: int) -> bytes:
            self._order.append(self._number)
            self.reached.set()
            self.held_up.wait(WAIT_S)
            return receive(size)

        self.receive: Callable[[int], bytes] = noting

    def drop(self) -> int:
        """Bytes of a client that floods: there are always more."""
        return 1 if self.floods.is_set() else super().drop()


class Served:
    """A server of frames or gRPC, until ``with`` ends, and the notes of its streams. The first one can hold it up."""

    def __init__(self, connections_max: int = 100, of_grpc: bool = False) -> None:
        self.streams: list[Noting] = []
        self.order: list[int] = []
        self.probe, self.pool = Probe(), StaticPool(2, 100)
        self.probe.released.set()
        methods = methods_of(self.probe.service)
        options = ServeOptions(requests_max=102, connections_max=connections_max, pipeline_max=256 if of_grpc else 64)
        grpc = GrpcRequests(self.probe.service, methods, options.frame_bytes_max, 64)
        protocol: Any = grpc if of_grpc else Frames(methods, options.frame_bytes_max)
        sessions = grpc.decoder if of_grpc else None
        self._server = RequestServer(methods, protocol, self.pool, options, ReadOptions(), self._carry, sessions)
        self.address = self._server.address

    def _carry(self, accepted: socket.socket, peer: Address) -> Noting:
        self.streams.append(Noting(accepted, peer, len(self.streams), self.order))
        return self.streams[-1]

    def hold_up(self, first: RawSocket | RawHttp2, asked: bytes = frame(1, BLOCK, b"first")) -> None:
        """Holds up reading until ``go_on``; ``first`` has a request under way."""
        self.streams[0].held_up.clear()
        self.streams[0].reached.clear()
        first.send(asked)
        assert self.streams[0].reached.wait(WAIT_S)
        self.order.clear()

    def go_on(self) -> None:
        """Reads the bytes that have come."""
        self.streams[0].held_up.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.go_on()
        self.stop(WAIT_S)
        assert self.pool.stop(WAIT_S)

    def stop(self, grace_s: float) -> None:
        """Stops it, within the grace."""
        assert self._server.stop(grace_s)


def clients(served: Served, count: int, stack: ExitStack) -> list[RawSocket]:
    """Clients that were answered in turn. No worker has a request of theirs any more."""
    made = []
    for _ in range(count):
        made.append(stack.enter_context(RawSocket(served.address)))
        assert made[-1].echo()
        until(lambda: not served.pool.under_way, "the worker is free")
    return made


def test_who_calls_is_read_before_all_who_are_new() -> None:
    """A client with a call is read before new clients, even if they came first. Their header blocks take long, and a
    client that was cut off may come again at once."""
    with Served(of_grpc=True) as served, ExitStack() as opened:
        known = [opened.enter_context(RawHttp2(served.address)) for _ in range(2)]
        for client in known:
            for stream in (1, 3):  # of the first, the header block was new
                client.send(call(stream))
                client.status(stream)
        served.hold_up(known[0], call(5))
        strangers = [opened.enter_context(socket.create_connection(served.address)) for _ in range(3)]
        for stranger in strangers:
            stranger.sendall(PREFACE)
        served.go_on()
        until(lambda: len(served.streams) == 5, "they are accepted")
        assert known[0].status(5) is not None
        until(lambda: served.order[-3:] == [2, 3, 4], "they are read")

        served.hold_up(known[0], call(7))
        for stranger in strangers:
            stranger.sendall(settings())
        known[1].send(call(5))
        for sent in (*strangers, known[1].socket):
            until(lambda: not unacknowledged_bytes(sent), "the server's kernel has it")  # noqa: B023
        served.go_on()
        assert known[1].status(5) is not None
        until(lambda: len(served.order) >= 4, "they are read")
        assert served.order[:4] == [1, 2, 3, 4]


def call(stream: int) -> bytes:
    """A whole call of gRPC."""
    return headers(stream, ECHO) + message(stream, b"")


def test_what_was_asked_of_the_reading_thread_keeps_it_awake() -> None:
    """Though its waking was read by a thread that was relieved before it had looked.

    The three calls look at one peer, look at what all watch, and stop.
    """
    with Served() as served, ExitStack() as stack:
        (first,) = clients(served, 1, stack)
        served.hold_up(first)
        server = served._server
        (connection,) = server._connections.by_fd.values()
        assert server._timeout_s() != 0
        server._attention.append(connection)
        assert server._timeout_s() == 0
        server._attention.clear()
        server._connections.renewed = True
        assert server._timeout_s() == 0
        server._connections.renewed = False
        server._ending.asked = True
        assert server._timeout_s() == 0
        server._ending.asked = False


def test_what_is_told_of_one_that_was_cut_is_too_late() -> None:
    """An event of a connection that was cut is too late: epoll reported it before the cut. A request of it is still in
    its handler."""
    with Served() as served, ExitStack() as stack:
        (client,) = clients(served, 1, stack)
        served.probe.released.clear()
        client.send(frame(1, BLOCK))
        served.probe.entered()
        server = served._server
        (connection,) = server._connections.by_fd.values()
        try:
            server._connections.cut(connection)
            server._turn(connection, select.EPOLLIN, time.monotonic_ns())
            assert connection.events == -1
        finally:
            served.probe.released.set()


ACCEPTED = -1
"""Mark in the order: a further connection was accepted."""


class Dialled(Served):
    """A server whose second client sends a request as soon as a later connection is accepted."""

    def __init__(self) -> None:
        super().__init__(connections_max=200)
        self.second: RawSocket | None = None

    def _carry(self, accepted: socket.socket, peer: Address) -> Noting:
        stream = super()._carry(accepted, peer)
        self.order.append(ACCEPTED)
        if len(self.streams) == 3 and self.second is not None:
            self.second.send(frame(1, BLOCK))
        return stream


def test_who_calls_is_read_behind_a_turn_of_accepts() -> None:
    """However many wait to be accepted: sixteen at a time, which the design says."""
    with Dialled() as served, ExitStack() as stack:
        first, second = clients(served, 2, stack)
        served.hold_up(first)
        served.second = second
        for _ in range(100):
            stack.enter_context(RawSocket(served.address))
        served.go_on()
        assert second.reply() is not None
        until(lambda: served.order.count(ACCEPTED) == 100, "all are accepted")
        assert served.order.index(1) <= 16, "it waited for more"


def test_of_who_has_reset_nothing_is_begun() -> None:
    """Requests of a client that has reset its connection are not begun or even read. A client that ends as usual is
    served."""
    with Served() as served, ExitStack() as stack:
        first, leaves, ends = clients(served, 3, stack)
        served.hold_up(first)
        for client, name in ((leaves, b"leaves"), (ends, b"ends")):
            client.send(frame(1, BLOCK, name) * 3)
            until(lambda: not unacknowledged_bytes(client.socket), "the server's kernel has it")  # noqa: B023
        leaves.reset()
        ends.half_close()
        served.go_on()
        assert len(ends.rest()) == 3
        assert first.reply() is not None
        assert sorted(served.probe.begun) == [b"ends"] * 3 + [b"first"]
        assert 1 not in served.order


def test_what_is_told_of_one_that_was_closed_is_not_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new connection may get its number, while epoll has said that the old one was reset."""
    monkeypatch.setattr(closing, "EVICT_AFTER_S", 0.0)
    with Served(connections_max=3) as served, ExitStack() as stack:
        longest, _, first = clients(served, 3, stack)
        served.streams[0], served.streams[2] = served.streams[2], served.streams[0]
        served.hold_up(first)
        new = [stack.enter_context(RawSocket(served.address)) for _ in range(2)]
        longest.reset()
        served.go_on()
        assert first.reply() is not None
        assert [client.echo() for client in new] == [True, True]


def test_who_sends_on_and_on_does_not_keep_a_stop_from_going_on() -> None:
    """Bytes behind the last reply are dropped a piece at a time, though there is always another."""
    with Served() as served, ExitStack() as stack:
        (client,) = clients(served, 1, stack)
        served.streams[0].floods.set()
        served.probe.released.clear()
        client.send(frame(1, BLOCK))
        served.probe.entered()
        stop = Thread(target=served.stop, args=(WAIT_S,))
        stop.start()
        try:
            until(lambda: refuses(served.address), "the server stops accepting")
            served.probe.released.set()
            assert client.reply() is not None
            stop.join(WAIT_S / 2)
            assert not stop.is_alive()
        finally:
            served.streams[0].floods.clear()
            stop.join()
