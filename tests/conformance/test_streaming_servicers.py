"""Documented behaviour of streaming methods, on grpcio and on ours; grpcio's servicers of health and reflection."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.conformance.running import WAIT_S, until
from tests.conformance.servicers import NAME, SERVERS, Code, Interceptor, Make, calling, channel, failed, started

REPLIES, REQUESTS, TALK = (f"/{NAME}/{name}" for name in ("Replies", "Requests", "Talk"))
MANY, FAR = 3000, 1000


def replies(behaviour: Any) -> Any:
    """A method of one request and several replies."""
    return {"Replies": grpc.unary_stream_rpc_method_handler(behaviour)}


def requests(behaviour: Any) -> Any:
    """A method of several requests and one reply."""
    return {"Requests": grpc.stream_unary_rpc_method_handler(behaviour)}


def talk(behaviour: Any) -> Any:
    """A method of several of both."""
    return {"Talk": grpc.stream_stream_rpc_method_handler(behaviour)}


def numbers(count: int, size: int = 0) -> Iterator[bytes]:
    """Messages in an order."""
    return (b"%d" % number + bytes(size) for number in range(count))


class Endless:
    """Requests that go on until ``with`` ends, or the client does."""

    def __init__(self, *first: bytes) -> None:
        self._first, self.end = first, threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        yield from self._first
        self.end.wait(WAIT_S)

    def __enter__(self) -> "Endless":
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()


@pytest.mark.slow
def test_each_kind(make: Make) -> None:
    """All messages come in their order; none at all is fine, too."""
    with calling(make, replies(lambda request, _: numbers(int(request)))) as opened:
        for count in (0, 1, MANY):
            assert list(opened.unary_stream(REPLIES)(b"%d" % count, WAIT_S)) == list(numbers(count))
    with calling(make, requests(lambda asked, _: b",".join(asked))) as opened:
        for count in (0, 1, MANY):
            assert opened.stream_unary(REQUESTS)(numbers(count), WAIT_S) == b",".join(numbers(count))
    with calling(make, talk(lambda asked, _: (each + each for each in asked))) as opened:
        for count in (0, 1, MANY):
            said = list(opened.stream_stream(TALK)(numbers(count), WAIT_S))
            assert said == [each + each for each in numbers(count)]


@pytest.mark.slow
def test_large_messages(make: Make) -> None:
    """A megabyte each, both ways, compressed or not."""
    for compression in (None, grpc.Compression.Gzip):
        with calling(make, talk(lambda asked, _: asked), compression=compression) as opened:
            said = opened.stream_stream(TALK)(numbers(8, 1 << 20), WAIT_S, compression=compression)
            assert all(each == sent for each, sent in itertools.zip_longest(said, numbers(8, 1 << 20)))


def test_a_question_at_a_time(make: Make) -> None:
    """Each reply follows from the last one's request; the server speaks first, its metadata before that."""

    def handle(asked: Any, context: Any) -> Iterator[bytes]:
        context.send_initial_metadata((("a", "1"),))
        yield b"hello"
        for each in asked:
            yield b"re " + each

    with calling(make, talk(handle)) as opened:
        heard = threading.Semaphore(0)

        def ask() -> Iterator[bytes]:
            for each in numbers(200):
                assert heard.acquire(timeout=WAIT_S)
                yield each

        call = opened.stream_stream(TALK)(ask(), WAIT_S)
        assert tuple(map(tuple, call.initial_metadata())) == (("a", "1"),)
        for said, wanted in zip(call, [b"hello", *(b"re " + each for each in numbers(200))], strict=True):
            assert said == wanted
            heard.release()


def test_the_end_of_a_stream_has_status_and_metadata(make: Make) -> None:
    """What the handler has set, or the text of what it raises; the replies before come first."""

    def handle(request: bytes, context: Any) -> Iterator[bytes]:
        yield b"first"
        context.set_trailing_metadata((("a", "1"),))
        if request == b"raise":
            raise RuntimeError("planted")
        if request == b"abort":
            context.abort(Code.NOT_FOUND, "none")
        context.set_code(Code.OUT_OF_RANGE)
        context.set_details("no more")

    wanted = {
        b"raise": (Code.UNKNOWN, "Exception iterating responses: planted"),
        b"abort": (Code.NOT_FOUND, "none"),
        b"set": (Code.OUT_OF_RANGE, "no more"),
    }
    with calling(make, replies(handle)) as opened:
        for request, status in wanted.items():
            call = opened.unary_stream(REPLIES)(request, WAIT_S)
            assert next(call) == b"first"
            error = failed(partial(next, call))
            assert (error.code(), error.details()) == status
            assert tuple(map(tuple, error.trailing_metadata())) == (("a", "1"),)


@pytest.mark.parametrize("aborts", [False, True])
def test_a_handler_need_not_wait_for_the_requests_end(make: Make, aborts: bool) -> None:
    """Its reply or its fault ends the call, though the client would go on."""

    def handle(asked: Any, context: Any) -> bytes:
        first: bytes = next(asked)
        if aborts:
            context.abort(Code.RESOURCE_EXHAUSTED, "enough")
        return first

    with calling(make, requests(handle)) as opened, Endless(b"first") as endless:
        call = opened.stream_unary(REQUESTS).future(iter(endless), WAIT_S)
        if aborts:
            assert (call.code(), call.details()) == (Code.RESOURCE_EXHAUSTED, "enough")
        else:
            assert call.result(WAIT_S) == b"first"


@pytest.mark.parametrize("ends", ["cancel", "close"])
def test_a_handler_that_waits_for_requests_hears_of_the_end(make: Make, ends: str) -> None:
    """There are no more, or an RpcError: on grpcio by chance, on ours the latter. Its thread is free then."""
    heard, begun = list[str](), threading.Event()

    def handle(asked: Any, context: Any) -> bytes:
        try:
            for _ in asked:
                begun.set()
            heard.append("no more")
        except grpc.RpcError:
            heard.append("raised")
        until(lambda: bool(asked_again or not context.is_active()), "the context hears of it, too")
        return b""

    asked_again = list[bool]()
    with started(make, requests(handle), workers=1) as (_, address), Endless(b"first") as endless:
        with channel(address) as opened:
            call = opened.stream_unary(REQUESTS).future(iter(endless), WAIT_S)
            assert begun.wait(WAIT_S)
            if ends == "cancel":
                call.cancel()
                until(lambda: bool(heard), "the handler hears of it")
        until(lambda: bool(heard), "the handler hears of it")
        assert make is SERVERS["grpcio"] or heard == ["raised"]
        with channel(address) as opened:
            asked_again.append(True)
            assert opened.stream_unary(REQUESTS)(numbers(3), WAIT_S) == b""


def test_a_client_that_leaves_ends_the_replies(make: Make) -> None:
    """The handler's generator is closed, and its thread is free."""
    closed = threading.Event()

    def handle(request: bytes, _: Any) -> Iterator[bytes]:
        try:
            for _each in itertools.count():
                yield request
        finally:
            closed.set()

    with calling(make, replies(handle), workers=1) as opened:
        for _ in range(2):
            call = opened.unary_stream(REPLIES)(b"reply", WAIT_S)
            assert next(call) == b"reply"
            call.cancel()
            assert closed.wait(WAIT_S)
            closed.clear()


@pytest.mark.slow
def test_a_slow_client_holds_its_handler_back(make: Make) -> None:
    """It is as far ahead as the windows allow, and no further; then all come."""
    made = list[int]()

    def handle(*_: object) -> Iterator[bytes]:
        for number in range(FAR):
            made.append(number)
            yield b"%d" % number + bytes(100_000)

    with calling(make, replies(handle)) as opened:
        call = opened.unary_stream(REPLIES)(b"", WAIT_S)
        assert next(call)
        seen = -1
        while seen < len(made):  # until it stands still
            seen = len(made)
            threading.Event().wait(0.1)
        assert len(made) < FAR / 2
        assert sum(1 for _ in call) == FAR - 1


@pytest.mark.slow
def test_a_slow_handler_holds_its_client_back(make: Make) -> None:
    """A client is not let send without bound; then all come, small ones among large ones."""
    goes_on, sent = threading.Event(), list[int]()

    def handle(asked: Any, _: Any) -> bytes:
        assert goes_on.wait(WAIT_S)
        return b"%d" % sum(len(each) for each in asked)

    def ask() -> Iterator[bytes]:
        for number in range(400):
            sent.append(number)
            yield bytes(100_000 if number % 2 else 3)

    with calling(make, requests(handle)) as opened:
        call = opened.stream_unary(REQUESTS).future(ask(), WAIT_S)
        seen = -1
        while seen < len(sent):
            seen = len(sent)
            threading.Event().wait(0.1)
        assert len(sent) < 300
        goes_on.set()
        assert call.result(WAIT_S) == b"%d" % (200 * 100_003)


def test_a_request_that_cannot_be_read() -> None:
    """It is INTERNAL, and ends the requests; on grpcio too, which then leaves descriptors open."""
    methods: Any = {"Requests": grpc.stream_unary_rpc_method_handler(lambda asked, _: b"%d" % sum(asked), int)}
    with calling(SERVERS["ours"], methods) as opened:
        assert opened.stream_unary(REQUESTS)(numbers(4), WAIT_S) == b"6"
        error = failed(lambda: opened.stream_unary(REQUESTS)(iter([b"1", b"none"]), WAIT_S))
    assert error.code() is Code.INTERNAL


def test_an_interceptor_of_another_kind(make: Make) -> None:
    """It may refuse any method by a handler of one request, as grpc's examples do."""
    refuses: Any = grpc.unary_unary_rpc_method_handler(lambda _, context: context.abort(Code.UNAUTHENTICATED, "who?"))
    methods = {**replies(lambda *_: iter(())), **requests(lambda *_: b""), **talk(lambda *_: iter(()))}
    asked = (("a", "1"),)
    with calling(make, methods, interceptors=(Interceptor("it", [], refuses),)) as opened:
        refused = [
            failed(lambda: list(opened.unary_stream(REPLIES)(b"", WAIT_S, metadata=asked))),
            failed(lambda: opened.stream_unary(REQUESTS)(numbers(1), WAIT_S, metadata=asked)),
            failed(lambda: list(opened.stream_stream(TALK)(numbers(1), WAIT_S, metadata=asked))),
        ]
    assert [(error.code(), error.details()) for error in refused] == [(Code.UNAUTHENTICATED, "who?")] * 3


@pytest.mark.parametrize("grace_s", [None, 0.1, WAIT_S])
def test_stop_and_streams(make: Make, grace_s: float | None) -> None:
    """A stream under way may end within the grace; else it is cancelled, and its handler hears of it."""
    ended = threading.Event()

    def handle(asked: Any, context: Any) -> Iterator[bytes]:
        context.add_callback(ended.set)
        yield from asked

    with started(make, talk(handle)) as (served, address), channel(address) as opened, Endless(b"first") as endless:
        call = opened.stream_stream(TALK)(iter(endless), WAIT_S)
        assert next(call) == b"first"
        stopped = served.stop(grace_s)
        if grace_s == WAIT_S:
            assert not ended.wait(0.1)
            endless.end.set()
            assert list(call) == []
        else:
            assert failed(lambda: next(call)).code() in (Code.CANCELLED, Code.UNAVAILABLE)
        assert ended.wait(WAIT_S)
        assert stopped.wait(WAIT_S)


def test_health_as_it_is(make: Make) -> None:
    """The servicer of grpcio-health-checking: a check, and a watch that hears of each change."""
    servicer = health.HealthServicer()
    with started(make, {}) as (served, address), channel(address) as opened:
        health_pb2_grpc.add_HealthServicer_to_server(servicer, served)
        stub = health_pb2_grpc.HealthStub(opened)
        asked = health_pb2.HealthCheckRequest(service="mine")
        assert stub.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S).status == 1
        assert failed(lambda: stub.Check(asked, timeout=WAIT_S)).code() is Code.NOT_FOUND
        watch = stub.Watch(asked, timeout=WAIT_S)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        for status in (health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING):
            servicer.set("mine", status)
            assert next(watch).status == status
        watch.cancel()
        with suppress(grpc.RpcError):
            next(watch)


def test_reflection_as_it_is(make: Make) -> None:
    """The servicer of grpcio-reflection tells of a service."""
    name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    with started(make, {}) as (served, address), channel(address) as opened:
        reflection.enable_server_reflection((name, reflection.SERVICE_NAME), served)
        told = ProtoReflectionDescriptorDatabase(opened)
        assert set(told.get_services()) == {name, reflection.SERVICE_NAME}
        assert told.FindFileContainingSymbol(name).name == "grpc_health/v1/health.proto"
