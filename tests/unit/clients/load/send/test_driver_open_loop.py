"""The open loop on one connection, on fake connections and a fake clock."""

import pytest

from clients.load.plan.outcomes import FAULT_FIRST, NEVER_SENT
from clients.load.send.driver import BLOCK, LATE_NS, PAUSE_S, Driver
from stock_service.rpc.errors import FaultCode, Unavailable
from stock_service.trading.model import Status
from tests.unit.clients.load.send.driver_bench import DAY_NS, EACH, Bench

OK = int(Status.OK)
UNAVAILABLE = FAULT_FIRST + FaultCode.UNAVAILABLE

LONG_NS = 10_000
"""Time longer than connecting, calling and looking at the clock together."""

FIVE = [number * LONG_NS for number in range(1, 6)]
"""Five moments, regularly."""


def started(per_request: bool, bench: Bench) -> tuple[Driver, int]:
    """A driver whose first call is done, and the moment of its schedule's start, to within a look at the clock."""
    driver = bench.driver(per_request)
    driver.connect()
    start_ns = bench.clock.now_ns
    assert driver.first_call(DAY_NS)
    return driver, start_ns


def ended(driver: Driver, bench: Bench, at_ns: int) -> list[int]:
    """Due times of its requests, from the first call on, after a run until this moment."""
    bench.deadline.ns = at_ns
    assert not driver.drive()
    driver.write_off()
    records = driver.records
    assert records.started == len(records.outcomes) == len(records.sent) == len(records.done) == len(records.due)
    return list(records.due)[1:]


@pytest.mark.parametrize("per_request", EACH)
def test_a_slow_reply_makes_the_next_late_and_no_other(per_request: bool) -> None:
    """Each request is sent at its due moment, to within a few looks at the clock. A slow reply makes the next request
    late, and no later one. Due moments come from the schedule."""
    bench = Bench(due_ns=FIVE)
    driver, start_ns = started(per_request, bench)
    bench.slow_next_ns = 5 * LONG_NS // 2
    due = ended(driver, bench, start_ns + 10 * LONG_NS)
    assert due == [start_ns + moment for moment in FIVE]
    late = [sent - due for sent, due in zip(driver.records.sent[1:], due, strict=True)]
    assert all(0 <= late[place] <= 3 for place in (0, 3, 4))
    assert late[1] > LONG_NS
    assert late[2] > LONG_NS / 2
    assert set(driver.records.outcomes) == {OK}


@pytest.mark.parametrize("per_request", EACH)
@pytest.mark.parametrize(
    ("call_ns", "outcomes"), [(10 * LONG_NS + LATE_NS, [OK, OK] + [NEVER_SENT] * 3), (2 * LONG_NS, [OK] * 5)]
)
def test_what_is_long_past_at_the_end_is_never_sent(per_request: bool, call_ns: int, outcomes: list[int]) -> None:
    """A reply comes long after the deadline: requests that came due meanwhile are recorded as never sent, with their
    moments. Requests that were due shortly before the deadline are still sent, and no later ones."""
    bench = Bench(due_ns=FIVE)
    driver, start_ns = started(per_request, bench)
    bench.call_ns = call_ns
    due = ended(driver, bench, start_ns + 4 * LONG_NS + LONG_NS // 2)
    assert due == [start_ns + moment for moment in FIVE[:4]]
    assert list(driver.records.outcomes) == outcomes


@pytest.mark.parametrize("per_request", EACH)
def test_an_interrupt_ends_the_wait(per_request: bool) -> None:
    """A deadline of 0 during a wait ends the wait. No further request is sent."""
    bench = Bench(due_ns=[LONG_NS, 100 * LONG_NS], interrupt_in_pause_after_ns=50 * LONG_NS)
    driver, _ = started(per_request, bench)
    assert not driver.drive()
    assert list(driver.records.outcomes) == [OK, OK]


@pytest.mark.parametrize("per_request", EACH)
def test_it_stops_to_have_its_records_folded(per_request: bool) -> None:
    """A driver stops at the bound of records, to within a block. Then the due moments and the progress go on."""
    bench = Bench(due_ns=[number * LONG_NS for number in range(1, 200)])
    driver = bench.driver(per_request, records_max=50)
    driver.connect()
    start_ns = bench.clock.now_ns
    assert driver.first_call(DAY_NS)
    folded: list[int] = []
    bench.deadline.ns = start_ns + 200 * LONG_NS
    while driver.drive():
        assert 50 <= len(driver.records.outcomes) < 50 + BLOCK
        folded += driver.records.due
        assert len(folded) - BLOCK <= bench.progress[0] <= len(folded)
        driver.records.clear()
    assert len(folded) > 100, "it stops several times"
    folded += driver.records.due
    assert folded[1:] == [start_ns + number * LONG_NS for number in range(1, 200)]


@pytest.mark.parametrize("per_request", EACH)
def test_a_fault_has_its_moment_and_delays_the_next(per_request: bool) -> None:
    """After a fault the driver pauses. Requests that came due in the pause are sent late."""
    pause_ns = int(PAUSE_S * 1e9)
    bench = Bench(due_ns=[LONG_NS, 2 * LONG_NS, 2 * pause_ns], faults={2: Unavailable("gone")})
    driver, start_ns = started(per_request, bench)
    due = ended(driver, bench, start_ns + 3 * pause_ns)
    assert due == [start_ns + LONG_NS, start_ns + 2 * LONG_NS, start_ns + 2 * pause_ns]
    assert list(driver.records.outcomes) == [OK, UNAVAILABLE, OK, OK]
    assert driver.records.sent[2] - due[1] >= pause_ns - LONG_NS
    assert driver.records.sent[3] - due[2] <= 3


def test_what_is_due_after_a_fault_is_the_schedules() -> None:
    """A request that is due after a fault waited for the new connection and counts as late. Failed attempts are not
    requests."""
    bench = Bench(due_ns=[LONG_NS, 2 * LONG_NS], faults={2: Unavailable("gone")}, refused={2, 3})
    driver, start_ns = started(False, bench)
    due = ended(driver, bench, start_ns + DAY_NS // 2)
    assert list(driver.records.outcomes) == [OK, UNAVAILABLE, OK]
    assert due == [start_ns + LONG_NS, start_ns + 2 * LONG_NS]
    assert driver.records.unconnected == {UNAVAILABLE: 2}
    assert list(driver.records.firsts) == [0]


@pytest.mark.parametrize("per_request", EACH)
@pytest.mark.parametrize("due_ns", [None, [DAY_NS]])
def test_a_first_call_that_fails_is_marked_in_both_loops(per_request: bool, due_ns: list[int] | None) -> None:
    """A first call that fails is marked in both loops, as is the next one."""
    driver, _ = started(per_request, Bench(due_ns=due_ns, faults={1: Unavailable("gone")}))
    assert list(driver.records.outcomes) == [UNAVAILABLE, OK]
    assert list(driver.records.firsts) == [0, 1]
    assert driver.records.started == 2


def test_the_schedule_of_a_starved_connection_is_written_off() -> None:
    """On a starved connection, requests that were due are errors. The unanswered first call is not an error."""
    bench = Bench(due_ns=[LONG_NS, 2 * LONG_NS, 10**12], starving=True)
    driver = bench.driver()
    driver.connect()
    bench.deadline.ns = 10**11
    assert not driver.first_call(10**11)
    driver.write_off()
    assert list(driver.records.outcomes) == [NEVER_SENT] * 2
    assert driver.records.started == 2


@pytest.mark.parametrize("per_request", EACH)
def test_what_was_due_and_not_sent_is_counted_where_the_run_was_interrupted(per_request: bool) -> None:
    """Requests that were due before the interruption and not sent are counted. They are in no record."""
    bench = Bench(due_ns=FIVE)
    driver, start_ns = started(per_request, bench)
    bench.deadline.ns = 0
    assert not driver.drive()
    assert driver.unsent(start_ns + 3 * LONG_NS + 5) == 3
    assert len(driver.records.outcomes) == 1
    closed = Bench().driver(per_request)
    closed.connect()
    assert closed.unsent(DAY_NS) == 0
