"""The connection over a codec, on real sockets: timeouts, faults, connecting anew, and no request sent twice."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from stock_service.rpc.codec_connection import CodecConnection
from stock_service.rpc.errors import DeadlineExceeded, Overloaded, Unavailable
from stock_service.rpc.transports.sockets.frame_codec import SocketCodec
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import RequestFrame, encode_reply, request_decoder
from stock_service.rpc.wire.http2 import ErrorCode, frame
from tests.unit.stock_service.rpc.scripted_server import WAIT_S, Peer, Scripted
from tests.unit.stock_service.rpc.wire.grpc_server_bytes import BEGIN, PATH

pytestmark = pytest.mark.usefixtures("no_leaks")

SHORT_S = 0.05


@pytest.fixture
def serve() -> Iterator[Callable[..., Scripted]]:
    """Starts a scripted server, whose scripts must be over when the test is."""
    started: list[Scripted] = []

    def start(*scripts: Callable[[Peer], None]) -> Scripted:
        started.append(Scripted(*scripts))
        return started[-1]

    yield start
    for each in started:
        each.finish()


Serve = Callable[..., Scripted]


def replies(*messages: bytes) -> Callable[[Peer], None]:
    """A script that answers requests in sequence, and then closes."""

    def script(peer: Peer) -> None:
        for message in messages:
            peer.reply(message)

    return script


def test_what_the_protocol_says_goes_with_the_next_request(serve: Serve) -> None:
    """A PING with a reply is answered in front of the next request, before a further receive."""
    ping = frame(http2.PING, 0, 0, b"question")

    def script(peer: Peer) -> None:
        peer.reply(b"1", before=ping)
        peer.reply(b"2")

    server = serve(script)
    with closing(server.connect()) as connection:
        assert [connection.call(PATH, b"", WAIT_S) for _ in range(2)] == [b"1", b"2"]
    server.finish()
    acks = [each for each in server.peers[0].others if each[1] == http2.ACK]
    assert (http2.PING, http2.ACK, 0, b"question") in acks


def test_a_ping_before_the_reply_is_answered_at_once(serve: Serve) -> None:
    """A PING is answered while a call waits. A server without an answer would close the connection."""

    def script(peer: Peer) -> None:
        call = peer.request()
        peer.socket.sendall(frame(http2.PING, 0, 0, b"question"))
        while peer.frame() != (http2.PING, http2.ACK, 0, b"question"):
            pass
        peer.socket.sendall(peer.server.reply(call, b"1"))

    with closing(serve(script).connect()) as connection:
        assert connection.call(PATH, b"", WAIT_S) == b"1"


def test_a_deadline(serve: Serve) -> None:
    """Without a reply in time the server learns that the call is given up, the connection goes on, and the late reply
    is dropped."""

    def script(peer: Peer) -> None:
        call = peer.request()
        while peer.frame() != (http2.RST_STREAM, 0, call, b"\0\0\0\x08"):
            pass
        following = peer.request()
        peer.socket.sendall(peer.server.reply(call, b"late") + peer.server.reply(following, b"good"))

    with closing(serve(script).connect()) as connection:
        with pytest.raises(DeadlineExceeded, match=r"no reply from 127\.0\.0\.1:\d+ within 0\.05 s"):
            connection.call(PATH, b"1", SHORT_S)
        assert connection.call(PATH, b"2", WAIT_S) == b"good"


class Forgetful(SocketCodec):
    """A codec that still gives the reply to a call that was given up."""

    def abandon(self, call: int) -> bytes:
        return b""


def test_the_late_reply_of_another_codec() -> None:
    """The late reply that a codec gives to a call that was given up is not the next call's reply."""

    def serve_frames() -> None:
        decoder, asked = request_decoder(), list[RequestFrame]()
        with listener.accept()[0] as accepted:
            while len(asked) < 2:
                asked += decoder.feed(accepted.recv(65536))
            last = encode_reply(2, 0, b"good")
            accepted.sendall(encode_reply(1, 0, b"late") + last[:-2])
            accepted.sendall(last[-2:])

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        served, address = threads.submit(serve_frames), listener.getsockname()
        with closing(CodecConnection(address, partial(Forgetful, address)).open(WAIT_S)) as connection:
            with pytest.raises(DeadlineExceeded):
                connection.call(PATH, b"a", SHORT_S)
            assert connection.call(PATH, b"b", WAIT_S) == b"good"
        served.result(WAIT_S)


def test_a_deadline_while_pieces_keep_coming(serve: Serve) -> None:
    """A server that sends a bit now and then does not put the deadline off."""
    given_up = threading.Event()

    def script(peer: Peer) -> None:
        call = peer.request()
        peer.socket.sendall(peer.server.headers(call, BEGIN))
        while not given_up.wait(SHORT_S / 10):
            peer.socket.sendall(frame(http2.PING, http2.ACK, 0, bytes(8)))

    with closing(serve(script).connect()) as connection:
        with pytest.raises(DeadlineExceeded):
            connection.call(PATH, b"1", SHORT_S)
        given_up.set()


def test_a_server_that_closes(serve: Serve) -> None:
    """When the server closes, the call under way is Unavailable, and the next one connects anew. No request is sent
    twice."""

    def leave(peer: Peer) -> None:
        peer.reply(b"1")
        peer.request()

    server = serve(leave, replies(b"3"))
    with closing(server.connect()) as connection:
        assert connection.call(PATH, b"a", WAIT_S) == b"1"
        with pytest.raises(Unavailable, match=r"connection to 127\.0\.0\.1:\d+ lost"):
            connection.call(PATH, b"b", WAIT_S)
        assert connection.call(PATH, b"c", WAIT_S) == b"3"
    server.finish()
    assert server.requests == [b"a", b"b", b"c"]


def test_a_server_that_breaks_the_protocol(serve: Serve) -> None:
    """The server is told why, the call is Unavailable, and the next call connects anew."""
    said: list[tuple[int, int, int, bytes]] = []

    def script(peer: Peer) -> None:
        peer.request()
        peer.socket.sendall(frame(http2.PING, 0, 7, bytes(8)))
        while not said or said[-1][0] != http2.GOAWAY:
            said.append(peer.frame())

    server = serve(script, replies(b"2"))
    with closing(server.connect()) as connection:
        with pytest.raises(Unavailable, match="frame 6 on stream 7"):
            connection.call(PATH, b"a", WAIT_S)
        assert connection.call(PATH, b"b", WAIT_S) == b"2"
    assert http2.parse_goaway(said[-1][3])[1] == ErrorCode.PROTOCOL_ERROR


def test_a_fault_keeps_the_connection(serve: Serve) -> None:
    """A refused call leaves the connection open: the next call is answered on the same connection."""

    def script(peer: Peer) -> None:
        fields = [*BEGIN, (b"grpc-status", b"8"), (b"grpc-message", b"full")]
        peer.socket.sendall(peer.server.trailers(peer.request(), fields))
        peer.reply(b"2")

    with closing(serve(script).connect()) as connection:
        with pytest.raises(Overloaded, match="full"):
            connection.call(PATH, b"a", WAIT_S)
        assert connection.call(PATH, b"b", WAIT_S) == b"2"


def test_a_call_that_a_stopping_server_refuses(serve: Serve) -> None:
    """The protocol's own bytes are sent at once. The connection is closed, so that the stop need not wait for it.
    The next call connects anew."""
    said: list[tuple[int, int, int, bytes]] = []

    def stop(peer: Peer) -> None:
        refused = peer.server.trailers(peer.request(), [*BEGIN, (b"grpc-status", b"14")])
        peer.socket.sendall(frame(http2.PING, 0, 0, b"graceful") + refused)
        with contextlib.suppress(EOFError):
            while True:
                said.append(peer.frame())

    server = serve(stop, replies(b"2"))
    with closing(server.connect()) as connection:
        with pytest.raises(Unavailable):
            connection.call(PATH, b"a", WAIT_S)
        assert connection.call(PATH, b"b", WAIT_S) == b"2"
    assert (http2.PING, http2.ACK, 0, b"graceful") in said
