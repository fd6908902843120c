"""The closed loop on one connection, on fake connections and a fake clock."""

from itertools import islice, pairwise

import pytest

from clients.load.plan.outcomes import FAULT_FIRST, INVALID_REPLY
from clients.load.send.driver import BLOCK, PAUSE_S
from stock_service.rpc.errors import DeadlineExceeded, Fault, FaultCode, Overloaded, Unavailable
from stock_service.rpc.transports import Connection
from stock_service.trading.model import Status
from tests.raw_service import raw_service
from tests.unit.clients.fakes import CannedConnection, FakeConnection, service
from tests.unit.clients.load.send.driver_bench import DAY_NS, EACH, Bench, driven, requests

OK = int(Status.OK)


@pytest.mark.parametrize("per_request", EACH)
def test_every_call_is_recorded_in_order(per_request: bool) -> None:
    """Every call is recorded in order with its send, its end and its status. In the closed loop a call begins after the
    last one ended."""
    records = driven(per_request, Bench(calls=50)).records
    assert list(records.outcomes) == [OK] * 50
    assert all(sent < done for sent, done in zip(records.sent, records.done, strict=True))
    assert all(done < sent for done, sent in zip(records.done, records.sent[1:], strict=False))


def test_a_kept_alive_connection_is_one_and_is_timed_apart() -> None:
    """The making of a kept connection is in no response time: every call takes the same time."""
    bench = Bench(calls=50)
    records = driven(False, bench).records
    assert len(bench.connections) == 1
    assert list(records.connect_ns) == [1001]
    assert {done - sent for sent, done in zip(records.sent, records.done, strict=True)} == {101}


def test_a_connection_per_request_is_in_its_response_time() -> None:
    """With a connection for each request its making is in the response time, and is reported apart, too. Each is closed
    before the next is made."""
    bench = Bench(calls=50)
    records = driven(True, bench).records
    assert len(bench.connections) == 51  # the first only sees whether there is a server
    assert all(connection.closed for connection in bench.connections)
    assert len(records.connect_ns) == 50
    assert min(done - sent for sent, done in zip(records.sent, records.done, strict=True)) > 1100


@pytest.mark.parametrize("per_request", EACH)
def test_it_sends_what_was_drawn(per_request: bool) -> None:
    """It sends the drawn requests in order and without a gap, over folds and blocks."""
    bench = Bench(calls=3 * BLOCK + 1)
    driven(per_request, bench)
    sent = [call for connection in bench.connections for call in connection.calls]
    assert [payload for _, payload, _ in sent] == [request.payload for request in islice(requests(), 3 * BLOCK + 1)]


def test_it_stops_to_have_its_records_folded() -> None:
    """It stops at the bound of records, to within a block, and goes on after the fold."""
    bench = Bench(calls=1000)
    driver = bench.driver(records_max=100)
    driver.connect()
    assert driver.first_call(DAY_NS)
    assert driver.drive()
    assert 100 <= len(driver.records.outcomes) < 100 + BLOCK
    driver.records.clear()
    assert driver.drive()
    assert bench.progress[0] >= 2 * 100 - BLOCK


@pytest.mark.parametrize("fault", [DeadlineExceeded("late"), Unavailable("gone"), Overloaded("full")])
@pytest.mark.parametrize("per_request", EACH)
def test_a_fault_is_recorded_once_and_the_connection_made_anew(per_request: bool, fault: Fault) -> None:
    """A fault is recorded once by its kind. The request is not sent again, and the server is left alone for a
    moment."""
    bench = Bench(calls=20)
    failed: list[bytes] = []

    class Failing(FakeConnection):
        """Raises the fault at its tenth call of all."""

        def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
            reply = super().call(path, payload, timeout_s)
            if not failed and sum(len(each.calls) for each in bench.connections) == 10:
                failed.append(payload)
                raise fault
            return reply

    inner = service()

    def connect() -> Connection:
        bench.connections.append(Failing(inner, bench.takes_time))
        return bench.connections[-1]

    bench._connect = connect
    records = driven(per_request, bench).records
    assert list(records.outcomes) == [OK] * 9 + [FAULT_FIRST + fault.code] + [OK] * 10
    assert len(records.connect_ns) == (2 if not per_request else 19)
    assert list(records.firsts) == ([0, 10] if not per_request else [0])
    assert records.sent[10] - records.done[9] >= PAUSE_S * 1e9
    sent = [payload for connection in bench.connections for _, payload, _ in connection.calls]
    assert sent == [request.payload for request in islice(requests(), 20)]


def test_failed_attempts_to_connect_are_counted_and_spaced() -> None:
    """A server that is gone is asked again until the deadline, a hundred times a second; no attempt is a request."""
    bench = Bench(calls=DAY_NS)
    attempts: list[int] = []

    def connect() -> Connection:
        attempts.append(bench.clock.now_ns)
        if len(attempts) == 1:
            return CannedConnection([b"", Unavailable("gone")])
        if len(attempts) == 6:
            bench.deadline.ns = 0
        raise Unavailable("refused")

    bench._connect = connect
    driver = bench.driver()
    driver.connect()
    assert driver.first_call(DAY_NS)
    assert not driver.drive()
    unavailable = FAULT_FIRST + FaultCode.UNAVAILABLE
    assert list(driver.records.outcomes) == [INVALID_REPLY, unavailable]
    assert driver.records.started == 2
    assert driver.records.unconnected == {unavailable: 5}
    assert all(later - sooner >= PAUSE_S * 1e9 for sooner, later in pairwise(attempts[1:]))


@pytest.mark.parametrize("per_request", EACH)
def test_a_server_that_is_not_there_is_the_callers_to_know(per_request: bool) -> None:
    """Without a server the first connect raises. Later it is an error among others."""

    def refused() -> Connection:
        raise Unavailable("refused")

    driver = Bench(calls=1, connect=refused).driver(per_request)
    with pytest.raises(Unavailable):
        driver.connect()


@pytest.mark.parametrize("per_request", EACH)
def test_a_first_call_waits_until_the_run_ends_and_is_no_error(per_request: bool) -> None:
    """A first call may wait longer than any timeout. A client without a reply is starved, and has no error."""
    bench = Bench(calls=10)
    end_ns = 10**12
    waited_s: list[float] = []

    class Starving(FakeConnection):
        def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
            waited_s.append(timeout_s)
            bench.clock.now_ns += int(timeout_s * 1e9)
            raise DeadlineExceeded("never taken up")

    bench._connect = lambda: Starving(service())
    driver = bench.driver(per_request)
    driver.connect()
    assert not driver.first_call(end_ns)
    assert waited_s[0] == pytest.approx(1000, rel=0.01)
    assert len(driver.records.outcomes) == 0


def test_a_first_call_that_fails_on_a_connection_made_anew_is_marked() -> None:
    """Every first call on a connection is marked: the failed one, the one before it, and the answered one after it."""
    gone = Unavailable("gone")
    connections = iter([CannedConnection([b"", gone]), CannedConnection([gone]), CannedConnection([b"", b"", gone])])
    bench = Bench(calls=DAY_NS)

    def connect() -> Connection:
        made = next(connections, None)
        if made is None:
            bench.deadline.ns = 0
            raise Unavailable("refused")
        return made

    bench._connect = connect
    driver = bench.driver()
    driver.connect()
    assert driver.first_call(DAY_NS)
    assert not driver.drive()
    lost = FAULT_FIRST + FaultCode.UNAVAILABLE
    assert list(driver.records.outcomes) == [INVALID_REPLY, lost, lost, INVALID_REPLY, INVALID_REPLY, lost]
    assert list(driver.records.firsts) == [0, 2, 3]


@pytest.mark.parametrize("per_request", EACH)
def test_a_wrong_reply_is_an_error_of_its_own(per_request: bool) -> None:
    """An invalid reply is recorded with its time, and with the outcome of an invalid reply."""
    bench = Bench(calls=5, served=raw_service("a.B", {path: lambda _: b"\xff\xff" for path in service().methods}))
    assert set(driven(per_request, bench).records.outcomes) == {INVALID_REPLY}


@pytest.mark.parametrize("per_request", EACH)
def test_nothing_is_sent_after_the_deadline(per_request: bool) -> None:
    """Nothing is sent after the deadline, not even a first call."""
    bench = Bench(calls=10)
    bench.deadline.ns = 0
    driver = bench.driver(per_request)
    driver.connect()
    assert not driver.first_call(DAY_NS)
    assert not driver.drive()
    assert len(driver.records.outcomes) == 0
    driver.close()
    driver.close()
