"""The closed loop on one connection, on fake connections and a fake clock."""

from itertools import islice, pairwise

import pytest

from clients.load.plan.outcomes import FAULT_FIRST, INVALID_REPLY
from clients.load.send.driver import BLOCK, PAUSE_S
from stock_service.rpc.errors import DeadlineExceeded, Fault, FaultCode, Overloaded, Unavailable
from stock_service.trading.model import Status
from tests.raw_service import raw_service
from tests.unit.clients.fakes import service
from tests.unit.clients.load.send.driver_bench import DAY_NS, EACH, Bench, driven, requests

OK = int(Status.OK)
UNAVAILABLE = FAULT_FIRST + FaultCode.UNAVAILABLE


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
    """A driver sends the drawn requests in order and without a gap, over folds and blocks. A call begins after the
    call before it has ended."""
    bench = Bench(calls=3 * BLOCK + 1)
    records = driven(per_request, bench).records
    assert [payload for _, payload, _ in bench.sent] == [each.payload for each in islice(requests(), 3 * BLOCK + 1)]
    assert list(records.outcomes) == [OK] * (3 * BLOCK + 1)
    assert all(done < sent for sent, done in zip(records.sent[1:], records.done, strict=False))


@pytest.mark.parametrize("fault", [DeadlineExceeded("late"), Unavailable("gone"), Overloaded("full")])
@pytest.mark.parametrize("per_request", EACH)
def test_a_fault_is_recorded_once_and_the_connection_made_anew(per_request: bool, fault: Fault) -> None:
    """A fault is recorded once by its kind. The request is not sent again, and the server is left alone for a
    moment."""
    bench = Bench(calls=20, faults={10: fault})
    records = driven(per_request, bench).records
    assert list(records.outcomes) == [OK] * 9 + [FAULT_FIRST + fault.code] + [OK] * 10
    assert len(records.connect_ns) == (2 if not per_request else 19)
    assert list(records.firsts) == ([0, 10] if not per_request else [0])
    assert records.sent[10] - records.done[9] >= PAUSE_S * 1e9
    assert [payload for _, payload, _ in bench.sent] == [request.payload for request in islice(requests(), 20)]


def test_failed_attempts_to_connect_are_counted_and_spaced() -> None:
    """A server that is gone is asked again until the deadline, a hundred times a second; no attempt is a request."""
    bench = Bench(faults={2: Unavailable("gone")}, refused=range(2, 7), connects=6)
    records = driven(False, bench).records
    assert list(records.outcomes) == [OK, UNAVAILABLE]
    assert records.started == 2
    assert records.unconnected == {UNAVAILABLE: 5}
    assert all(later - sooner >= PAUSE_S * 1e9 for sooner, later in pairwise(bench.attempts_ns[1:]))


@pytest.mark.parametrize("per_request", EACH)
def test_a_server_that_is_not_there_is_the_callers_to_know(per_request: bool) -> None:
    """Without a server the first connect raises. Later it is an error among others."""
    with pytest.raises(Unavailable):
        Bench(refused={1}).driver(per_request).connect()


@pytest.mark.parametrize("per_request", EACH)
def test_a_first_call_waits_until_the_run_ends_and_is_no_error(per_request: bool) -> None:
    """A first call may wait longer than any timeout. A client without a reply is starved, and has no error."""
    bench = Bench(starving=True)
    driver = bench.driver(per_request)
    driver.connect()
    assert not driver.first_call(10**12)
    assert bench.sent[0][2] == pytest.approx(1000, rel=0.01)
    assert len(driver.records.outcomes) == 0


def test_a_first_call_that_fails_on_a_connection_made_anew_is_marked() -> None:
    """Every first call on a connection is marked: the failed one, the one before it, and the answered one after it."""
    bench = Bench(faults=dict.fromkeys((2, 3, 6), Unavailable("gone")), refused={4}, connects=4)
    records = driven(False, bench).records
    assert list(records.outcomes) == [OK, UNAVAILABLE, UNAVAILABLE, OK, OK, UNAVAILABLE]
    assert list(records.firsts) == [0, 2, 3]


@pytest.mark.parametrize("per_request", EACH)
def test_a_wrong_reply_is_an_error_of_its_own(per_request: bool) -> None:
    """An invalid reply is recorded with its time, and with the outcome of an invalid reply."""
    bench = Bench(calls=5, served=raw_service("a.B", {path: lambda _: b"\xff\xff" for path in service().methods}))
    assert set(driven(per_request, bench).records.outcomes) == {INVALID_REPLY}


@pytest.mark.parametrize("per_request", EACH)
def test_nothing_is_sent_after_the_deadline(per_request: bool) -> None:
    """Nothing is sent after the deadline, not even a first call."""
    bench = Bench()
    bench.deadline.ns = 0
    driver = bench.driver(per_request)
    driver.connect()
    assert not driver.first_call(DAY_NS)
    assert not driver.drive()
    assert len(driver.records.outcomes) == 0
    driver.close()
    driver.close()
