"""Each transport on the server core over a stream that splits and stalls gives the same bytes. Every receive and send
moves a few bytes, or none."""

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.server_core.connection import PlainStream, unacknowledged_bytes
from stock_service.rpc.server_core.options import Address, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.transports.http1.requests import Http
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import reply_decoder
from stock_service.rpc.wire.http1 import response_decoder
from stock_service.rpc.wire.http1_status import PROTOBUF, encode_request
from tests.conformance.raw_socket import frame
from tests.conformance.running import ECHO, WAIT_S, Probe, core_server, until
from tests.conformance.test_tls import SplitSocket
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, call, frames

CALLS, PIPELINE, BYTES_MAX = 30, 8, 1000

PATIENT = ReadOptions(delay_target_ms=0)
"""However slow the machine is, nothing is refused for its wait."""

Replies = list[tuple[int, int, bytes]]
"""For each reply: its call, its fault's code or 0, and its payload."""


def of_sockets(said: bytes) -> Replies:
    """Each is a frame."""
    return [(reply.call, reply.code, reply.payload) for reply in reply_decoder().feed(said)]


def of_http1(said: bytes) -> Replies:
    """Each is a response; they come in order."""
    found = response_decoder(1 << 20).feed(said)
    return [(at, FaultCode[head.fault.decode()] if head.fault else 0, body) for at, (head, body) in enumerate(found, 1)]


def of_grpc(said: bytes) -> Replies:
    """Replies of gRPC: each is frames of a stream, the last of which has the status."""
    bodies: dict[int, bytes] = {}
    replies: Replies = []
    for kind, flags, stream, payload in frames(said):
        if kind == http2.DATA:
            bodies[stream] = bodies.get(stream, b"") + payload
        elif kind == http2.HEADERS and flags & http2.END_STREAM:
            status = payload.partition(b"grpc-status")[2]
            replies.append((stream // 2 + 1, int(status[1 : 1 + status[0]]), bodies.get(stream, b"")[5:]))
    return replies


class Spoken(NamedTuple):
    """A transport's protocol, and how its client speaks."""

    protocol: Callable[..., Any]
    hello: bytes
    request: Callable[[int, bytes, str], bytes]
    replies: Callable[[bytes], Replies]
    in_order: bool = False


SPOKEN = {
    "sockets": Spoken(
        lambda _, methods: Frames(methods, BYTES_MAX),
        b"",
        lambda number, payload, path: frame(number, path, payload),
        of_sockets,
    ),
    "http1": Spoken(
        lambda service, methods: Http(service, methods, ServeOptions(frame_bytes_max=BYTES_MAX)),
        b"",
        lambda _, payload, path: encode_request(b"POST", path.encode(), PROTOBUF, payload, b"Host: localhost:1\r\n"),
        of_http1,
        in_order=True,
    ),
    "grpc_static": Spoken(
        lambda service, methods: GrpcRequests(service, methods, BYTES_MAX, CALLS),
        HELLO,
        lambda number, payload, path: call(2 * number - 1, payload, path.encode()),
        of_grpc,
    ),
}


@pytest.fixture(params=SPOKEN)
def spoken(request: pytest.FixtureRequest) -> Spoken:
    """Each transport in turn."""
    return SPOKEN[request.param]


@contextmanager
def served(spoken: Spoken, rng: random.Random, most: int) -> Iterator[tuple[RequestServer[Any], socket.socket]]:
    """A server whose streams move up to ``most`` bytes at a time, and a client of it."""
    service = Probe().service.with_health()
    methods = methods_of(service)
    protocol = spoken.protocol(service, methods)
    pipeline_max = 1 if spoken.in_order else PIPELINE
    options = ServeOptions(requests_max=1001, pipeline_max=pipeline_max, frame_bytes_max=BYTES_MAX)

    def carrier(accepted: socket.socket, peer: Address) -> PlainStream:
        return PlainStream(SplitSocket.of(accepted, random.Random(rng.random()), most), peer)

    sessions = protocol.decoder if spoken.hello else None
    with (
        core_server(methods, protocol, options, PATIENT, carrier, sessions) as server,
        socket.create_connection(server.address, WAIT_S) as client,
    ):
        yield server, client


def rest(client: socket.socket) -> bytes:
    """All bytes until the server has ended."""
    said = b""
    while piece := client.recv(65536):
        said += piece
    return said


def many(spoken: Spoken, rng: random.Random) -> tuple[bytes, Replies]:
    """Pipelined requests of several sizes, and their replies."""
    payloads = [bytes([number]) * rng.randint(0, 300) for number in range(1, CALLS + 1)]
    sent = b"".join(spoken.request(number, payload, ECHO) for number, payload in enumerate(payloads, 1))
    return spoken.hello + sent, [(number, 0, payload) for number, payload in enumerate(payloads, 1)]


@pytest.mark.parametrize("most", [1, 20, 200])
@pytest.mark.slow
def test_a_client_that_half_closes_gets_every_reply(spoken: Spoken, rng: random.Random, most: int) -> None:
    """Pipelined requests are answered whole, and in order where the protocol has one; then the server ends."""
    sent, expected = many(spoken, rng)
    with served(spoken, rng, most) as (_, client):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        replies = spoken.replies(rest(client))
    assert (replies if spoken.in_order else sorted(replies)) == expected


@pytest.mark.slow
def test_a_stop_answers_what_had_arrived(spoken: Spoken, rng: random.Random) -> None:
    """All of it, though it is read in small pieces after the stop began."""
    sent, expected = many(spoken, rng)
    with served(spoken, rng, 50) as (server, client):
        client.sendall(sent)
        until(lambda: not unacknowledged_bytes(client), "the server's kernel has it")
        assert server.stop(WAIT_S)
        replies = [reply for reply in spoken.replies(rest(client)) if reply[0]]  # 0: a goodbye
        assert sorted(replies) == expected
