"""Order in which ready connections are read: clients that send little first, then those that take long. Connections
whose client has gone are not read."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from threading import Event, Thread
from types import TracebackType
from typing import Self

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.server_core import closing
from stock_service.rpc.server_core.connection import PlainStream, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.transports.sockets.frames import Frames
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import BLOCK, WAIT_S, Probe, refuses, until


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


def test_who_calls_is_read_before_all_who_are_new() -> None:
    """A client with a call is read before new clients, even if they came first. Their header blocks take long, and a
    client that was cut off may come again at once."""
    streams: list[Noting] = []
    order: list[int] = []
    service = Probe().service
    methods, pool = methods_of(service), StaticPool(2, 100)
    options = ServeOptions(requests_max=102)
    protocol = GrpcRequests(service, methods, options.frame_bytes_max, options.pipeline_max)

    def carrier(accepted: socket.socket, peer: Address) -> Noting:
        streams.append(Noting(accepted, peer, len(streams), order))
        return streams[-1]

    path = next(iter(service.methods))
    unpaused = replace(options, pipeline_max=4 * options.pipeline_max)
    server = RequestServer(methods, protocol, pool, unpaused, ReadOptions(), carrier, protocol.decoder)
    try:
        with ExitStack() as clients:
            known = [clients.enter_context(RawHttp2(server.address)) for _ in range(2)]
            for client in known:
                for stream in (1, 3):  # of the first, the header block was new
                    client.send(headers(stream, path), message(stream, b""))
                    client.status(stream)
            streams[0].held_up.clear()
            streams[0].reached.clear()
            known[0].send(headers(5, path), message(5, b""))
            assert streams[0].reached.wait(WAIT_S)
            order.clear()
            strangers = [clients.enter_context(socket.create_connection(server.address)) for _ in range(3)]
            for stranger in strangers:
                stranger.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            streams[0].held_up.set()
            until(lambda: len(streams) == 5, "they are accepted")
            assert known[0].status(5) is not None
            until(lambda: order[-3:] == [2, 3, 4], "they are read")

            streams[0].held_up.clear()
            streams[0].reached.clear()
            known[0].send(headers(7, path), message(7, b""))
            assert streams[0].reached.wait(WAIT_S)
            order.clear()
            for stranger in strangers:
                stranger.sendall(b"\0\0\0\4\0\0\0\0\0")
                until(lambda: not unacknowledged_bytes(stranger), "the server's kernel has it")  # noqa: B023
            known[1].send(headers(5, path), message(5, b""))
            until(lambda: not unacknowledged_bytes(known[1].socket), "the server's kernel has it")
            streams[0].held_up.set()
            assert known[1].status(5) is not None
            until(lambda: len(order) >= 4, "they are read")
            assert order[:4] == [1, 2, 3, 4]
    finally:
        streams[0].held_up.set()
        assert server.stop(WAIT_S)
        assert pool.stop(WAIT_S)


class Served:
    """A server of frames, until ``with`` ends, and what its streams note; the first one can be made to hold it up."""

    def __init__(self, connections_max: int = 100) -> None:
        self.streams: list[Noting] = []
        self.order: list[int] = []
        self.probe, self.pool = Probe(), StaticPool(2, 100)
        self.probe.released.set()
        methods = methods_of(self.probe.service)
        options = ServeOptions(requests_max=102, connections_max=connections_max)
        protocol = Frames(methods, options.frame_bytes_max)
        self._server = RequestServer(methods, protocol, self.pool, options, ReadOptions(), self._carry)
        self.address = self._server.address

    def _carry(self, accepted: socket.socket, peer: Address) -> Noting:
        self.streams.append(Noting(accepted, peer, len(self.streams), self.order))
        return self.streams[-1]

    def hold_up(self, first: RawSocket) -> None:
        """Holds up reading until ``go_on``; ``first`` has a request under way."""
        self.streams[0].held_up.clear()
        self.streams[0].reached.clear()
        first.send(frame(1, BLOCK, b"first"))
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
