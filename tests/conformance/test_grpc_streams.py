"""Streams, which our own gRPC server alone carries: methods of several replies, and words beside a reply."""

import gc
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue

from stock_service.rpc.call import Call
from stock_service.rpc.errors import FaultCode, InvalidRequest, Overloaded
from stock_service.rpc.metrics import Metrics
from stock_service.rpc.process.credentials import make as make_credentials
from stock_service.rpc.security import Access, Right
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.service import Method, Service, StreamMethod
from stock_service.rpc.tls import read_token
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.grpc_calls import Progress
from stock_service.rpc.wire.grpc_heads import Head
from stock_service.rpc.wire.grpc_heads import Kind as Kinds
from tests.conformance.raw_http2 import RawHttp2
from tests.conformance.running import WAIT_S, Kind, Limits, maker, until
from tests.conformance.test_grpc_static import channel, echo
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import data, head, message

MAKE = maker(Kind("grpc_static", "leader-followers"))

COUNT, TALK, SAY = (f"/tests.v1.Streams/{name}" for name in ("Count", "Talk", "Say"))

LATE = 9
"""A request's byte for which the method waits until the client's time is up."""

METADATA = (("text", "a text"), ("bytes-bin", b"\x00\xff"), ("text", "again"))


class Streams:
    """``Count`` replies with as many messages as its request has bytes. All say back the metadata of the call."""

    def __init__(self) -> None:
        self.begun = 0
        self.closed = threading.Event()
        streams = {
            COUNT: StreamMethod(BytesValue, BytesValue, self._count),
            TALK: StreamMethod(BytesValue, BytesValue, self._count, talks=True),
        }
        self.service = Service(
            "tests.v1.Streams", {SAY: Method(BytesValue, BytesValue, self._say, True)}, streams=streams
        )

    def _count(self, request: BytesValue, call: Call) -> Iterator[BytesValue]:
        self._beside(call)
        try:
            for number, byte in enumerate(request.value):
                if byte == 0:
                    raise Overloaded("no more")
                if byte == LATE and call.deadline_ns is not None:
                    threading.Event().wait((call.deadline_ns - time.monotonic_ns()) / 1e9 + 0.001)
                self.begun += 1
                yield BytesValue(value=b"%d" % number * byte)
        finally:
            self.closed.set()

    def _say(self, request: BytesValue, call: Call) -> BytesValue:
        self._beside(call)
        if request.value == b"fault":
            raise InvalidRequest("as told")
        return request

    def _beside(self, call: Call) -> None:
        assert call.reply is not None
        call.reply.initial += [pair for pair in call.metadata if pair[0] != "user-agent"]
        call.reply.trailing.append(("grpc-status-details-bin", b"\x08\x03"))
        if ("wrong", "") in call.metadata:
            call.reply.trailing.append(("grpc-status", "0"))


def said(metadata: object) -> list[tuple[str, str | bytes]]:
    """The answer that grpcio's client was told."""
    return [(name, value) for name, value in metadata or ()]  # type: ignore[attr-defined]


def encoded(value: bytes) -> bytes:
    """A message."""
    data: bytes = BytesValue(value=value).SerializeToString()
    return data


def test_metadata_both_ways() -> None:
    """A method sends metadata before its reply and after it. A fault has metadata and the status' details, too."""
    with MAKE(Streams().service) as running, channel(running) as opened:
        say: grpc.UnaryUnaryMultiCallable[bytes, bytes] = opened.unary_unary(SAY)
        reply, call = say.with_call(encoded(b"reply"), WAIT_S, metadata=METADATA)
        assert reply == encoded(b"reply")
        assert said(call.initial_metadata()) == list(METADATA)
        assert said(call.trailing_metadata()) == [("grpc-status-details-bin", b"\x08\x03")]
        with pytest.raises(grpc.RpcError) as caught:
            say(encoded(b"fault"), WAIT_S, metadata=METADATA)
        assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, "as told")
        assert said(cast(grpc.Call, caught.value).initial_metadata()) == list(METADATA)
        assert said(caught.value.trailing_metadata()) == [("grpc-status-details-bin", b"\x08\x03")]


def test_metadata_that_cannot_be_sent_is_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    """A method that would say a status of its own has failed, and the log says why."""
    with MAKE(Streams().service) as running, channel(running) as opened:
        say: grpc.UnaryUnaryMultiCallable[bytes, bytes] = opened.unary_unary(SAY)
        with pytest.raises(grpc.RpcError) as caught:
            say(encoded(b"reply"), WAIT_S, metadata=(("wrong", ""),))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "grpc-status" in caplog.text
    caplog.clear()


def test_several_replies() -> None:
    """Replies come in order, with metadata, then the end. A fault ends them, and so does a time limit. Several requests
    are answered in turn. Each call is counted by its end."""
    streams, metrics = Streams(), Metrics()
    with MAKE(streams.service.counted(metrics)) as running:
        with channel(running) as opened:
            count: grpc.UnaryStreamMultiCallable[bytes, bytes] = opened.unary_stream(COUNT)
            talk: grpc.StreamStreamMultiCallable[bytes, bytes] = opened.stream_stream(TALK)
            replies = count(encoded(b"\x01\x02\x03"), WAIT_S, metadata=METADATA)
            assert [BytesValue.FromString(reply).value for reply in replies] == [b"0", b"11", b"222"]
            assert said(replies.initial_metadata()) == list(METADATA)
            assert said(replies.trailing_metadata()) == [("grpc-status-details-bin", b"\x08\x03")]
            assert not list(count(encoded(b""), WAIT_S))
            broken = count(encoded(b"\x01\x00\x01"), WAIT_S)
            assert next(broken) == encoded(b"0")
            with pytest.raises(grpc.RpcError) as caught:
                next(broken)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            with pytest.raises(grpc.RpcError) as caught:
                list(count(b"\xff", WAIT_S))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            replies = talk(iter([encoded(b"\x01"), encoded(b""), encoded(b"\x01\x01")]), WAIT_S)
            assert [BytesValue.FromString(reply).value for reply in replies] == [b"0", b"0", b"1"]
        with RawHttp2(running.address) as client:
            begun, sent = streams.begun, encoded(bytes([1, LATE, 1, 1]))
            client.send(head(1, COUNT.encode(), grpc_timeout="50m") + data(1, message(sent)))
            assert client.status(1) == FaultCode.DEADLINE_EXCEEDED
            assert b"not ended within 50 ms" in client.frames[-1].payload
            assert streams.begun <= begun + 2, "a reply was made after the client's time"
    faults = {"RESOURCE_EXHAUSTED": 1, "INVALID_ARGUMENT": 1, "DEADLINE_EXCEEDED": 1}
    assert counted(metrics) == {COUNT: {"OK": 2, **faults}, TALK: {"OK": 3}, SAY: {}}


def test_replies_that_the_client_does_not_take_are_not_made() -> None:
    """With the client's window shut two replies are begun, no worker is held, and another client is served. A cancelled
    call is closed, and counted."""
    streams, metrics = Streams(), Metrics()
    with (
        MAKE(streams.service.counted(metrics), Limits(workers=1)) as running,
        RawHttp2(running.address, window_bytes=10) as client,
    ):
        client.send(echo(1, encoded(b"\x01" * 200), COUNT))
        assert client.until(http2.DATA, 1).payload
        assert running.connect().call(SAY, encoded(b"served"), WAIT_S) == encoded(b"served")
        assert streams.begun == 2
        assert counted(metrics)[COUNT] == {}
        client.send(http2.rst_stream(1, http2.ErrorCode.CANCEL) + http2.frame(http2.PING, 0, 0, bytes(8)))
        client.until(http2.PING)
        gc.collect()
        assert streams.closed.wait(WAIT_S)
        until(lambda: counted(metrics)[COUNT] == {"CANCELLED": 1}, "its end is counted")
        client.send(echo(3, encoded(b"\x01"), COUNT) + http2.window_update(3, 100))
        assert client.until(http2.DATA, 3).payload


def test_a_stream_needs_its_right(tmp_path: Path) -> None:
    """Streams need rights as methods do. A stream without a declared right needs an admin's."""
    make_credentials(tmp_path / "own")
    streams, table = Streams(), {"": (16, 16, 0), "trader": (7, 0, 0), "admin": (0, 0, 0)}
    open_to = {f"{COUNT}For{right.name}": right for right in (Right.TRADER, Right.ANYONE)}
    count = streams.service.streams[COUNT]
    others = {path: replace(count, right=right) for path, right in open_to.items()}
    service = replace(streams.service, streams={COUNT: count, **others})
    limits = Limits(options=ServeOptions(access=Access(tmp_path / "own" / "access.toml")))
    with MAKE(service, limits) as running, channel(running) as opened:
        for caller, expected in table.items():
            shown = f"Bearer {read_token(tmp_path / 'own' / f'{caller}.token')}" if caller else ""
            metadata = (("authorization", shown),) if shown else ()
            begun = streams.begun
            codes = tuple(ended(opened, path, metadata) for path in (COUNT, *open_to))
            assert (caller, codes) == (caller, expected)
            assert streams.begun - begun == 2 * codes.count(0)


def ended(opened: grpc.Channel, path: str, metadata: tuple[tuple[str, str], ...]) -> int:
    """The status of a call of two replies."""
    count: grpc.UnaryStreamMultiCallable[bytes, bytes] = opened.unary_stream(path)
    try:
        assert len(list(count(encoded(b"\x01\x01"), WAIT_S, metadata=metadata))) == 2
    except grpc.RpcError as error:
        return int(error.code().value[0])
    return 0


def counted(metrics: Metrics) -> dict[str, dict[str, int]]:
    """Counts of requests by method and outcome."""
    return {path: {k: v for k, v in meter.outcomes().items() if v} for path, meter in metrics.meters.items()}


def test_a_call_that_is_begun_too_late_is_counted() -> None:
    """A call that begins too late is counted once under its fault, with one reply or several."""
    streams, metrics = Streams(), Metrics()
    plain = Method(BytesValue, BytesValue, lambda request: request)
    service = replace(streams.service, methods={SAY: plain}).counted(metrics)
    protocol = GrpcRequests(service, methods_of(service), 1000, 10)
    for path, kind in ((SAY, Kinds.UNARY), (COUNT, Kinds.REPLIES)):
        late = Head(path.encode(), kind, 1)
        progress = None if kind is Kinds.UNARY else Progress()
        assert b"not begun within 1 ms" in protocol.answer((late, 1, b"", 0, {1: 0}, progress), 1, ("127.0.0.1", 1))
    assert counted(metrics) == {SAY: {"DEADLINE_EXCEEDED": 1}, COUNT: {"DEADLINE_EXCEEDED": 1}, TALK: {}}
