"""Documented behaviour of ``grpc.ServicerContext`` for unary methods, on grpcio and on ours."""

import threading
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from hpack import Decoder

from stock_service.rpc.wire import http2
from tests.conformance.running import WAIT_S, Running, until
from tests.conformance.servicers import SERVERS, UNARY, Code, Make, calling, channel, failed, noted, started, unary
from tests.conformance.test_grpc_static import RawHttp2
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import call as whole_call


def outcome(make: Make, behaviour: Callable[[Any, Any], Any], **given: Any) -> tuple[Code, str]:
    """Status and text of one call."""
    with calling(make, unary(behaviour), **given) as opened:
        call: Any = opened.unary_unary(UNARY).future(b"asked", WAIT_S)
        return call.code(), call.details()


# ---- the call


def test_a_handler_gets_request_and_context(make: Make) -> None:
    """It gives back the reply."""
    with calling(make, unary(lambda request, context: request + str(context.is_active()).encode())) as opened:
        assert opened.unary_unary(UNARY)(b"asked ", WAIT_S) == b"asked True"


def coded(deserializer: Any, serializer: Any) -> Any:
    """A method that adds to a number, with these."""
    return {"Unary": grpc.unary_unary_rpc_method_handler(lambda asked, _: asked + 1, deserializer, serializer)}


def test_serializers(make: Make) -> None:
    """A handler's own are used."""
    with calling(make, coded(int, lambda number: b"%d" % number)) as opened:
        assert opened.unary_unary(UNARY)(b"41", WAIT_S) == b"42"


def test_a_reply_that_cannot_be_encoded(make: Make) -> None:
    """It is INTERNAL."""
    with calling(make, coded(float, lambda _: 1 / 0)) as opened:
        assert failed(lambda: opened.unary_unary(UNARY)(b"41", WAIT_S)).code() is Code.INTERNAL


def test_a_request_that_cannot_be_decoded() -> None:
    """It is INTERNAL; on grpcio too, which then leaves descriptors open."""
    with calling(SERVERS["ours"], coded(float, bytes)) as opened:
        assert failed(lambda: opened.unary_unary(UNARY)(b"none", WAIT_S)).code() is Code.INTERNAL


def test_invocation_metadata(make: Make) -> None:
    """Pairs with names, in their order, bytes too; a token as well."""
    told: list[Any] = []
    sent = (("a", "1"), ("b-bin", b"\x00\xff"), ("a", "2"), ("authorization", "Bearer of-a-token-of-mine"))
    with calling(make, unary(lambda request, context: noted(told, context.invocation_metadata(), request))) as opened:
        opened.unary_unary(UNARY)(b"", WAIT_S, metadata=sent)
    assert [tuple(each) for each in told[0] if each.key != "user-agent"] == list(sent)
    assert "grpc-python" in next(each.value for each in told[0] if each.key == "user-agent")


def test_peer_and_its_identity(make: Make) -> None:
    """The address of a connection in the clear; no identity."""
    told: list[Any] = []

    def tell(request: bytes, context: Any) -> bytes:
        told[:] = [context.peer(), context.peer_identities(), context.peer_identity_key(), context.auth_context()]
        return request

    with calling(make, unary(tell)) as opened:
        opened.unary_unary(UNARY)(b"", WAIT_S)
    assert told[0].startswith("ipv4:127.0.0.1:")
    assert told[1:3] == [None, None]
    assert told[3] == {"transport_security_type": [b"insecure"], "security_level": [b"TSI_SECURITY_NONE"]}


def test_time_remaining(make: Make) -> None:
    """Of a call with a deadline its rest; of another one very much."""
    told: list[float] = []
    with calling(make, unary(lambda request, context: noted(told, context.time_remaining(), request))) as opened:
        opened.unary_unary(UNARY)(b"", WAIT_S)
        opened.unary_unary(UNARY)(b"")
    assert 0 < told[0] < WAIT_S + 1
    assert told[1] > 1e9


@pytest.mark.parametrize("ends", ["cancel", "deadline", "close"])
def test_a_callback_and_is_active_tell_the_end(make: Make, ends: str) -> None:
    """Of a call that its client gives up, while its handler runs; a callback comes late then."""
    begun, ended, told = threading.Event(), threading.Event(), list[Any]()

    def handle(request: bytes, context: Any) -> bytes:
        told.append(context.add_callback(ended.set))
        begun.set()
        told.append(ended.wait(WAIT_S))
        until(lambda: not context.is_active(), "the context hears of the end")
        told.append(context.add_callback(ended.set))
        return request

    with started(make, unary(handle)) as (_, address):
        with channel(address) as opened:
            call = opened.unary_unary(UNARY).future(b"", 0.15 if ends == "deadline" else WAIT_S)
            assert begun.wait(WAIT_S)
            if ends == "cancel":
                call.cancel()
            if ends != "close":
                until(lambda: len(told) == 3, "the handler ends")
        until(lambda: len(told) == 3, "the handler ends")
    assert told == [True, True, False]


def test_a_callback_after_the_reply(make: Make) -> None:
    """It is called once, also where one before it raises."""
    called = threading.Semaphore(0)

    def handle(request: bytes, context: Any) -> bytes:
        context.add_callback(lambda: 1 / 0)
        context.add_callback(called.release)
        return request

    with calling(make, unary(handle)) as opened:
        opened.unary_unary(UNARY)(b"", WAIT_S)
        assert called.acquire(timeout=WAIT_S)
        assert not called.acquire(timeout=0.05)


def test_cancel(make: Make) -> None:
    """A handler that cancels its call has it end with CANCELLED."""
    assert outcome(make, lambda _, context: context.cancel() or b"")[0] is Code.CANCELLED


# ---- the status


def test_code_and_details(make: Make) -> None:
    """What a handler sets is what it is told, and what its client gets."""
    told: list[Any] = []

    def handle(request: bytes, context: Any) -> bytes:
        told.extend((context.code(), context.details(), context.trailing_metadata()))
        context.set_code(Code.ALREADY_EXISTS)
        context.set_details("née")
        told.extend((context.code(), context.details()))
        return request

    assert outcome(make, handle) == (Code.ALREADY_EXISTS, "née")
    assert told == [None, None, None, Code.ALREADY_EXISTS, "née".encode()]


def test_a_code_that_is_none(make: Make) -> None:
    """It is UNKNOWN."""
    assert outcome(make, lambda _, context: context.set_code("no code") or b"")[0] is Code.UNKNOWN


def test_abort(make: Make) -> None:
    """It raises, and ends the call with its status, all but OK."""
    told: list[type] = []

    def handle(code: Code) -> Callable[[Any, Any], Any]:
        def aborts(_: bytes, context: Any) -> None:
            try:
                context.abort(code, "for a reason")
            except Exception as error:
                told.append(type(error))
                raise

        return aborts

    assert outcome(make, handle(Code.FAILED_PRECONDITION)) == (Code.FAILED_PRECONDITION, "for a reason")
    assert outcome(make, handle(Code.OK)) == (Code.UNKNOWN, "")
    assert told == [Exception, Exception]


def test_abort_with_status(make: Make) -> None:
    """It sends the status' metadata as well."""
    trailing = (("grpc-status-details-bin", b"\x08\x03"),)
    status = SimpleNamespace(code=Code.DATA_LOSS, details="gone", trailing_metadata=trailing)
    with calling(make, unary(lambda _, context: context.abort_with_status(status))) as opened:
        error = failed(lambda: opened.unary_unary(UNARY)(b"", WAIT_S))
    assert (error.code(), error.details(), tuple(map(tuple, error.trailing_metadata()))) == (
        Code.DATA_LOSS,
        "gone",
        trailing,
    )


def test_what_a_handler_raises(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """It is UNKNOWN with its text, or the status that was set before."""

    def raises(*_: object) -> None:
        raise RuntimeError("planted")

    def set_before(_: bytes, context: Any) -> None:
        context.set_code(Code.OUT_OF_RANGE)
        raise RuntimeError("planted")

    assert outcome(make, raises) == (Code.UNKNOWN, "Exception calling application: planted")
    assert outcome(make, set_before) == (Code.OUT_OF_RANGE, "Exception calling application: planted")
    assert "planted" in caplog.text


# ---- metadata of the reply


def test_initial_metadata_leaves_at_once(make: Make) -> None:
    """It may be sent once; the reply comes after it, when it is there."""
    told, goes_on = list[Exception](), threading.Event()
    sent = (("a", "1"), ("b-bin", b"\x00\xff"))

    def handle(request: bytes, context: Any) -> bytes:
        context.send_initial_metadata(sent)
        try:
            context.send_initial_metadata(sent)
        except ValueError as error:
            told.append(error)
        assert goes_on.wait(WAIT_S)
        return request

    with calling(make, unary(handle)) as opened:
        call: Any = opened.unary_stream(UNARY)(b"asked", WAIT_S)  # a client that need not have the reply first
        assert tuple(map(tuple, call.initial_metadata())) == sent
        goes_on.set()
        assert next(call) == b"asked"
    assert len(told) == 1


def test_initial_metadata_before_a_fault(make: Make) -> None:
    """Both come."""

    def handle(_: bytes, context: Any) -> None:
        context.send_initial_metadata((("a", "1"),))
        context.abort(Code.NOT_FOUND, "none")

    with calling(make, unary(handle)) as opened:
        call: Any = opened.unary_unary(UNARY).future(b"", WAIT_S)
        assert (call.code(), tuple(map(tuple, call.initial_metadata()))) == (Code.NOT_FOUND, (("a", "1"),))


def test_trailing_metadata(make: Make) -> None:
    """The last that was set, with a reply or with a fault; the handler is told it."""
    told: list[Any] = []

    def handle(request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("a", "0"),))
        context.set_trailing_metadata((("a", "1"), ("b-bin", b"\x00\xff")))
        told.append(context.trailing_metadata())
        if request == b"fault":
            context.abort(Code.NOT_FOUND, "none")
        return request

    with calling(make, unary(handle)) as opened:
        _, call = opened.unary_unary(UNARY).with_call(b"", WAIT_S)
        error = failed(lambda: opened.unary_unary(UNARY)(b"fault", WAIT_S))
    for trailing in (call.trailing_metadata(), error.trailing_metadata()):
        assert tuple(map(tuple, trailing)) == (("a", "1"), ("b-bin", b"\x00\xff")) == told[0]


# ---- compression


def gzipped(make: Make, handle: Callable[[Any, Any], Any], **given: Any) -> tuple[bytes, int]:
    """What a server says of a reply's compression: ``grpc-encoding``, and the message's mark."""
    with started(make, unary(handle), **given) as (_, address):
        host, _, port = address.partition(":")
        raw = RawHttp2(cast(Running, SimpleNamespace(address=(host, int(port)))))
        with closing(raw.socket):
            raw.send(whole_call(1, b"asked" * 100, UNARY.encode(), grpc_accept_encoding="identity,gzip"))
            block, reply = (raw.until(kind, 1).payload for kind in (http2.HEADERS, http2.DATA))
    return dict(Decoder().decode(block, raw=True)).get(b"grpc-encoding", b""), reply[0]


def test_compression(make: Make) -> None:
    """A server's, a call's, and none for the next message."""
    gzip, none = grpc.Compression.Gzip, grpc.Compression.NoCompression

    def of_call(request: bytes, context: Any) -> bytes:
        context.set_compression(gzip)
        return request

    def not_next(request: bytes, context: Any) -> bytes:
        context.disable_next_message_compression()
        return request

    assert gzipped(make, lambda request, _: request) == (b"", 0)
    assert gzipped(make, lambda request, _: request, compression=gzip) == (b"gzip", 1)
    assert gzipped(make, lambda request, _: request, compression=none) == (b"", 0)
    assert gzipped(make, of_call) == (b"gzip", 1)
    assert gzipped(make, not_next, compression=gzip) == (b"gzip", 0)


def test_compressed_requests(make: Make) -> None:
    """A handler gets them as they were."""
    with calling(make, unary(lambda request, _: request), compression=grpc.Compression.Gzip) as opened:
        said = opened.unary_unary(UNARY)(b"asked" * 1000, WAIT_S, compression=grpc.Compression.Gzip)
    assert said == b"asked" * 1000
