"""What one client of gRPC can do to the others: nothing, with calls that it begins and does not end."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.grpc_sync.arriving import WAITING_MAX
from stock_service.rpc.transports.grpc_sync.reflections import STREAMS_MAX
from stock_service.rpc.wire.http2 import END_STREAM
from tests.conformance.raw_http2 import RESET, RawHttp2, headers, message
from tests.conformance.running import ECHO, KINDS, WAIT_S, Kind, Limits, Maker, Probe, maker

GRPC = [kind for kind in KINDS if kind.transport == "grpc"]
AIO = [kind for kind in KINDS if kind.transport == "grpc_aio"]
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LIST_SERVICES = b"\x3a\x00"
WATCH = "/grpc.health.v1.Health/Watch"


@pytest.fixture(params=[*GRPC, *AIO], ids=str)
def make(request: pytest.FixtureRequest) -> Maker:
    """What starts a server of each kind that speaks gRPC."""
    return maker(request.param)


@pytest.fixture(scope="module", autouse=True)
def _descriptors_that_stay() -> None:
    """Has gRPC core open, before they are counted, the pollers that a process keeps once an open call was cancelled."""
    stop_with_what_never_ends(GRPC[0])


@pytest.fixture(autouse=True)
def forget_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A handler's error, kept by pytest for its log, holds on to the call and so to a whole gRPC server."""
    yield
    caplog.get_records("call").clear()


@pytest.mark.parametrize("path", [ECHO, WATCH, REFLECTION, "/grpc.health.v1.Health/Check"])
def test_calls_without_a_message_take_no_worker(make: Maker, path: str) -> None:
    """Headers alone, on more streams than there are workers, and another client is answered."""
    with make(Probe().service, Limits(workers=2)) as running, RawHttp2(running.address) as hostile:
        hostile.send(*(headers(stream, path) for stream in range(1, 41, 2)))
        hostile.send(headers(41, ECHO), message(41, b""))
        assert hostile.status(41) == 0, "its own other calls are answered too, behind all of these"
        assert running.connect().call(ECHO, b"honest", WAIT_S) == b"honest"


def test_a_message_that_comes_late_is_answered(make: Maker) -> None:
    """Its headers came before those of a call that was answered."""
    with make(Probe().service) as running, RawHttp2(running.address) as client:
        client.send(headers(1, ECHO), headers(3, ECHO), message(3, b""))
        assert client.status(3) == 0
        assert 1 not in client.statuses
        client.send(message(1, b"late"))
        assert client.status(1) == 0


@pytest.mark.parametrize("kind", GRPC, ids=str)
def test_the_oldest_call_without_a_message_yields(kind: Kind) -> None:
    """More calls wait than may: the first are RESOURCE_EXHAUSTED, and the others, and other clients, go on."""
    options = ServeOptions(pipeline_max=2 * WAITING_MAX)
    with (
        maker(kind)(Probe().service, Limits(options=options)) as running,
        RawHttp2(running.address) as hostile,
        RawHttp2(running.address) as patient,
    ):
        last = 2 * WAITING_MAX + 9
        hostile.send(*(headers(stream, ECHO) for stream in range(1, last + 2, 2)))
        assert hostile.first(5) == {FaultCode.RESOURCE_EXHAUSTED}
        patient.send(headers(1, ECHO))
        assert hostile.first(6) == {FaultCode.RESOURCE_EXHAUSTED}
        assert max(hostile.statuses) < last // 2, "those that came first, or soon behind them"
        hostile.send(message(last, b""))
        assert hostile.status(last) == 0
        patient.send(message(1, b""))
        assert patient.status(1) == 0


def test_reflections_that_stay_open_deny_nobody(make: Maker) -> None:
    """More of them than threads for them, and workers: calls are answered, and so is another reflection."""
    with make(Probe().service, Limits(workers=2)) as running, RawHttp2(running.address) as hostile:
        last = 4 * STREAMS_MAX + 1
        hostile.send(*(headers(stream, REFLECTION) for stream in range(1, last, 2)))
        hostile.send(headers(last, REFLECTION), message(last, LIST_SERVICES))
        assert hostile.status(last) == 0
        assert running.connect().call(ECHO, b"honest", WAIT_S) == b"honest"
        with RawHttp2(running.address) as asking:
            asking.send(headers(1, REFLECTION), message(1, LIST_SERVICES))
            assert asking.status(1) == 0
        assert set(hostile.statuses.values()) <= {RESET, 0, 1}


@pytest.mark.parametrize("kind", GRPC, ids=str)
def test_a_call_that_ends_without_a_message_is_refused(kind: Kind) -> None:
    """UNIMPLEMENTED, as grpcio itself says it; the next call is answered."""
    with maker(kind)(Probe().service) as running, RawHttp2(running.address) as client:
        client.send(headers(1, ECHO, flags=END_STREAM), headers(3, ECHO), message(3, b""))
        assert client.status(1) == FaultCode.UNIMPLEMENTED
        assert client.status(3) == 0


def test_metadata_that_is_no_text_is_no_word_in_the_log(make: Maker, caplog: pytest.LogCaptureFixture) -> None:
    """Bytes that are not UTF-8 are metadata as any other: the call is answered, and nothing is logged."""
    with make(Probe().service) as running, RawHttp2(running.address) as client:
        client.send(headers(1, ECHO, [(b"x-name", b"\xff\xfe")]), message(1, b""))
        assert client.status(1) == 0
    assert not caplog.records


@pytest.mark.parametrize("kind", [*GRPC, *AIO], ids=str)
def test_what_never_ends_does_not_hold_up_the_stop(kind: Kind) -> None:
    """Calls without their message, open reflections and watches: the stop waits for none."""
    stop_with_what_never_ends(kind)


def stop_with_what_never_ends(kind: Kind) -> None:
    """Stops a server that has all of those."""
    with maker(kind)(Probe().service) as running, ExitStack() as clients:
        for path in (ECHO, REFLECTION, WATCH):
            client = clients.enter_context(RawHttp2(running.address))
            client.send(headers(1, path), headers(3, ECHO), message(3, b""))
            assert client.status(3) == 0
        watching = clients.enter_context(RawHttp2(running.address))
        watching.send(headers(1, WATCH), message(1, b""), headers(3, ECHO), message(3, b""))
        assert watching.status(3) == 0
        assert running.stop(WAIT_S)
