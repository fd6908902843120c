"""One hostile client of gRPC beside others: calls that it begins and does not end.

Such calls disturb no other client. ``grpc`` is the exception: there the calls hold threads, as ``kept`` says.
"""

from contextlib import ExitStack

import pytest

from stock_service.rpc.errors import FaultCode, Overloaded
from stock_service.rpc.transports import Connection
from stock_service.rpc.transports.grpc_sync.reflections import STREAMS_MAX
from stock_service.rpc.wire.http2 import END_STREAM
from tests.conformance.hostile_grpc import (
    HOLDS_NONE,
    REFLECTION,
    SURVIVES,
    WATCH,
    check_a_path_that_is_no_text,
    check_calls_without_a_message,
)
from tests.conformance.kept import GRPC, keeps
from tests.conformance.raw_http2 import RESET, RawHttp2, headers, message
from tests.conformance.running import ECHO, KINDS, WAIT_S, Kind, Limits, Maker, Probe, maker, one_executor_each, until
from tests.covering import each_once

PLAIN = Kind("grpc", "static-pool")
LIST_SERVICES = b"\x3a\x00"


@pytest.fixture(params=[kind for kind in one_executor_each(0) if kind.transport in ("grpc", "grpc_aio")], ids=str)
def make(request: pytest.FixtureRequest) -> Maker:
    """Starts a server on grpcio, of each dispatch."""
    return maker(request.param)


@pytest.mark.parametrize(
    ("kind", "path"),
    each_once(
        [kind for kind in KINDS if kind.transport in GRPC and keeps(kind, HOLDS_NONE)],
        (ECHO, WATCH, REFLECTION, "/grpc.health.v1.Health/Check"),
    ),
    ids=str,
)
def test_calls_without_a_message_take_no_worker(kind: Kind, path: str) -> None:
    """One client sends only headers, on more streams than there are workers. Another client is still answered."""
    check_calls_without_a_message(maker(kind), path)


def test_calls_without_a_message_hold_threads_until_their_connection_ends() -> None:
    """Calls fill workers and queue, so that the next call is RESOURCE_EXHAUSTED. Once the client has gone, other calls
    are answered."""
    with maker(PLAIN)(Probe().service, Limits(workers=2, queue_limit=3)) as running:
        connection = running.connect()
        with RawHttp2(running.address) as hostile:
            hostile.send(*(headers(stream, ECHO) for stream in range(1, 13, 2)))
            assert hostile.first(1) == {FaultCode.RESOURCE_EXHAUSTED}
            with pytest.raises(Overloaded):
                connection.call(ECHO, b"honest", WAIT_S)
        until(lambda: answered(connection), "an honest call is answered")


def answered(connection: Connection) -> bool:
    """Tell whether a call is answered."""
    try:
        return connection.call(ECHO, b"honest", WAIT_S) == b"honest"
    except Overloaded:
        return False


@pytest.mark.slow
def test_calls_behind_those_that_hold_all_threads_are_given_up_by_a_stop() -> None:
    """The calls that hold the threads do not delay a stop. A call behind them does, to the end of the grace."""
    for calls, finished in ((2, True), (3, False)):
        with maker(PLAIN)(Probe().service, Limits(workers=2)) as running, RawHttp2(running.address) as hostile:
            hostile.send(*(headers(stream, ECHO) for stream in range(1, 2 * calls, 2)))
            hostile.send(headers(9, "/none"), message(9, b""))
            assert hostile.status(9) == FaultCode.UNIMPLEMENTED, "the server has taken the calls before it"
            assert running.server.stop(0.5) is finished
            assert running.stop(WAIT_S)


def test_a_call_without_a_message_holds_its_thread_until_its_deadline() -> None:
    """The client sends the deadline, and gRPC core ends the call then. The thread serves the next call."""
    with maker(PLAIN)(Probe().service, Limits(workers=1)) as running, RawHttp2(running.address) as hostile:
        hostile.send(headers(1, ECHO, [(b"grpc-timeout", b"100m")]), headers(3, ECHO), message(3, b""))
        assert hostile.status(1) in (RESET, FaultCode.DEADLINE_EXCEEDED)
        assert hostile.status(3) == 0


def test_a_message_that_comes_late_is_answered(make: Maker) -> None:
    """The headers of the first call come early, and its message late. A call in between is answered meanwhile."""
    with make(Probe().service) as running, RawHttp2(running.address) as client:
        client.send(headers(1, ECHO), headers(3, ECHO), message(3, b""))
        assert client.status(3) == 0
        assert 1 not in client.statuses
        client.send(message(1, b"late"))
        assert client.status(1) == 0


def test_reflections_that_stay_open_deny_nobody(make: Maker) -> None:
    """Open reflections outnumber their threads and the workers. Calls and a new reflection are still answered."""
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


def test_a_call_that_ends_without_a_message_is_refused() -> None:
    """The call is UNIMPLEMENTED, as grpcio itself says it. The next call is answered."""
    with maker(PLAIN)(Probe().service) as running, RawHttp2(running.address) as client:
        client.send(headers(1, ECHO, flags=END_STREAM), headers(3, ECHO), message(3, b""))
        assert client.status(1) == FaultCode.UNIMPLEMENTED
        assert client.status(3) == 0


@pytest.mark.parametrize(
    "kind", [kind for kind in one_executor_each(1) if kind.transport in GRPC and keeps(kind, SURVIVES)], ids=str
)
def test_a_path_that_is_no_text_is_refused(kind: Kind) -> None:
    """The call is UNIMPLEMENTED, and the next call is answered."""
    check_a_path_that_is_no_text(maker(kind))


@pytest.mark.parametrize("kind", [kind for kind in one_executor_each(0) if kind.transport in GRPC], ids=str)
def test_metadata_that_is_no_text_is_no_word_in_the_log(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    """Bytes that are not UTF-8 are metadata as any other: the call is answered, and nothing is logged."""
    with maker(kind)(Probe().service) as running, RawHttp2(running.address) as client:
        client.send(headers(1, ECHO, [(b"x-name", b"\xff\xfe")]), message(1, b""))
        assert client.status(1) == 0
    assert not caplog.records


def test_what_never_ends_does_not_hold_up_the_stop(make: Maker) -> None:
    """The stop waits for no call without its message, no open reflection and no watch."""
    with make(Probe().service) as running, ExitStack() as clients:
        for path in (ECHO, REFLECTION, WATCH):
            client = clients.enter_context(RawHttp2(running.address))
            client.send(headers(1, path), headers(3, ECHO), message(3, b""))
            assert client.status(3) == 0
        watching = clients.enter_context(RawHttp2(running.address))
        watching.send(headers(1, WATCH), message(1, b""), headers(3, ECHO), message(3, b""))
        assert watching.status(3) == 0
        assert running.stop(WAIT_S)
