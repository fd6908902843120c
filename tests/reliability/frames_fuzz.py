"""Promise: fuzzed. The frame decoder and the service's messages get mutated requests, in this process and in live
sessions. Live sessions are of sockets and of our own gRPC. ``grpc_fuzz.py`` has random frames of gRPC. An input is a
session of some requests with changed, missing or added bytes, fed in two pieces. A live session is sent to a server on
a new connection. A whole request is answered or refused by name. Other bytes end only their own connection.
"""

import random
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from typing import NamedTuple

from stock_service.rpc.errors import Fault
from stock_service.rpc.transports import load
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import FramingError, RequestFrame, reply_decoder, request_decoder
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.service import LOOKUP, TRADE, UPDATE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.raw_socket import frame
from tests.reliability.rows import Row
from tests.reliability.serving import threads_and_descriptors, usual_server, within
from tests.stores import STOCKS
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, call
from tests.unit.stock_service.rpc.wire.streams import frames_of

INPUTS, SOME = 1_000_000, 2_000
FEW = 50
"""Number of live sessions in a run of seconds."""

WAIT_S = 10.0
"""Longest time for a server to reply or to close, on a very busy machine."""

REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for seconds; with ``minutes`` for one or two minutes. Every input is drawn at random. Raises the error
    that an input caused."""
    live = [_sessions(transport, each.sessions if minutes else FEW, seed) for transport, each in LIVE.items()]
    return [_inputs(INPUTS if minutes else SOME, seed), *live]


def _inputs(count: int, seed: int) -> Row:
    """Inputs that are decoded and answered in this process."""
    service = stock_service(Exchange(MemoryCatalog(STOCKS, Mutex)))
    methods = {path.encode(): method.answer() for path, method in service.methods.items()}
    answered = refused = broken = 0
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        data, decoder = _mutated(rng, _frames(rng)), request_decoder()
        cut = rng.randrange(len(data) + 1)
        frames: list[RequestFrame] = []
        try:
            for piece in (data[:cut], data[cut:]):
                frames += decoder.feed(piece)
        except FramingError:
            broken += 1
        except Exception as error:
            error.add_note(f"seed {seed}, input {number}")
            raise
        for request in frames:
            try:
                answered += request.method in methods and bool(methods[request.method](request.payload))
            except Fault:
                refused += 1
            except Exception as error:
                error.add_note(f"seed {seed}, input {number}")
                raise
    figure = f"{count:,} inputs: {answered:,} requests answered, {refused:,} refused, {broken:,} sessions ended"
    return Row("mutated requests, in process", f"{INPUTS:,} inputs, no crash, no hang", figure, passed=True)


def _sessions(transport: str, count: int, seed: int) -> Row:
    """Sessions that are sent to a server. A second client, on the transport's own library, is answered before and
    after."""
    live, replies = LIVE[transport], 0
    with usual_server(transport) as server, closing(load(transport).connect(server.address, WAIT_S)) as other:
        assert other.call(LOOKUP, b"", WAIT_S)
        before = threads_and_descriptors(server.pid)
        for number in range(count):
            rng = random.Random(f"{seed} {transport} {number}")
            with socket.create_connection(server.address, WAIT_S) as client:
                try:
                    replies += live.replies_in(_said(client, _mutated(rng, live.made(rng))))
                except BaseException as error:
                    error.add_note(f"{transport}: seed {seed}, session {number}")
                    raise
        alive = bool(other.call(LOOKUP, b"", WAIT_S))
        settled = within(2.0, lambda: threads_and_descriptors(server.pid) == before)
        ended = server.stopped()
    sound = alive and settled and replies >= count // 10 and not ended.code and "Traceback" not in ended.stderr
    left = f"{'no' if settled else 'a'} thread or descriptor left"
    figure = f"{count:,} sessions with {replies:,} replies, exit code {ended.code}, {left}"
    return Row(f"{transport}: mutated live sessions", f"{live.sessions:,} sessions, no crash, no hang", figure, sound)


def _said(client: socket.socket, session: bytes) -> bytes:
    """All bytes that a server sends to a session, until the server closes. Raises TimeoutError if the server does not
    close."""
    said = bytearray()
    with suppress(ConnectionError):
        client.sendall(session)
        client.shutdown(socket.SHUT_WR)
        while piece := client.recv(1 << 16):
            said += piece
    return bytes(said)


def _frames_said(said: bytes) -> int:
    """Replies of the sockets protocol."""
    return sum(reply.call > 0 for reply in reply_decoder().feed(said))


def _calls_said(said: bytes) -> int:
    """Number of gRPC calls that were answered with a message."""
    return sum(kind == http2.DATA and bool(payload) for kind, _, _, payload in frames_of(said))


def _mutated(rng: random.Random, session: bytes) -> bytes:
    """A session with up to four mutations."""
    data = bytearray(session)
    for _ in range(rng.randrange(5)):
        place = rng.randrange(len(data)) if data else 0
        match rng.randrange(4):
            case 0 if data:
                data[place] = rng.randrange(256)
            case 1:
                del data[place : place + rng.randrange(1, 8)]
            case 2:
                data[place:place] = rng.randbytes(rng.randrange(1, 8))
            case _:
                data[place:place] = data[: rng.randrange(1, 40)]
    return bytes(data)


def _frames(rng: random.Random) -> bytes:
    """Some requests of the sockets protocol."""
    requests = [_request(rng) for _ in range(rng.randrange(1, 4))]
    return b"".join(frame(rng.randrange(1, 2**32), path, payload) for path, payload in requests)


def _calls(rng: random.Random) -> bytes:
    """Some calls on an HTTP/2 connection, and other frames between them."""
    session = HELLO
    for number in range(rng.randrange(1, 4)):
        path, payload = (REFLECTION, b"\x3a\x00") if rng.random() < 0.1 else _request(rng)
        session += call(2 * number + 1, payload, path.encode())
        if rng.random() < 0.5:
            session += rng.choice(_OTHERS)
    return session


_OTHERS = (
    http2.frame(http2.PING, 0, 0, bytes(8)),
    http2.settings((http2.INITIAL_WINDOW_SIZE, 5)),
    http2.window_update(0, 1000),
    http2.window_update(1, 1),
    http2.rst_stream(1, http2.ErrorCode.CANCEL),
    http2.goaway(0, http2.ErrorCode.NO_ERROR),
)


class Live(NamedTuple):
    """Bytes to send to a transport's server."""

    made: Callable[[random.Random], bytes]
    """Draws a session."""
    replies_in: Callable[[bytes], int]
    """Function that counts the replies in a server's bytes."""
    sessions: int
    """Number of inputs in the minutes version."""


LIVE = {"sockets": Live(_frames, _frames_said, 20_000), "grpc_static": Live(_calls, _calls_said, 10_000)}
"""Number of live sessions by transport. A session on HTTP/2 takes three times as long."""


def _request(rng: random.Random) -> tuple[str, bytes]:
    """A method's path, and a message."""
    name, number = rng.choice(("FishCo", "GameStart", "", "x" * 65)), rng.choice((0, 1, -1, 2**31, 2**63 - 1))
    side = rng.choice((stock_pb2.SIDE_BUY, stock_pb2.SIDE_SELL, stock_pb2.SIDE_UNSPECIFIED))
    request_id = rng.choice(("", "a", "b" * 65))
    path, message = rng.choice(
        (
            (LOOKUP, stock_pb2.LookupRequest(name=name)),
            (TRADE, stock_pb2.TradeRequest(name=name, quantity=number, side=side, request_id=request_id)),
            (UPDATE, stock_pb2.UpdateRequest(name=name, price_cents=number)),
        )
    )
    return path, message.SerializeToString()
