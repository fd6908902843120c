"""Recorder: the requests that belong to the window, the report, and the check that no request is lost."""

import random
from dataclasses import replace

import numpy as np
import pytest

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import INVALID_REPLY, NEVER_SENT, TYPE_STEP, fault_outcome
from clients.load.record import recorder as recording
from clients.load.record.dependence import ArrivalCheck
from clients.load.record.recorder import Recorded, Recorder, Span, joined
from clients.load.record.records import Records, Window
from stock_service.rpc.errors import DeadlineExceeded, Unavailable
from stock_service.trading.model import Status

WINDOW = Window(0, 1000, 2000)
CLOSED = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 1.0, "trade": 1.0}, ("A",), 0.0, 1.0)
OPEN = replace(CLOSED, rate_hz=1e6)

OK, SUSPENDED = int(Status.OK), int(Status.SUSPENDED)


def fold(records: Records, plan: LoadPlan = CLOSED) -> tuple[Recorded, Span]:
    """Report on the records of one connection."""
    recorder = Recorder(plan, 0, WINDOW)
    span = recorder.new_span(0)
    recorder.fold(records, span)
    return recorder.recorded(), span


def folded(
    *requests: tuple[int, int, int, int], plan: LoadPlan = CLOSED, firsts: tuple[int, ...] = ()
) -> tuple[Recorded, Span]:
    """Report on one connection's requests (due, sent, done, outcome)."""
    records = Records()
    for place, (due_ns, sent_ns, done_ns, outcome) in enumerate(requests):
        records.started += 1
        records.note(sent_ns, done_ns, outcome, None if plan.rate_hz is None else due_ns)
        if place in firsts:
            records.note_first()
    report = fold(records, plan)
    assert len(records.outcomes) == 0
    return report


def closed(*requests: tuple[int, int, int], firsts: tuple[int, ...] = ()) -> tuple[Recorded, Span]:
    """Report on one connection's requests in a closed loop (sent, done, outcome)."""
    return folded(*((sent_ns, sent_ns, done_ns, outcome) for sent_ns, done_ns, outcome in requests), firsts=firsts)


def completed(recorded: Recorded) -> int:
    """Replies that came within the window, of all request types."""
    return sum(report.completed for report in recorded.requests.values())


def test_a_request_belongs_to_the_window_in_which_it_was_due() -> None:
    """Requests of the warm-up do not count. A request that was due in the window counts for any duration. A first call
    counts separately."""
    requests = ((10, 60, OK), (500, 1500, OK), (1000, 1010, OK), (1999, 9999, OK), (2000, 2001, OK))
    recorded, span = closed(*requests, firsts=(0,))
    lookups = recorded.requests["lookup"]
    assert (lookups.outcomes, lookups.response.count, lookups.response.max_ns) == ({"OK": 2}, 2, 8000)
    assert (recorded.first_calls.count, recorded.first_calls.max_ns) == (1, 50)
    assert (span.replies, span.began, recorded.recorded) == (2, 5, 5)


def test_in_an_open_loop_it_is_when_it_was_due_that_counts() -> None:
    """In an open loop the due moment decides. A request belongs to the window if it was due in the window, even if it
    was sent later."""
    recorded, _ = folded((900, 1100, 1200, OK), (1900, 2100, 2200, OK), (1500, 1510, 1600, OK), plan=OPEN)
    lookups = recorded.requests["lookup"]
    assert lookups.outcomes == {"OK": 2}
    assert (lookups.response.min_ns, lookups.response.max_ns) == (100, 300)
    assert (lookups.timed_service.min_ns, lookups.timed_service.max_ns) == (90, 100)
    assert (recorded.late.count, recorded.late.min_ns, recorded.late.max_ns) == (2, 10, 200)


def test_a_reply_that_came_after_its_timeout_is_an_error() -> None:
    """A reply after its timeout, from the send, is an error for every type. A first call may take any time."""
    plan, trade, late_ns = replace(OPEN, timeout_s=0.001), TYPE_STEP + OK, 1_000_001
    requests = [(1000, 1050, 1150, OK), (1100, 1200, 1200 + late_ns, OK), (1200, 1200, 1200 + late_ns, trade)]
    recorded, _ = folded(*requests, (1300, 1300, 1300 + late_ns, OK), plan=plan, firsts=(3,))
    assert (recorded.requests["lookup"].outcomes, recorded.requests["trade"].outcomes) == ({"OK": 1}, {})
    assert [each.errors for each in recorded.requests.values()] == [{"deadline_exceeded": 1}] * 2
    assert completed(recorded) == 1


def test_first_calls_are_apart_wherever_they_stand() -> None:
    """First calls count separately, also after a reconnect. A client with only first calls is starved. A first call
    that is answered after the window's end does not count."""
    recorded, span = closed((1100, 1150, OK), (1200, 1210, OK), (1300, 1360, OK), firsts=(0, 2))
    assert (recorded.first_calls.count, recorded.first_calls.max_ns) == (2, 60)
    assert recorded.requests["lookup"].outcomes == {"OK": 1}
    assert span.replies == 1
    alone, its_span = closed((1100, 1900, OK), firsts=(0,))
    assert (its_span.replies, alone.requests["lookup"].outcomes) == (0, {})
    assert closed((500, 2100, OK), firsts=(0,))[0].first_calls.count == 0


def test_a_first_call_that_failed_is_an_error_and_none_of_the_schedules_sends() -> None:
    """A failed first call is among the window's errors, with its time. The call is not in the lateness, the sends of
    the schedule, or the first calls."""
    gone = fault_outcome(Unavailable("gone"))
    scheduled = [(due_ns, due_ns + 5, due_ns + 9, OK) for due_ns in range(1000, 1900, 5)]
    without, _ = folded(*scheduled, plan=OPEN)
    recorded, span = folded(*scheduled, (1901, 1901, 1941, gone), plan=OPEN, firsts=(len(scheduled),))
    lookups = recorded.requests["lookup"]
    assert (lookups.outcomes, lookups.errors) == ({"OK": 180}, {"unavailable": 1})
    assert (lookups.response.count, lookups.response.max_ns) == (181, 40)
    assert recorded.errors == {"unavailable": 1}
    assert (span.began, recorded.recorded, completed(recorded), recorded.first_calls.count) == (181, 181, 180, 0)
    assert (recorded.late.count, recorded.late.min_ns) == (180, 5)
    assert recorded.arrivals == without.arrivals is not None


def test_types_outcomes_and_errors_are_told_apart() -> None:
    """Errors have times up to the error. Errors outside the window are only in the count of the whole run."""
    late = fault_outcome(DeadlineExceeded(""))
    recorded, _ = closed(
        (1, 2, OK),
        *((1100, 1200, outcome) for outcome in (OK, SUSPENDED, TYPE_STEP + OK, TYPE_STEP + INVALID_REPLY, late)),
        (900, 950, fault_outcome(Unavailable(""))),
        (1300, 1300, NEVER_SENT),
        firsts=(0,),
    )
    lookups, trades = recorded.requests["lookup"], recorded.requests["trade"]
    assert lookups.outcomes == {"OK": 1, "SUSPENDED": 1}
    assert lookups.errors == {"deadline_exceeded": 1, "never_sent": 1}
    assert (trades.outcomes, trades.errors) == ({"OK": 1}, {"invalid_reply": 1})
    assert (lookups.response.count, lookups.response.out_of_range, trades.response.count) == (3, 1, 2)
    assert recorded.errors == {"deadline_exceeded": 1, "invalid_reply": 1, "never_sent": 1, "unavailable": 1}
    assert recorded.recorded == 8


@pytest.mark.parametrize("plan", [CLOSED, OPEN])
def test_a_failed_attempt_to_connect_is_an_error_of_the_run_and_no_request(plan: LoadPlan) -> None:
    """A failed attempt to connect is in no time, no count of requests and no slice. It is added to the errors of its
    kind."""
    records = Records()
    for _ in range(3):
        records.note_unconnected(Unavailable("refused"))
    records.started = 1
    records.note(1100, 1200, fault_outcome(Unavailable("gone")), None if plan.rate_hz is None else 1090)
    recorder = Recorder(plan, 0, WINDOW)
    span = recorder.new_span(0)
    recorder.fold(records, span)
    recorder.fold(records, span)
    recorded = recorder.recorded()
    assert recorded.errors == {"unavailable": 4}
    assert recorded.requests["lookup"].errors == {"unavailable": 1}
    assert (recorded.requests["lookup"].response.count, recorded.requests["lookup"].timed_service.count) == (1, 1)
    assert (span.began, span.recorded, recorded.recorded) == (1, 1, 1)


def test_completed_are_the_replies_that_came_within_the_window() -> None:
    """Completed are the replies within the window, at whatever time they were due, without faults and first calls."""
    requests = ((500, 999, OK), (500, 1000, OK), (1500, 1999, OK), (1500, 2000, OK), (1500, 1600, NEVER_SENT))
    recorded, _ = closed(*requests, (1100, 1200, OK), firsts=(5,))
    assert completed(recorded) == 2


def test_think_time_is_from_a_reply_to_the_next_request() -> None:
    """Think time is from a reply to the connection's next request, both in the window. A fault has no think time after
    it."""
    late = fault_outcome(DeadlineExceeded(""))
    requests = (
        (900, 1050, OK),
        (1060, 1100, OK),
        (1130, 1200, late),
        (1300, 1400, OK),
        (1405, 1999, OK),
        (2005, 2010, OK),
    )
    recorded, _ = closed(*requests)
    assert (recorded.think.count, recorded.think.sum_ns) == (2, 30 + 5)


@pytest.mark.parametrize("plan", [CLOSED, OPEN])
def test_folding_in_parts_is_folding_at_once(
    plan: LoadPlan, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may fold its records several times, each time in slices of a fixed size. No time is lost, also no think
    time, and first calls are found in each slice."""
    monkeypatch.setattr(recording, "_SLICE", 7)
    parted, whole = Recorder(plan, 0, WINDOW), Recorder(plan, 0, WINDOW)
    parted_span, whole_span = parted.new_span(0), whole.new_span(0)
    part, all_records = Records(), Records()
    now_ns = 0
    for number in range(1000):
        sent_ns = now_ns + rng.randrange(1, 3)
        now_ns = sent_ns + rng.randrange(1, 5)
        outcome = rng.choice((OK, SUSPENDED, TYPE_STEP + OK, NEVER_SENT))
        due_ns = None if plan.rate_hz is None else sent_ns - rng.randrange(3)
        for records in (part, all_records):
            records.started += 1
            records.note(sent_ns, now_ns, outcome, due_ns)
            if number in (0, 7, 20, 400):
                records.note_first()
        if number % 100 == 50:
            parted.fold(part, parted_span)
    parted.fold(part, parted_span)
    monkeypatch.undo()
    whole.fold(all_records, whole_span)
    assert_same(parted.recorded(), whole.recorded())
    assert parted_span == whole_span
    assert parted_span.began == parted_span.recorded == 1000


def assert_same(one: Recorded, other: Recorded) -> None:
    """Fails unless two reports are equal in every number."""
    for name, report in one.requests.items():
        its = other.requests[name]
        assert (its.outcomes, its.errors) == (report.outcomes, report.errors)
        assert its.response.to_json() == report.response.to_json()
    for name in ("connects", "first_calls", "late", "think"):
        assert getattr(one, name).to_json() == getattr(other, name).to_json()
    assert (one.errors, one.recorded, completed(one)) == (other.errors, other.recorded, completed(other))


def test_an_open_loop_that_forgot_a_moment_is_refused() -> None:
    """A record of an open loop without a due moment is refused, since it would shift all later due moments."""
    records = Records()
    records.note(1100, 1200, OK, 1050)
    records.note(1200, 1300, OK)
    with pytest.raises(ValueError, match="2 requests of an open loop, of which 1 were due"):
        fold(records, OPEN)


@pytest.mark.parametrize("plan", [CLOSED, OPEN])
@pytest.mark.parametrize("columns", [("due",), ("due", "sent"), ("due", "sent", "done"), ("connected_at",)])
def test_a_request_that_a_signal_cut_off_is_not_recorded(plan: LoadPlan, columns: tuple[str, ...]) -> None:
    """A request that a signal cut off lacks its outcome, and is not recorded. Earlier records stay."""
    records = Records()
    records.note(1100, 1200, OK, None if plan.rate_hz is None else 1050)
    records.note_connect(1000, 1010)
    for column in columns:
        getattr(records, column).append(1300)
    records.started = 2
    recorded, span = fold(records, replace(plan, connection="per-request"))
    assert recorded.requests["lookup"].outcomes == {"OK": 1}
    assert (span.began, span.recorded) == (2, 1)


@pytest.mark.parametrize(
    ("began", "recorded", "most", "left"), [(10, 9, 1, 9), (10, 10, 5, 10), (10, 7, 2, 8), (9, 10, 3, 9)]
)
def test_what_an_interruption_cut_off_is_left_out_but_no_more(began: int, recorded: int, most: int, left: int) -> None:
    """Only requests that could have been under way at the interruption are left out. Any further missing request was
    lost, and shows."""
    span = Span(0, began, recorded)
    span.cut(most)
    assert span.began == left


def test_connections_are_numbered_through_all_clients() -> None:
    """Connections are numbered through all clients, also in the raw records, which have every request and mark first
    calls."""
    plan = replace(OPEN, clients=2, connections_per_client=3, keep_records=True)
    recorder = Recorder(plan, 1, WINDOW)
    for number in (0, 2):
        records = Records()
        for due_ns in (500, 1500):
            records.note(due_ns + 1, due_ns + 2, OK, due_ns)
            if due_ns == 500:
                records.note_first()
        recorder.fold(records, recorder.new_span(number))
    raw = recorder.recorded().raw
    assert raw is not None
    assert raw.connection.tolist() == [3, 3, 5, 5]
    assert raw.due_ns.tolist() == [500, 1500] * 2
    assert (raw.done_ns - raw.sent_ns).tolist() == [1] * 4
    assert raw.first.tolist() == [True, False] * 2
    assert len(joined([]).due_ns) == 0


def test_the_warm_ups_connections_are_its_own_where_there_is_one_per_request() -> None:
    """With kept connections all connects count, since they come before the window. With a connection per request,
    connects in the warm-up do not count."""
    for plan, count in ((CLOSED, 2), (replace(CLOSED, connection="per-request"), 1)):
        records = Records()
        records.note_connect(400, 500)
        records.note_connect(1400, 1500)
        assert fold(records, plan)[0].connects.count == count


def sends(
    moments: np.ndarray, connections: int = 1, plan: LoadPlan = OPEN, outcomes: tuple[int, ...] = (OK,)
) -> ArrivalCheck | None:
    """A recorder's check of requests sent at these moments, by turns on several connections and with these outcomes."""
    recorder = Recorder(replace(plan, connections_per_client=connections), 0, Window(0, 0, 10**10))
    for number in range(connections):
        records = Records()
        for place, at_ns in enumerate(moments[number::connections].tolist()):
            records.note(at_ns, at_ns + 100, outcomes[place % len(outcomes)], at_ns)
        recorder.fold(records, recorder.new_span(number))
    return recorder.recorded().arrivals


def test_an_open_loops_sends_are_compared_with_what_was_declared() -> None:
    """The sends of all connections together are compared with the declared process. A process with too few sends gives
    no check."""
    moments = np.cumsum(np.random.default_rng(5).exponential(1000, 20_000)).astype(np.int64)
    for connections in (1, 4):
        check = sends(moments, connections)
        assert check is not None
        assert (check.count, check.faults) == (19_999, ())
    late = np.maximum.accumulate(moments + np.where(np.arange(20_000) % 100 < 50, 40_000, 0))
    check = sends(late)
    assert check is not None
    assert check.faults
    assert sends(moments[:50]) is None
    assert closed((1100, 1200, OK))[0].arrivals is None


def test_what_was_never_sent_is_no_send() -> None:
    """A request that was never sent is not a send: it would look like a burst at the end. The lower rate shows it."""
    check = sends(np.cumsum(np.full(1000, 1000)), plan=replace(OPEN, arrivals="constant"), outcomes=(OK, NEVER_SENT))
    assert check is not None
    assert check.rate_ratio == pytest.approx(0.5, rel=0.01)


def test_of_very_many_sends_the_first_part_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many sends, only the sends before some moment are kept, for every connection. So the rate is right, and
    memory is bounded."""
    monkeypatch.setattr(recording, "SENDS_MAX", 1000)
    moments = np.cumsum(np.random.default_rng(5).exponential(1000, 20_000)).astype(np.int64)
    check = sends(moments, 4)
    assert check is not None
    assert check.count < 1000
    assert check.faults == ()
