"""Features of gRPC alone: health, reflection, its own limits, and executors of ours under grpcio's serving thread."""

import asyncio
import resource
from collections import Counter
from itertools import count

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.grpcio import draining
from stock_service.rpc.service import Method, Service
from stock_service.rpc.transports import ServeOptions
from stock_service.trading.service import STOCK_SERVICE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.kept import GRPC
from tests.conformance.running import (
    BLOCK,
    ECHO,
    PROBE,
    WAIT_S,
    Kind,
    Limits,
    Maker,
    Probe,
    maker,
    one_executor_each,
    stopping,
    until,
)
from tests.conformance.test_grpc_static import channel
from tests.conformance.transports import fresh_exchange
from tests.covering import each_once

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


SERVERS = [Kind("grpc", "thread-pool"), Kind("grpc_static", "leader-followers"), Kind("grpc_aio", "static-pool")]


@pytest.fixture(params=SERVERS, ids=lambda kind: kind.transport)
def make(request: pytest.FixtureRequest) -> Maker:
    """A maker of servers for each transport that speaks gRPC, on its executor."""
    return maker(request.param)


def method(to_server: grpc.Channel, path: str) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
    """A method in bytes."""
    return to_server.unary_unary(path)


def test_health_is_not_serving_once_the_stop_begins(make: Maker) -> None:
    """A watch gets NOT_SERVING while the last requests are finished."""
    probe = Probe()
    with make(probe.service) as running, channel(running) as to_server, probe:
        watched = health_pb2_grpc.HealthStub(to_server).Watch(health_pb2.HealthCheckRequest(service=PROBE), 2 * WAIT_S)
        assert next(watched).status == SERVING
        held = method(to_server, BLOCK).future(b"held", WAIT_S)
        probe.entered()
        stop = stopping(running)
        assert next(watched).status == NOT_SERVING
        probe.released.set()
        assert held.result() == b"held"
        watched.cancel()
        assert stop.result()


FOUND = (
    STOCK_SERVICE,
    f"{STOCK_SERVICE}.Lookup",
    f"{STOCK_SERVICE}.Trade",
    stock_pb2.LookupRequest.DESCRIPTOR.full_name,
    stock_pb2.DESCRIPTOR.enum_types_by_name["Status"].full_name,
    "grpc.health.v1.Health",
)

MISSING = ("none", f"{STOCK_SERVICE}.None", "", ".", "no.such.Service.Method")


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_finds_what_is_there_alone(make: Maker, version: str) -> None:
    """Services, methods, messages and enums are found by name, as grpcurl and ghz ask for them. Another symbol or file
    is NOT_FOUND. Questions on one stream are answered in turn, until the client ends it. Bytes that are not a question
    are INVALID_ARGUMENT."""
    asked = [
        *(ServerReflectionRequest(file_containing_symbol=symbol) for symbol in (*FOUND, *MISSING)),
        ServerReflectionRequest(file_by_filename="no such file"),
        ServerReflectionRequest(list_services=""),
    ]
    with make(stock_service(fresh_exchange())) as running, channel(running) as to_server:
        ask: grpc.StreamStreamMultiCallable[bytes, bytes] = to_server.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        )
        *replies, listed = ask((each.SerializeToString() for each in asked), timeout=WAIT_S)
        answers = [ServerReflectionResponse.FromString(reply) for reply in replies]
        assert all(each.file_descriptor_response.file_descriptor_proto for each in answers[: len(FOUND)])
        codes = [each.error_response.error_code for each in answers[len(FOUND) :]]
        assert codes == [grpc.StatusCode.NOT_FOUND.value[0]] * (len(MISSING) + 1)
        services = ServerReflectionResponse.FromString(listed).list_services_response.service
        names = sorted(service.name for service in services)
        assert names == ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", STOCK_SERVICE]
        wrong = ask(iter([asked[-1].SerializeToString(), b"\xff"]), timeout=WAIT_S)
        assert next(wrong) == listed
        with pytest.raises(grpc.RpcError) as caught:
            next(wrong)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_call_that_comes_late_in_the_stop_is_refused_by_name(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call comes on a known connection while an earlier one is under way, which is finished.

    ``grpc_static`` refuses by GOAWAY, after which its client looks for another server, and finds none.
    """
    monkeypatch.setattr(draining, "SERVING_S", 0.0)
    probe = Probe()
    with make(probe.service) as running, channel(running) as to_server, probe:
        early = method(to_server, BLOCK).future(b"early", WAIT_S)
        probe.entered()
        stop = stopping(running)
        goes_away = running.kind.transport == "grpc_static"
        words = "failed to connect" if goes_away else "the server is stopping"
        until(lambda: words in refusal(to_server), "it is refused")
        assert not stop.done()
        probe.released.set()
        assert early.result(WAIT_S) == b"early"
        assert stop.result()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Kind("grpc", "thread-pool"), Kind("grpc_aio", "static-pool")], ids=str)
def test_a_stop_without_a_descriptor_finishes_what_is_under_way(kind: Kind) -> None:
    """The server can look at no socket then: it refuses, waits for the call, and ends in time."""
    probe = Probe()
    with maker(kind)(probe.service) as running, channel(running) as to_server, probe:
        early = method(to_server, BLOCK).future(b"early", WAIT_S)
        probe.entered()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            stop = stopping(running)
            assert not stop.done()
            probe.released.set()
            assert early.result(WAIT_S) == b"early"
            assert stop.result()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def refusal(to_server: grpc.Channel) -> str:
    """Message of a call that was refused as UNAVAILABLE; None for a call that was not."""
    try:
        method(to_server, ECHO)(b"late", WAIT_S / 4)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return error.details() or ""
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "room"),
    each_once([kind for kind in one_executor_each(3) if kind.transport in GRPC], [(1, 0), (4, 2), (1, 1), (2, 2)]),
    ids=str,
)
def test_a_full_executor_answers_every_call(kind: Kind, room: tuple[int, int]) -> None:
    """Of 200 calls at a time, again and again, each is OK or RESOURCE_EXHAUSTED. No call stays without an answer."""
    workers, queue_limit = room
    limits = Limits(workers, queue_limit, ServeOptions(pipeline_max=1000))
    with maker(kind)(Probe().service, limits) as running, channel(running) as to_server:
        echo = method(to_server, ECHO)
        ended: Counter[grpc.StatusCode] = Counter()
        for _ in range(2):
            calls = [echo.future(b"%d" % number, WAIT_S / 2) for number in range(200)]
            ended.update(call.code() for call in calls)
        assert set(ended) <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}, ended
        assert ended[grpc.StatusCode.OK]
        # A call counts until the executor has its task back, a moment after the reply: one sent then may be refused.
        until(
            lambda: echo.future(b"after", WAIT_S).code() is grpc.StatusCode.OK, "a call after all others was answered"
        )


@pytest.mark.slow
def test_connections_over_the_limit_are_closed(make: Maker) -> None:
    """One connection over the limit is closed. The open connections go on."""
    limits = Limits(options=ServeOptions(connections_max=1))
    with make(Probe().service, limits) as running, channel(running) as one, channel(running) as other:
        first, second = method(one, ECHO), method(other, ECHO)
        assert first(b"1", WAIT_S) == b"1"
        with pytest.raises(grpc.RpcError) as caught:
            second(b"2", 1.0)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert first(b"1", WAIT_S) == b"1"


LOOP = Kind("grpc_aio", "static-pool", "loop")


def waiting(until: int, error: type[Exception] | None = None) -> Service:
    """A service whose method, on a loop, waits for a number of calls, and then replies or raises."""
    arrived, all_there = count(1), asyncio.Event()

    async def together(request: stock_pb2.LookupRequest) -> stock_pb2.LookupRequest:
        if next(arrived) == until:
            all_there.set()
        await all_there.wait()
        if error is not None:
            raise error("oops")
        return request

    method = Method(stock_pb2.LookupRequest, stock_pb2.LookupRequest, lambda request: request, on_loop=together)
    return Service("a.Waiting", {WAITING: method})


WAITING = "/a.Waiting/Together"


def test_a_method_that_waits_on_the_loop_holds_up_no_other() -> None:
    """Three calls that wait for each other are all answered. A blocked loop would never see the second call."""
    with maker(LOOP)(waiting(3)) as running, channel(running) as to_server:
        together = method(to_server, WAITING)
        calls = [together.future(payload, WAIT_S) for payload in (b"", b"", b"")]
        assert [call.result() for call in calls] == [b"", b"", b""]


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT), (ValueError, grpc.StatusCode.INTERNAL)],
)
def test_what_a_method_raises_behind_its_wait_is_its_status(error: type[Exception], code: grpc.StatusCode) -> None:
    """A fault raised after a wait is the call's status. Any other error is INTERNAL, without its text."""
    with maker(LOOP)(waiting(1, error)) as running, channel(running) as to_server:
        with pytest.raises(grpc.RpcError) as caught:
            method(to_server, WAITING)(b"", WAIT_S)
        assert caught.value.code() is code
        assert ("oops" in (caught.value.details() or "")) == (error is InvalidRequest)
        with pytest.raises(grpc.RpcError) as caught:
            method(to_server, WAITING)(b"\xff\xff", WAIT_S)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
