"""In what order connections are read on which something has come: who sends little first, then those that take long.

Who has gone is not read at all.
"""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from threading import Event

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.server_core.answering import methods_of
from stock_service.rpc.server_core.byte_stream import PlainStream, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.request_server import RequestServer
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.transports.sockets.frames import Frames
from tests.conformance.raw_http2 import RawHttp2, headers, message
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import BLOCK, WAIT_S, Probe, until


class Noting(PlainStream):
    """One that notes by its number that it is read, and can be made to hold up whoever reads it."""

    __slots__ = ("_number", "_order", "held_up", "reached")

    def __init__(self, accepted: socket.socket, peer: Address, number: int, order: list[int]) -> None:
        super().__init__(accepted, peer)
        self._number, self._order = number, order
        self.held_up, self.reached = Event(), Event()
        self.held_up.set()
        receive = self.receive

        def noting(size: int) -> bytes:
            self._order.append(self._number)
            self.reached.set()
            self.held_up.wait(WAIT_S)
            return receive(size)

        self.receive: Callable[[int], bytes] = noting


def test_who_calls_is_read_before_all_who_are_new() -> None:
    """Though they came first: header blocks of new ones take long, and who is cut off may come again at once."""
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


def test_of_who_has_reset_nothing_is_begun() -> None:
    """Though whole requests of it had come: they are not even read, and one that ends as usual is served."""
    streams: list[Noting] = []
    order: list[int] = []
    probe, pool = Probe(), StaticPool(2, 100)
    probe.released.set()
    methods, options = methods_of(probe.service), ServeOptions(requests_max=102)

    def carrier(accepted: socket.socket, peer: Address) -> Noting:
        streams.append(Noting(accepted, peer, len(streams), order))
        return streams[-1]

    server = RequestServer(methods, Frames(methods, options.frame_bytes_max), pool, options, ReadOptions(), carrier)
    try:
        with RawSocket(server.address) as known, RawSocket(server.address) as leaves, RawSocket(server.address) as ends:
            assert known.echo()
            assert leaves.echo()
            assert ends.echo()
            streams[0].held_up.clear()
            streams[0].reached.clear()
            known.send(frame(1, BLOCK, b"known"))
            assert streams[0].reached.wait(WAIT_S)
            order.clear()
            for client, name in ((leaves, b"leaves"), (ends, b"ends")):
                client.send(frame(1, BLOCK, name) * 3)
                until(lambda: not unacknowledged_bytes(client.socket), "the server's kernel has it")  # noqa: B023
            leaves.reset()
            ends.half_close()
            streams[0].held_up.set()
            assert len(ends.rest()) == 3
            assert known.reply() is not None
            assert sorted(probe.begun) == [b"ends"] * 3 + [b"known"]
            assert 1 not in order
    finally:
        streams[0].held_up.set()
        assert server.stop(WAIT_S)
        assert pool.stop(WAIT_S)
