"""Features of our own gRPC server alone: as grpcio's clients see them, and against clients that err."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.wire import http2
from tests.conformance.raw_http2 import RawHttp2
from tests.conformance.running import BLOCK, ECHO, WAIT_S, Kind, Limits, Probe, Running, maker, stopping
from tests.unit.stock_service.rpc.wire import grpc_client_bytes
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import head, message

MAKE = maker(Kind("grpc_static", "leader-followers"))


@contextmanager
def channel(running: Running) -> Iterator[grpc.Channel]:
    """grpcio's, to a server."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"{running.address[0]}:{running.address[1]}", options) as opened:
        yield opened


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


def test_a_call_that_is_cancelled_while_it_waits_is_not_begun() -> None:
    """A reset reaches it before the worker does."""
    probe = Probe()
    with MAKE(probe.service, Limits(workers=1)) as running, probe, RawHttp2(running.address) as client:
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
    with MAKE(Probe().service) as running, RawHttp2(running.address, window_bytes=10) as client:
        client.send(echo(1, bytes(100)))
        assert len(client.until(http2.DATA, 1).payload) == 10
        stop = stopping(running)
        goaway = client.until(http2.GOAWAY)
        assert http2.parse_goaway(goaway.payload)[:2] == (1, http2.ErrorCode.NO_ERROR)
        client.send(echo(3) + http2.window_update(1, 100))
        client.rest()
        received = b"".join(frame.payload for frame in client.frames if frame.kind == http2.DATA)
        assert stop.result()
    assert received == message(bytes(100))


def test_replies_that_nobody_takes_end_the_connection() -> None:
    """A client whose windows stay shut for ``read_timeout_s`` is cut off, and so is one whose call stays half there."""
    limits = Limits(options=ServeOptions(own=ReadOptions(read_timeout_s=0.1)))
    with MAKE(Probe().service, limits) as running:
        with RawHttp2(running.address, window_bytes=0) as shut:
            shut.send(echo(1, b"reply"))
            shut.rest()
            assert [frame.kind for frame in shut.frames if frame.stream] == [http2.HEADERS]
        with RawHttp2(running.address) as half:
            half.send(head(1, ECHO.encode()))
            goaway = half.until(http2.GOAWAY)
            assert http2.parse_goaway(goaway.payload)[1] == http2.ErrorCode.ENHANCE_YOUR_CALM


def test_a_flood_is_cut_off_and_others_are_served() -> None:
    """A thousand resets are the end of one connection, told why."""
    with MAKE(Probe().service) as running, RawHttp2(running.address) as flood:
        reset = (echo(stream) + http2.rst_stream(stream, http2.ErrorCode.CANCEL) for stream in range(1, 6001, 2))
        flood.send(b"".join(reset))
        said = flood.until(http2.GOAWAY)
        assert http2.parse_goaway(said.payload)[1] == http2.ErrorCode.ENHANCE_YOUR_CALM
        assert running.connect().call(ECHO, b"served", WAIT_S) == b"served"
