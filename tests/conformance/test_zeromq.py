"""What only ZeroMQ has: any client of its library, messages that are none, and pings."""

import socket
import time
from collections.abc import Iterator

import pytest
import zmq

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire.framing import ReplyFrame
from stock_service.rpc.wire.messages import cut_reply, encode_request
from tests.conformance.running import ECHO, WAIT_S, Kind, Limits, Probe, Running, maker

make = maker(Kind("zeromq", "static-pool"))

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
"""How a peer of ZMTP 3.1 begins (rfc.zeromq.org/spec/37), as a DEALER without a name."""


@pytest.fixture
def running() -> Iterator[Running]:
    """A server."""
    with make(Probe().service) as running:
        yield running


def said(running: Running, kind: int, *parts: bytes) -> list[bytes]:
    """What the server says to a client of pyzmq that sends these parts."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    with context.socket(kind) as client:
        client.setsockopt(zmq.LINGER, 0)
        client.setsockopt(zmq.RCVTIMEO, int(WAIT_S * 1000))
        client.connect("tcp://{}:{}".format(*running.address))
        client.send_multipart(parts)
        reply: list[bytes] = client.recv_multipart()
        return reply


def test_a_req_client_gets_its_reply(running: Running) -> None:
    """The empty part that it puts before a message comes back before the reply."""
    (reply,) = said(running, zmq.REQ, encode_request(7, 0, ECHO.encode(), b"x"))
    assert cut_reply(reply) == ReplyFrame(7, 0, b"x")


def test_what_comes_before_the_message_comes_back(running: Running) -> None:
    """As it was: a ZeroMQ proxy may stand between."""
    *before, reply = said(running, zmq.DEALER, b"a", b"", encode_request(7, 0, ECHO.encode(), b"x"))
    assert before == [b"a", b""]
    assert cut_reply(reply) == ReplyFrame(7, 0, b"x")


@pytest.mark.parametrize("message", [b"", b"short", encode_request(7, 0, b"/a.B/C", b"")[:12]])
def test_what_is_no_request_is_refused(running: Running, message: bytes) -> None:
    """As a fault of no call, and the next request is answered."""
    for _ in range(2):
        (reply,) = said(running, zmq.DEALER, message)
        assert cut_reply(reply)[:2] == (0, FaultCode.INVALID_ARGUMENT)
    assert running.connect().call(ECHO, b"after", WAIT_S) == b"after"


@pytest.mark.slow
def test_who_answers_no_ping_is_dropped_after_idle_s() -> None:
    """A peer that says hello in ZeroMQ's way and then nothing. A live client that asks nothing is kept meanwhile."""
    with make(Probe().service, Limits(options=ServeOptions(idle_s=0.3))) as running:
        live = running.connect()
        with socket.create_connection(running.address, WAIT_S) as silent:
            silent.sendall(GREETING + READY)
            began_s = time.monotonic()
            while silent.recv(4096):
                pass
            assert 0.15 <= time.monotonic() - began_s < WAIT_S / 2
        connection = live._socket  # type: ignore[attr-defined]
        assert live.call(ECHO, b"still", WAIT_S) == b"still"
        assert live._socket is connection, "it had to connect again"  # type: ignore[attr-defined]
