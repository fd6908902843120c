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
from stock_service.rpc.process.command_line import address
from stock_service.rpc.transports import load
from stock_service.rpc.wire.codec import NullAnswers
from stock_service.rpc.wire.framing import ReplyFrame, encode_request, reply_decoder
from stock_service.rpc.wire.grpc_null import HELLO
from stock_service.rpc.wire.http2 import PREFACE, frame
from stock_service.trading.service import LOOKUP

ROOT = Path(__file__).resolve().parents[5]

WAIT_S = 10.0

Frame = tuple[int, int, int, bytes]

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


def codec_of(transport: str) -> NullAnswers:
    """The server's side of the protocol for a new connection."""
    answers = answers_of(transport)
    assert answers is not None
    return answers()


def fed(codec: NullAnswers, data: bytes, piece_bytes: int = 1 << 30) -> bytes:
    """All bytes that a server sends for these bytes, which come in pieces."""
    sent = [codec.feed(data[at : at + piece_bytes]) for at in range(0, len(data), piece_bytes)]
    return b"".join(each or b"" for each in sent)


def frames(data: bytes) -> list[Frame]:
    """HTTP/2 frames: type, flags, stream, payload."""
    found = []
    while data:
        end = 9 + int.from_bytes(data[:3], "big")
        found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:end]))
        data = data[end:]
    return found


GREETING = PREFACE + frame(SETTINGS, 0, 0, b"")
"""First bytes of a gRPC client."""


def greeted() -> NullAnswers:
    """The protocol of a gRPC connection, after both greetings."""
    codec = codec_of("grpc")
    assert codec.hello == HELLO
    assert frames(fed(codec, GREETING)) == [(SETTINGS, ACK, 0, b"")]
    return codec


def call(stream: int, body: bytes = b"\0\0\0\0\0") -> bytes:
    """A request on a stream; its headers are never read."""
    return frame(HEADERS, 4, stream, b"\xff" * 20) + frame(DATA, END_STREAM, stream, body)


def streams(sent: list[Frame]) -> list[int]:
    """The streams of whole answers, each of which is checked: headers, message and trailers."""
    answers = list(zip(sent[::3], sent[1::3], sent[2::3], strict=True))
    for headers, message, trailers in answers:
        stream = headers[2]
        assert (headers[:2], headers[3][:1]) == ((HEADERS, 4), b"\x88")
        assert message == (DATA, 0, stream, b"\0" + len(REPLY).to_bytes(4, "big") + REPLY)
        assert trailers[:3] == (HEADERS, 5, stream)
        assert b"grpc-status" in trailers[3]
    return [headers[2] for headers, _, _ in answers]


@pytest.mark.slow  # the first one loads grpcio
@pytest.mark.parametrize("transport", ["grpc", "sockets"])
def test_the_transports_own_clients_are_answered(transport: str) -> None:
    """Both transports' own clients get a valid reply to Lookup, again and again."""
    with serving(transport) as where, closing(load(transport).connect(where, WAIT_S)) as connection:
        for _ in range(5):
            assert replies.lookup(connection.call(LOOKUP, b"anything", WAIT_S)).price_cents == 101_20


@pytest.mark.parametrize("piece_bytes", [1, 3, 7, 1000])
def test_requests_in_pieces_are_answered_by_their_numbers(piece_bytes: int) -> None:
    """Each of five requests gets its reply with its call number, for any cut of the bytes."""
    data = b"".join(encode_request(number, 0, LOOKUP.encode(), b"x" * number) for number in range(1, 6))
    sent = fed(codec_of("sockets"), data, piece_bytes)
    assert reply_decoder().feed(sent) == [ReplyFrame(number, 0, REPLY) for number in range(1, 6)]


@pytest.mark.parametrize("piece_bytes", [1, 5, 9, 1000])
def test_calls_in_pieces_are_answered_on_their_streams(piece_bytes: int) -> None:
    """Each stream gets headers, message and trailers, for any cut of the bytes."""
    data = GREETING + b"".join(call(stream) for stream in (1, 3, 5))
    settings, *answers = frames(fed(codec_of("grpc"), data, piece_bytes))
    assert settings == (SETTINGS, ACK, 0, b"")
    assert streams(answers) == [1, 3, 5]


def test_a_ping_is_echoed_and_an_answer_to_one_is_not() -> None:
    """A PING comes back with its payload and ACK; an ACK, of PING or SETTINGS, is left alone."""
    pings = frame(PING, ACK, 0, b"01234567") + frame(SETTINGS, ACK, 0, b"") + frame(PING, 0, 0, b"abcdefgh")
    assert frames(fed(greeted(), pings)) == [(PING, ACK, 0, b"abcdefgh")]


def test_no_more_is_sent_than_the_client_takes() -> None:
    """Once the client's window of 65,535 bytes is used up, replies wait until it opens."""
    codec, message_bytes = greeted(), 5 + len(REPLY)
    fit = 65_535 // message_bytes
    sent = fed(codec, b"".join(call(2 * number + 1) for number in range(fit + 1)))
    assert streams(frames(sent)) == [2 * number + 1 for number in range(fit)]
    opened = fed(codec, frame(WINDOW_UPDATE, 0, 0, message_bytes.to_bytes(4, "big")))
    assert streams(frames(opened)) == [2 * fit + 1]


def test_the_client_is_given_window_again() -> None:
    """A client's window is given back once it has sent a mebibyte."""
    codec = greeted()
    sent = [frames(fed(codec, call(2 * number + 1, b"\0" * 16_384))) for number in range(64)]
    assert [len(each) for each in sent] == [3] * 63 + [4]
    assert sent[-1][-1] == (WINDOW_UPDATE, 0, 0, (1 << 20).to_bytes(4, "big"))


def test_who_does_not_speak_http2_is_cut_off() -> None:
    """A request of HTTP/1.1 gets nothing but the server's own greeting."""
    with serving("grpc") as where, socket.create_connection(where, WAIT_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"".join(iter(lambda: client.recv(4096), b"")) == HELLO


def test_one_client_that_leaves_disturbs_no_other() -> None:
    """A connection that is reset is dropped, and others are answered."""
    with serving("sockets") as where, socket.create_connection(where, WAIT_S) as staying:
        with socket.create_connection(where, WAIT_S) as leaving:
            leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            leaving.sendall(encode_request(1, 0, LOOKUP.encode(), b""))
        staying.sendall(encode_request(2, 0, LOOKUP.encode(), b""))
        assert reply_decoder().feed(staying.recv(4096)) == [ReplyFrame(2, 0, REPLY)]


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
    """After a connection that cannot be accepted the next client is greeted."""
    with serving("grpc", before) as where, socket.create_connection(where, WAIT_S) as client:
        assert client.recv(len(HELLO)) == HELLO


@pytest.mark.slow  # a process
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_process_contract(stop: signal.Signals) -> None:
    """The first line is ``ready HOST:PORT``; at a signal it ends with exit code 0."""
    command = [sys.executable, "-m", "clients.load.run.null_server", "--transport", "sockets"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        word, where = process.stdout.readline().split()
        with closing(load("sockets").connect(address(where), WAIT_S)) as connection:
            assert (word, connection.call(LOOKUP, b"", WAIT_S)) == ("ready", REPLY)
        process.send_signal(stop)
        assert process.wait(WAIT_S) == 0
