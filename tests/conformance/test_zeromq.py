"""What only ZeroMQ has: any client of its library, messages that are none, and a library that may be missing."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import zmq

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire.framing import ReplyFrame
from stock_service.rpc.wire.messages import cut_reply, encode_request
from tests.conformance.running import ECHO, WAIT_S, Kind, Probe, Running, maker

make = maker(Kind("zeromq", "static-pool"))


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
@pytest.mark.parametrize("words", ["stock_service serve --port 0", "clients.trader lookup FishCo"])
@pytest.mark.parametrize(("transport", "package"), [("zeromq", "zmq"), ("nng", "pynng")])
def test_a_missing_library_is_one_line(transport: str, package: str, words: str) -> None:
    """Which names it; exit code 2."""
    hidden = f"import sys, runpy; sys.modules[{package!r}] = None; sys.argv = sys.argv[1:]; "
    program = hidden + "runpy.run_module(sys.argv[0], run_name='__main__')"
    arguments = [*words.split(), "--transport", transport]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"--transport: got '{transport}', allowed: another, or this one with its library: py" in done.stderr
