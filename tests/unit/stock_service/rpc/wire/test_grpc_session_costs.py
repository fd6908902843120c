"""Costs of a call on a gRPC server's connection are paid by the call: no honest client is taken for a flood."""

import gzip

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.http2 import ErrorCode
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import (
    MESSAGE_BYTES_MAX,
    PATH,
    TALKED,
    Talk,
    call,
    data,
    fields,
    head,
    message,
)


@pytest.mark.parametrize("size", [16_300, 30_000, 60_000])
@pytest.mark.parametrize("shut", [False, True])
def test_a_header_list_that_is_too_long_is_refused_alone(size: int, shut: bool) -> None:
    """A header list that is too long is refused by name, also in several frames, again and again. Calls beside it are
    served."""
    talk = Talk()
    long = encode_block([*fields(), (b"x-long", b"x" * size)])
    for stream in range(1, 41, 4):
        assert not talk.send(http2.headers(stream, b"\x20" * shut + long, False), data(stream, message(b"")))
        status, detail = talk.status(talk.said())
        assert (status, "16384" in detail) == (FaultCode.RESOURCE_EXHAUSTED, True)
        (request,) = talk.send(call(stream + 2))
        assert talk.reply(request, b"")
    assert talk.broken_by is None


@pytest.mark.parametrize("at_a_time", [1, 8])
def test_a_client_of_much_metadata_is_no_flood(at_a_time: int) -> None:
    """New metadata of 15 KiB with each of 2,000 calls is not refused, in no time."""
    talk, stream = Talk(), 1
    for number in range(0, 2000, at_a_time):
        sent = b""
        for each in range(at_a_time):
            sent += call(stream + 2 * each, b"", x_number=f"{number + each}", x_long=f"{number + each}" + "x" * 15_000)
        requests = talk.send(sent)
        assert len(requests) == at_a_time
        assert all(talk.reply(request, b"") for request in requests)
        stream += 2 * at_a_time
    assert (talk.broken_by, talk.said()) == (None, [])


def test_calls_of_much_metadata_may_be_cancelled() -> None:
    """A client may cancel all its open calls with much metadata now and then, without being a flood."""
    talk = Talk()
    for stream in range(1, 1601, 32):
        streams = range(stream, stream + 16, 2)
        talk.send(*(call(each, x_long=f"{each}" + "x" * 15_000) for each in streams))
        talk.send(*(http2.rst_stream(each, ErrorCode.CANCEL) for each in streams))
        for each in range(stream + 16, stream + 32, 2):
            (request,) = talk.send(call(each, x_long=f"{each}" + "x" * 15_000))
            assert talk.reply(request, b"")
        talk.now_ns += 10**9 // 4
    assert talk.broken_by is None


def test_a_client_whose_headers_differ_pays_its_debt() -> None:
    """A client that widens 17 windows beside calls with new blocks is read with all others again after some calls."""
    talk = Talk()
    talk.send(*[http2.window_update(0, 1)] * 30)
    for stream in range(1, 101, 2):
        (request,) = talk.send(call(stream, traceparent=f"{stream:055}") + http2.window_update(0, 1))
        assert talk.reply(request, b"")
    toils = [talk.session.toils]
    talk.send(*[http2.window_update(0, 1)] * 600)
    toils.append(talk.session.toils)
    for stream in range(101, 501, 2):
        (request,) = talk.send(call(stream, traceparent=f"{stream:055}"))
        assert talk.reply(request, b"")
    assert [*toils, talk.session.toils] == [False, True, False]


def zipped(size: int) -> bytes:
    """A message that unfolds to this number of bytes."""
    return message(gzip.compress(bytes(size)), 1)


@pytest.mark.parametrize("path", [PATH, TALKED])
def test_what_unfolds_to_much_toils(path: bytes) -> None:
    """A small message that unfolds to much is answered at low priority. One that unfolds to little is read with all
    others."""
    for size, toils in ((1000, False), (MESSAGE_BYTES_MAX, True)):
        talk = Talk()
        for stream in range(1, 41, 2):
            (request,) = talk.send(head(stream, path, grpc_encoding="gzip"), data(stream, zipped(size), path == PATH))
            talk.reply(request, b"")
            talk.send(http2.rst_stream(stream, ErrorCode.CANCEL) if path == TALKED else b"")
        assert talk.session.toils == toils
        assert talk.broken_by is None


@pytest.mark.parametrize("path", [PATH, TALKED])
def test_unfolding_takes_as_long_as_a_message_can_be(path: bytes) -> None:
    """Unfolding counts a nanosecond a byte, up to the limit. A message that is marked and too short for it counts
    nearly nothing."""
    talk, took_ns, short = Talk(), [], message(b"\x1f\x8b\x08\x00" + (1 << 20).to_bytes(4, "little"), 1)
    for stream, body in ((1, zipped(1 << 20)), (3, short)):
        talk.send(head(stream, path, grpc_encoding="gzip") + data(stream, body, path == PATH))
        took_ns.append(talk.session.later_ns)
    talk.send(call(5))
    assert took_ns == [MESSAGE_BYTES_MAX // 4096 * 4096, 8 * 1032 // 4096 * 4096]
    assert not talk.session.later_ns
