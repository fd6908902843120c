"""The server core over a stream that splits and stalls: every receive and send moves a few bytes, or none."""

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.server_core.connection import PlainStream, arrived_bytes, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire.framing import ReplyFrame, RequestFrame
from tests.conformance.raw_socket import RawSocket, frame
from tests.conformance.running import WAIT_S, Probe, until


class SplitStream:
    """A plain stream of which each call moves up to ``most`` bytes, and every fourth one none."""

    barren, opening, unsent = 0, False, False

    def __init__(self, accepted: socket.socket, peer: Address, rng: random.Random, most: int) -> None:
        self._plain = PlainStream(accepted, peer)
        self.peer = peer
        self._socket = accepted
        self._rng = rng
        self._most = most
        self.fileno = self._plain.fileno
        self.keep_to_arrived = self._plain.keep_to_arrived
        self.read_on = self._plain.read_on
        self.drop = self._plain.drop
        self.half_close = self._plain.half_close
        self.unacknowledged = self._plain.unacknowledged
        self.held = self._plain.held
        self.close = self._plain.close
        self.receive: Callable[[int], bytes] = self._receive
        self.send: Callable[[bytes | bytearray], int] = self._send

    def _receive(self, size: int) -> bytes:
        """A few bytes; a stall only where there is more, of which epoll will tell."""
        if arrived_bytes(self._socket) and self._stalls():
            raise BlockingIOError
        return self._plain.receive(min(size, self._rng.randint(1, self._most)))

    def _send(self, data: bytes | bytearray) -> int:
        """The first few."""
        if self._stalls():
            raise BlockingIOError
        return self._plain.send(data[: self._rng.randint(1, self._most)])

    def _stalls(self) -> bool:
        return self._rng.random() < 0.25


@contextmanager
def split_server(rng: random.Random, most: int, pipeline_max: int) -> Iterator[RequestServer[RequestFrame]]:
    """One that echoes, with two workers."""
    service = Probe().service
    methods, pool = methods_of(service), StaticPool(2, 1000)
    options = ServeOptions(requests_max=1002, pipeline_max=pipeline_max)
    protocol = Frames(methods, options.frame_bytes_max)

    def carrier(accepted: socket.socket, peer: Address) -> SplitStream:
        return SplitStream(accepted, peer, random.Random(rng.random()), most)

    server = RequestServer(methods, protocol, pool, options, ReadOptions(delay_target_ms=0), carrier)
    try:
        yield server
    finally:
        stopped = server.stop(WAIT_S)
        assert pool.stop(WAIT_S)
        assert stopped


@pytest.mark.parametrize("pipeline_max", [1, 3, 64])
def test_every_request_gets_its_reply(rng: random.Random, pipeline_max: int) -> None:
    """Pipelined, of several sizes, on two connections at once."""
    sent = [ReplyFrame(call, 0, bytes([call]) * rng.randint(0, 200)) for call in range(1, 61)]
    with split_server(rng, 50, pipeline_max) as server:
        with RawSocket(server.address) as first, RawSocket(server.address) as second:
            for client in (first, second):
                client.send(b"".join(frame(reply.call, payload=reply.payload) for reply in sent))
            for client in (first, second):
                assert sorted(filter(None, [client.reply() for _ in sent])) == sent
                assert client.echo()


def test_a_request_byte_by_byte(rng: random.Random) -> None:
    """However a client's bytes come and a reply's leave, what is in them is the same."""
    with split_server(rng, 1, 64) as server, RawSocket(server.address) as client:
        for call in range(1, 6):
            client.send(frame(call, payload=b"payload"))
            assert client.reply() == ReplyFrame(call, 0, b"payload")


def test_what_is_no_frame_is_said(rng: random.Random) -> None:
    """After the replies to what came before it; then the server ends the connection."""
    with split_server(rng, 7, 64) as server, RawSocket(server.address) as client:
        client.send(frame(1) + frame(2) + bytes(4))
        assert sorted(reply.call for reply in client.rest()) == [0, 1, 2]


def test_a_stop_answers_what_had_arrived(rng: random.Random) -> None:
    """All of it, though it is read in small pieces after the stop began."""
    with split_server(rng, 50, 8) as server, RawSocket(server.address) as client:
        client.send(b"".join(frame(call) for call in range(1, 101)))
        until(lambda: not unacknowledged_bytes(client.socket), "the server's kernel has it")
        assert server.stop(WAIT_S)
        assert sorted(reply.call for reply in client.rest()) == list(range(1, 101))
