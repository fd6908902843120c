"""Features of our own gRPC server alone: as grpcio's clients see them, and against clients that err."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire import http2
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Kind, Limits, Probe, Running, maker, stopping
from tests.unit.stock_service.rpc.wire import grpc_client_bytes
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import Frame, head, message

MAKE = maker(Kind("grpc_static", "leader-followers"))


@contextmanager
def channel(running: Running) -> Iterator[grpc.Channel]:
    """grpcio's, to a server."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"{running.address[0]}:{running.address[1]}", options) as opened:
        yield opened


class RawHttp2:
    """A client that sends any frames. No call here waits for longer than ``WAIT_S``."""

    def __init__(self, running: Running, window_bytes: int = http2.WINDOW_DEFAULT) -> None:
        self.socket = socket.create_connection(running.address, WAIT_S)
        self._pending = b""
        self.frames: list[Frame] = []
        self.send(http2.PREFACE + http2.settings((http2.INITIAL_WINDOW_SIZE, window_bytes)))

    def send(self, data: bytes) -> None:
        """Sends all of it."""
        self.socket.sendall(data)

    def until(self, kind: int, stream: int = 0) -> Frame:
        """The first frame of a kind on a stream, among all that came."""
        while True:
            for frame in self.frames:
                if (frame.kind, frame.stream) == (kind, stream):
                    return frame
            assert self._read(), f"closed before a frame {kind}; there were {self.frames}"

    def rest(self) -> list[Frame]:
        """All frames, once the server has closed."""
        while self._read():
            pass
        return self.frames

    def more(self) -> None:
        """Waits until more has come."""
        assert self._read(), f"closed; there were {self.frames}"

    def _read(self) -> bool:
        try:
            data = self.socket.recv(65_536)
        except ConnectionResetError:
            return False
        self._pending += data
        while len(self._pending) >= 9 and len(self._pending) >= 9 + (size := int.from_bytes(self._pending[:3])):
            self.frames += grpc_client_bytes.frames(self._pending[: 9 + size])
            self._pending = self._pending[9 + size :]
        return bool(data)

    def __enter__(self) -> "RawHttp2":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def echo(stream: int, payload: bytes = b"", path: str = ECHO) -> bytes:
    """A call of the probe."""
    return grpc_client_bytes.call(stream, payload, path.encode())


@pytest.mark.parametrize("size", [0, 10, 1_000_000])
def test_gzip_both_ways(size: int) -> None:
    """A compressed message gets a compressed reply. grpcio's client and the handler see plain messages."""
    payload = bytes(size)
    with MAKE(Probe().service) as running, channel(running) as opened:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = opened.unary_unary(ECHO)
        assert call(payload, WAIT_S, compression=grpc.Compression.Gzip) == payload
        assert call(payload, WAIT_S) == payload


def test_what_unpacks_to_too_much_is_refused() -> None:
    """A message of a few kilobytes may not become one of a gigabyte."""
    limits = Limits(options=ServeOptions(frame_bytes_max=10_000))
    with MAKE(Probe().service, limits) as running, channel(running) as opened:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = opened.unary_unary(ECHO)
        with pytest.raises(grpc.RpcError) as caught:
            call(bytes(1_000_000), WAIT_S, compression=grpc.Compression.Gzip)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("at_a_time", [1, 16])
def test_much_metadata_is_served(at_a_time: int) -> None:
    """New metadata of 15 KiB with each call is served, and is not a flood. 20 KiB are refused by name, and the
    connection stays."""
    with MAKE(Probe().service) as running, channel(running) as opened:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = opened.unary_unary(ECHO)
        for number in range(0, 160, at_a_time):
            begun = [
                call.future(b"%d" % each, WAIT_S, metadata=(("x-long", f"{each}" + "x" * 15_000),))
                for each in range(number, number + at_a_time)
            ]
            assert [each.result() for each in begun] == [b"%d" % each for each in range(number, number + at_a_time)]
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", WAIT_S, metadata=(("x-long", "x" * 20_000),))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert call(b"after", WAIT_S) == b"after"


def test_grpcio_on_asyncio() -> None:
    """grpcio's asyncio client makes a hundred calls at a time on one connection."""

    async def calls(target: str) -> list[bytes]:
        async with grpc.aio.insecure_channel(target) as opened:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = opened.unary_unary(ECHO)
            return list(await asyncio.gather(*(call(b"%d" % number, timeout=WAIT_S) for number in range(100))))

    with MAKE(Probe().service, Limits(queue_limit=100)) as running:
        replies = asyncio.run(calls(f"{running.address[0]}:{running.address[1]}"))
    assert replies == [b"%d" % number for number in range(100)]


def test_a_call_that_is_cancelled_while_it_waits_is_not_begun() -> None:
    """A reset reaches it before the worker does."""
    probe = Probe()
    with MAKE(probe.service, Limits(workers=1)) as running, probe, RawHttp2(running) as client:
        client.send(echo(1, b"held", BLOCK))
        probe.entered()
        client.send(echo(3, b"cancelled", BLOCK) + http2.rst_stream(3, http2.ErrorCode.CANCEL) + echo(5, b"", BLOCK))
        client.send(http2.frame(http2.PING, 0, 0, bytes(8)))
        client.until(http2.PING)
        probe.released.set()
        client.until(http2.HEADERS, 5)
    assert probe.begun == [b"held", b""]


def test_a_reply_that_is_held_leaves_before_the_server_does() -> None:
    """A stop tells the client GOAWAY, and reads its wider windows until it has everything; its next call is ignored."""
    with MAKE(Probe().service) as running, RawHttp2(running, window_bytes=10) as client:
        client.send(echo(1, bytes(100)))
        assert len(client.until(http2.DATA, 1).payload) == 10
        stop = stopping(running)
        goaway = client.until(http2.GOAWAY)
        assert http2.parse_goaway(goaway.payload)[:2] == (1, http2.ErrorCode.NO_ERROR)
        client.send(echo(3) + http2.window_update(1, 100))
        received = b"".join(frame.payload for frame in client.rest() if frame.kind == http2.DATA)
        assert stop.result()
    assert received == message(bytes(100))


def test_replies_that_nobody_takes_end_the_connection() -> None:
    """A client whose windows stay shut for ``read_timeout_s`` is cut off, and so is one whose call stays half there."""
    limits = Limits(options=ServeOptions(own=ReadOptions(read_timeout_s=0.1)))
    with MAKE(Probe().service, limits) as running:
        with RawHttp2(running, window_bytes=0) as shut:
            shut.send(echo(1, b"reply"))
            assert [frame.kind for frame in shut.rest() if frame.stream] == [http2.HEADERS]
        with RawHttp2(running) as half:
            half.send(head(1, ECHO.encode()))
            goaway = half.until(http2.GOAWAY)
            assert http2.parse_goaway(goaway.payload)[1] == http2.ErrorCode.ENHANCE_YOUR_CALM


OTHER_PROTOCOLS = {
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 4,
}


@pytest.mark.parametrize("words", OTHER_PROTOCOLS.values(), ids=OTHER_PROTOCOLS.keys())
def test_another_protocol_is_told_goaway(words: bytes) -> None:
    """HTTP/1.1 and TLS are not taken for HTTP/2."""
    with MAKE(Probe().service) as running:
        with socket.create_connection(running.address, WAIT_S) as client:
            client.sendall(words)
            received = b""
            while piece := client.recv(4096):
                received += piece
        kinds = [frame.kind for frame in grpc_client_bytes.frames(received)]
        assert kinds[-1] == http2.GOAWAY
        assert running.connect().call(ECHO, b"after", WAIT_S) == b"after"


def test_a_flood_is_cut_off_and_others_are_served() -> None:
    """A thousand resets are the end of one connection, told why."""
    with MAKE(Probe().service) as running, RawHttp2(running) as flood:
        reset = (echo(stream) + http2.rst_stream(stream, http2.ErrorCode.CANCEL) for stream in range(1, 6001, 2))
        flood.send(b"".join(reset))
        said = flood.until(http2.GOAWAY)
        assert http2.parse_goaway(said.payload)[1] == http2.ErrorCode.ENHANCE_YOUR_CALM
        assert running.connect().call(ECHO, b"served", WAIT_S) == b"served"
