"""The server in one thread of Python: requests and replies in our server's framing.

``tests/interop/test_peer_servers.py`` tests the process contract of every peer.
"""

import select
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.peers.python.epoll_server import INVALID_ARGUMENT, STOCKS, UNIMPLEMENTED, Lost, cut
from stock_service.rpc.wire.framing import ReplyFrame, encode_reply, encode_request
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.service import LOOKUP
from stock_service.v1 import stock_pb2 as pb
from tests.end_to_end.process import WAIT_S, Server
from tests.unit.experiments.selfcheck.test_queue_server import replies

KNOWN = pb.LookupRequest(name="FishCo").SerializeToString()
FISH = pb.LookupResponse(status=pb.STATUS_OK, price_cents=4250).SerializeToString()
FULL_S = 0.3
"""Time in seconds after which a socket that accepts no byte counts as full."""

UNKNOWN = pb.LookupResponse(status=pb.STATUS_UNKNOWN_STOCK).SerializeToString()

ASKED: Sequence[tuple[bytes, bytes]] = (
    (encode_request(1, 5000, LOOKUP.encode(), KNOWN), encode_reply(1, 0, FISH)),
    (encode_request(2, 0, LOOKUP.encode(), b""), encode_reply(2, 0, UNKNOWN)),
    (encode_request(2**32 - 1, 0, b"/x", KNOWN), encode_reply(2**32 - 1, UNIMPLEMENTED, b"no such method here")),
    (encode_request(3, 0, LOOKUP.encode(), b"\xff"), encode_reply(3, INVALID_ARGUMENT, b"no LookupRequest")),
)
"""Pairs of a request and its reply."""


def test_its_stocks_are_the_default_ones() -> None:
    """The server has the default stocks with their prices."""
    assert {stock.name: stock.price_cents for stock in DEFAULT_STOCKS} == STOCKS


@given(st.lists(st.sampled_from(ASKED)), st.integers(0, len(ASKED[0][0]) - 1))
def test_whole_requests_are_answered_in_order(asked: Sequence[tuple[bytes, bytes]], cut_off: int) -> None:
    """Whole requests are answered in order. An incomplete request stays."""
    data = b"".join(request for request, _ in asked)
    rest = ASKED[0][0][:cut_off]
    assert cut(data + rest) == (b"".join(reply for _, reply in asked), len(data))


@pytest.mark.parametrize(
    "data",
    [
        encode_request(0, 0, LOOKUP.encode(), KNOWN),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x09" + b"\x00\x00\x00\x01" + b"\x00\x00\x00\x00" + b"\xff" + b"method",
    ],
    ids=["call 0", "HTTP", "a method longer than its frame"],
)
def test_what_is_no_request_ends_the_connection(data: bytes) -> None:
    """Bytes that are not a request end the connection."""
    with pytest.raises(Lost):
        cut(data)


@pytest.fixture
def server() -> Iterator[Server]:
    """The running server."""
    command = (sys.executable, "-m", "experiments.peers.python.epoll_server", "--port", "0")
    with Server(command, program=()) as running:
        yield running


@contextmanager
def late_reader(server: Server) -> Iterator[socket.socket]:
    """A connection with small buffers in the kernel."""
    with socket.socket() as connection:
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            connection.setsockopt(socket.SOL_SOCKET, buffer, 1 << 16)
        connection.settimeout(WAIT_S)
        connection.connect(server.address)
        yield connection


def sent_until_full(connection: socket.socket, data: bytes) -> int:
    """Number of bytes that could be sent while no replies are read. Fails if all bytes are sent."""
    sent = 0
    while sent < len(data):
        if not select.select([], [connection], [], FULL_S)[1]:
            return sent
        sent += connection.send(data[sent : sent + 65536], socket.MSG_DONTWAIT)
    pytest.fail("the server reads on, though nobody takes its replies")


@pytest.mark.slow
def test_a_client_that_sends_bytewise_and_one_that_reads_late(server: Server) -> None:
    """A client that sends single bytes and a client that reads late get all replies. Other clients are served
    meanwhile. A client without frames is disconnected."""
    request, reply = ASKED[0]
    with (
        socket.create_connection(server.address, WAIT_S) as bytewise,
        late_reader(server) as late,
        socket.create_connection(server.address, WAIT_S) as wrong,
    ):
        sent = sent_until_full(late, request * 500_000)
        for byte in request:
            bytewise.send(bytes([byte]))
        assert replies(bytewise, 1) == [ReplyFrame(1, 0, FISH)]
        wrong.send(b"GET / HTTP/1.1\r\n\r\n")
        assert wrong.recv(100) == b""
        whole, begun = divmod(sent, len(request))
        came = bytearray()
        while len(came) < whole * len(reply):
            came += late.recv(1 << 20) or pytest.fail("the server closed")
        assert came == reply * whole
        late.sendall(request[begun:])
        assert replies(late, 1) == [ReplyFrame(1, 0, FISH)]
    assert server.stopped().code == 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_every_request_waits_for_the_disk(tmp_path: Path) -> None:
    """With ``--fdatasync`` every request calls ``fdatasync``, also several requests in one packet."""
    log = tmp_path / "log"
    command = (sys.executable, "-m", "experiments.peers.python.epoll_server", "--port", "0", "--fdatasync")
    # -D: the server is our own child, so that it is the server, and not strace alone, that is stopped
    strace = ("strace", "-D", "-f", "-e", "trace=fdatasync", "-o", str(log), *command)
    with Server(strace, program=()) as running:
        with socket.create_connection(running.address, WAIT_S) as connection:
            connection.sendall(encode_request(1, 0, b"/x", KNOWN) * 20)
            assert replies(connection, 20) == [ReplyFrame(1, 0, b"")] * 20
    assert log.read_text().count("fdatasync(") == 20
