"""The null server answers every request with one valid reply, on both protocols, for any cut of its bytes."""

import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from clients import replies
from clients.load.run.null_server import REPLY, NullServer, answers_of
from stock_service.rpc.transports import load
from stock_service.rpc.wire.framing import ReplyFrame, encode_request, reply_decoder
from stock_service.rpc.wire.grpc_null import HELLO
from stock_service.rpc.wire.http2 import PREFACE, frame
from stock_service.trading.service import LOOKUP

ROOT = Path(__file__).resolve().parents[5]

WAIT_S = 10.0

DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK = 1, 1


@contextmanager
def serving(transport: str, before: Callable[[NullServer], None] = lambda _: None) -> Iterator[tuple[str, int]]:
    """A server in a thread, and its address."""
    answers = answers_of(transport)
    assert answers is not None
    server = NullServer(answers, 0)
    before(server)
    thread = threading.Thread(target=server.serve, name="null-server")
    thread.start()
    try:
        yield ("127.0.0.1", server.port)
    finally:
        with socket.socket(fileno=server.stop_descriptor) as stop:
            stop.send(b"\0")
            stop.detach()
        thread.join()


@contextmanager
def connected(transport: str) -> Iterator[socket.socket]:
    """A connection to a new server."""
    with serving(transport) as address, socket.create_connection(address, WAIT_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield client


def exactly(client: socket.socket, count: int) -> bytes:
    """The next bytes of this number."""
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        assert more, "the server closed the connection"
        data += more
    return data


def next_frame(client: socket.socket) -> tuple[int, int, int, bytes]:
    """The next HTTP/2 frame: type, flags, stream, payload."""
    head = exactly(client, 9)
    payload = exactly(client, int.from_bytes(head[:3], "big"))
    return head[3], head[4], int.from_bytes(head[5:], "big"), payload


def greeted(client: socket.socket) -> None:
    """Sends a client's first bytes, and reads the server's."""
    client.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
    assert exactly(client, len(HELLO)) == HELLO
    assert next_frame(client) == (SETTINGS, ACK, 0, b"")


def call(stream: int, body: bytes = b"\0\0\0\0\0") -> bytes:
    """A request on a stream; its headers are never read."""
    return frame(HEADERS, 4, stream, b"\xff" * 20) + frame(DATA, END_STREAM, stream, body)


def answered(client: socket.socket) -> int:
    """Reads one whole answer, checks it, and gives its stream."""
    kind, flags, stream, block = next_frame(client)
    assert (kind, flags, block[:1]) == (HEADERS, 4, b"\x88")
    assert next_frame(client) == (DATA, 0, stream, b"\0" + len(REPLY).to_bytes(4, "big") + REPLY)
    kind, flags, same, block = next_frame(client)
    assert (kind, flags, same) == (HEADERS, 5, stream)
    assert b"grpc-status" in block
    return stream


@pytest.mark.slow  # the first one loads grpcio
@pytest.mark.parametrize("transport", ["grpc", "sockets"])
def test_the_transports_own_clients_are_answered(transport: str) -> None:
    """Both transports' own clients get a valid reply to Lookup, again and again."""
    with serving(transport) as address, closing(load(transport).connect(address, WAIT_S)) as connection:
        for _ in range(5):
            assert replies.lookup(connection.call(LOOKUP, b"anything", WAIT_S)).price_cents == 101_20


def read_replies(client: socket.socket, count: int) -> list[ReplyFrame]:
    """The next replies on a sockets connection."""
    decoder = reply_decoder()
    got: list[ReplyFrame] = []
    while len(got) < count:
        got += decoder.feed(exactly(client, 1))
    return got


@pytest.mark.parametrize("piece_bytes", [1, 3, 7, 1000])
def test_requests_in_pieces_are_answered_by_their_numbers(piece_bytes: int) -> None:
    """Each of five requests gets its reply with its call number, for any cut of the bytes."""
    data = b"".join(encode_request(number, 0, LOOKUP.encode(), b"x" * number) for number in range(1, 6))
    with connected("sockets") as client:
        for at in range(0, len(data), piece_bytes):
            client.sendall(data[at : at + piece_bytes])
        assert read_replies(client, 5) == [ReplyFrame(number, 0, REPLY) for number in range(1, 6)]


@pytest.mark.parametrize("piece_bytes", [1, 5, 9, 1000])
def test_calls_in_pieces_are_answered_on_their_streams(piece_bytes: int) -> None:
    """Each stream gets headers, message and trailers, for any cut of the bytes."""
    data = b"".join(call(stream) for stream in (1, 3, 5))
    with connected("grpc") as client:
        greeted(client)
        for at in range(0, len(data), piece_bytes):
            client.sendall(data[at : at + piece_bytes])
        assert [answered(client) for _ in range(3)] == [1, 3, 5]


def test_a_ping_is_echoed_and_an_answer_to_one_is_not() -> None:
    """A PING comes back with its payload and ACK; an ACK, of PING or SETTINGS, is left alone."""
    with connected("grpc") as client:
        greeted(client)
        client.sendall(frame(PING, ACK, 0, b"01234567") + frame(SETTINGS, ACK, 0, b"") + frame(PING, 0, 0, b"abcdefgh"))
        assert next_frame(client) == (PING, ACK, 0, b"abcdefgh")


def test_no_more_is_sent_than_the_client_takes() -> None:
    """Once the client's window of 65,535 bytes is used up, replies wait until it opens."""
    with connected("grpc") as client:
        greeted(client)
        message_bytes = 5 + len(REPLY)
        fit = 65_535 // message_bytes
        client.sendall(b"".join(call(2 * number + 1) for number in range(fit + 1)))
        assert [answered(client) for _ in range(fit)] == [2 * number + 1 for number in range(fit)]
        client.sendall(frame(PING, 0, 0, b"........"))
        assert next_frame(client)[0] == PING, "an answer came that the window had no room for"
        client.sendall(frame(WINDOW_UPDATE, 0, 0, message_bytes.to_bytes(4, "big")))
        assert answered(client) == 2 * fit + 1


def test_the_client_is_given_window_again() -> None:
    """A client's window is given back once it has sent a mebibyte."""
    with connected("grpc") as client:
        greeted(client)
        for number in range(64):
            client.sendall(call(2 * number + 1, b"\0" * 16_384))
        while (got := next_frame(client))[0] != WINDOW_UPDATE:
            assert got[0] in (HEADERS, DATA)
        assert got == (WINDOW_UPDATE, 0, 0, (1 << 20).to_bytes(4, "big"))


def test_who_does_not_speak_http2_is_cut_off() -> None:
    """A request of HTTP/1.1 gets nothing but the server's own greeting."""
    with connected("grpc") as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert exactly(client, len(HELLO)) == HELLO
        assert client.recv(1) == b""


def test_one_client_that_leaves_disturbs_no_other() -> None:
    """A connection that is reset is dropped, and others are answered."""
    with serving("sockets") as address, socket.create_connection(address, WAIT_S) as staying:
        with socket.create_connection(address, WAIT_S) as leaving:
            leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            leaving.sendall(encode_request(1, 0, LOOKUP.encode(), b""))
        staying.sendall(encode_request(2, 0, LOOKUP.encode(), b""))
        assert read_replies(staying, 1) == [ReplyFrame(2, 0, REPLY)]


def leave(server: NullServer) -> None:
    """A client that has reset its connection before the server takes it."""
    with socket.create_connection(("127.0.0.1", server.port), WAIT_S) as leaving:
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def accept_without_descriptors(server: NullServer) -> None:
    """A client that waits while the server may open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_connection(("127.0.0.1", server.port), WAIT_S):
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            assert server._accept()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("before", [leave, accept_without_descriptors])
def test_a_connection_that_cannot_be_taken_does_not_make_it_deaf(before: Callable[[NullServer], None]) -> None:
    """After a connection that cannot be accepted the next client is greeted and answered."""
    with serving("grpc", before) as address, socket.create_connection(address, WAIT_S) as client:
        greeted(client)
        client.sendall(call(1))
        assert answered(client) == 1


@pytest.mark.slow  # a process
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_process_contract(stop: signal.Signals) -> None:
    """The first line is ``ready HOST:PORT``; at a signal it ends with exit code 0."""
    command = [sys.executable, "-m", "clients.load.run.null_server", "--transport", "sockets"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        word, address = process.stdout.readline().split()
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), WAIT_S) as client:
            client.sendall(encode_request(1, 0, LOOKUP.encode(), b""))
            assert (word, read_replies(client, 1)) == ("ready", [ReplyFrame(1, 0, REPLY)])
            process.send_signal(stop)
            assert process.wait(WAIT_S) == 0
