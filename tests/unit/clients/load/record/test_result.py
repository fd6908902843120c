"""The result of the clients' reports, and its JSON."""

import json
from dataclasses import fields, replace

import msgspec
import pytest

from clients.load.plan.outcomes import NEVER_SENT, fault_outcome
from clients.load.record.recorder import ClientReport
from clients.load.record.records import Records, Window
from clients.load.record.result import ALL, CLIENT_LOST, LoadResult, RequestResult, combine, from_json, to_json
from stock_service.rpc.errors import Unavailable
from stock_service.trading.model import Status
from tests.unit.clients.load.reports import (
    MS,
    OPEN,
    PLAN,
    US,
    WINDOW,
    bad_arrivals,
    closed_records,
    closed_run,
    open_run,
    report,
)


def starved(client: int = 1) -> ClientReport:
    """A client that connected and got nothing."""
    records = Records()
    records.note_connect(0, 50 * US)
    return report(client, records, cpu_s=0.001)


def test_two_clients_are_added_and_merged() -> None:
    """Counts and rates of two clients add up. Percentiles are those of all requests, and not an average. In a closed
    loop no request is late, and service times are response times."""
    fast, slow = closed_records(took_us=100, think_us=0), closed_records(took_us=300, think_us=0)
    result = combine(PLAN, WINDOW, [report(0, fast), report(1, slow)])
    lookups, every = result.requests["lookup"], result.requests[ALL]
    assert every.count == lookups.count + result.requests["trade"].count
    assert every.count == pytest.approx(20_000 + 6_667, abs=2)
    assert every.throughput_hz == result.throughput_hz == every.count / 2
    assert every.outcomes == {"OK": every.count}
    assert (lookups.p50_us, lookups.p90_us) == pytest.approx((100, 300), rel=1e-3)
    assert lookups.mean_us == pytest.approx(150, rel=1e-3)
    assert (lookups.min_us, lookups.max_us) == (100, 300)
    assert (result.client_cpu_s, result.client_cpu_share, result.client_cpu_share_mean) == (1.0, 0.25, 0.25)
    assert not result.load_limited
    assert (result.late_us, result.rate_hz, result.loop) == (None, None, "closed")
    assert (every.service_us_mean, every.service_us_p99) == (every.mean_us, every.p99_us)


# ---- Little's law: N = X · (R + Z)


def test_little_holds_where_every_connection_sends_all_the_time() -> None:
    """Think time counts, and comes from the records. A request at each end of the window makes the only difference."""
    result = closed_run(*(closed_records(took_us, think_us) for took_us, think_us in ((200, 50), (300, 0), (100, 400))))
    assert result.little_ratio == pytest.approx(1.0, abs=1e-3)
    assert result.n_over_x_us == pytest.approx(3 / result.throughput_hz * 1e6)
    assert closed_run(closed_records(200, 50)).think_us == pytest.approx(50)


def test_little_fails_where_a_connection_started_late() -> None:
    """The late connection sends in half of the window, and is still counted as a whole connection."""
    late = closed_records(start_ns=WINDOW.start_ns + 1000 * MS)
    assert closed_run(closed_records(), late).little_ratio == pytest.approx(0.75, abs=1e-3)


def test_a_lost_record_is_missed_by_the_count() -> None:
    """The count shows the lost record. Little's ratio does not: think time grows by the time of the lost request."""
    records = closed_records()
    for column in (records.sent, records.done, records.outcomes):
        del column[5000]
    result = closed_run(records)
    assert result.began == result.recorded + 1
    assert result.little_ratio == pytest.approx(1.0, abs=1e-3)
    assert closed_run(closed_records()).began == closed_run(closed_records()).recorded


def test_a_starved_client_is_counted_and_in_no_latency() -> None:
    """A starved client is counted, is in no latency, and its connection is not a sending one."""
    result = combine(PLAN, WINDOW, [report(0, closed_records()), starved()])
    assert (result.started_clients, result.starved_clients) == (2, 1)
    assert (result.sending_connections, result.starved_connections) == (1, 1)
    assert result.requests[ALL].mean_us == 200
    assert result.little_ratio == pytest.approx(1.0, abs=1e-3)
    assert result.errors == {}


def test_who_could_not_connect_and_who_was_lost_are_errors() -> None:
    """Clients that could not connect and clients that were lost are errors. They also count as started, and as
    starved."""
    result = combine(PLAN, WINDOW, [report(0, closed_records()), ClientReport(1, fault=Unavailable("refused"))], lost=1)
    assert result.errors == {"unavailable": 1, CLIENT_LOST: 1}
    assert (result.started_clients, result.starved_clients) == (3, 2)


def test_nothing_measured_has_no_times() -> None:
    """Without measurements times are None, and not 0. The same holds for a run that ended before it began."""
    for window in (WINDOW, Window(0, 1000, 1000)):
        result = combine(PLAN, window, [starved()], interrupted=True)
        every = result.requests[ALL]
        assert (every.count, every.throughput_hz, every.mean_us, every.p99_us) == (0, 0.0, None, None)
        assert (result.little_ratio, result.n_over_x_us, result.think_us, result.late_us) == (None,) * 4
        assert result.client_cpu_share in (0.0, 0.0005)


def test_a_busy_client_is_said_to_be_so() -> None:
    """Over 80 % of a core the latency is not the server's alone. An open loop is left out: its senders wait awake."""
    assert combine(PLAN, WINDOW, [report(0, closed_records(), cpu_s=1.7)]).load_limited
    assert not combine(PLAN, WINDOW, [report(0, closed_records(), cpu_s=1.5)]).load_limited
    assert not combine(OPEN, WINDOW, [report(0, plan=OPEN, cpu_s=1.9)]).load_limited


@pytest.mark.parametrize(
    ("cpu_s", "cores", "limited"),
    [(0.45, 1, True), (0.35, 1, False), (0.45, 2, False), (0.85, 2, True), (0.45, None, False)],
)
def test_clients_that_share_cores_are_held_against_all_of_them(cpu_s: float, cores: int | None, limited: bool) -> None:
    """Four clients in a window of 2 s, none of them busy, may together fill the cores that they share."""
    reports = [report(number, closed_records(), cpu_s=cpu_s) for number in range(4)]
    result = combine(replace(PLAN, clients=4), WINDOW, reports, cores=cores)
    assert result.load_limited is limited
    assert from_json(json.loads(json.dumps(to_json(result)))).load_limited is limited


def test_what_waited_when_clients_were_interrupted_is_added_and_kept() -> None:
    """The unanswered requests of all clients are added up."""
    reports = [replace(report(number, closed_records()), interrupted=True, unanswered=7) for number in range(2)]
    result = combine(PLAN, WINDOW, reports, interrupted=True)
    assert (result.unanswered, from_json(json.loads(json.dumps(to_json(result)))).unanswered) == (14, 14)


# ---- the open loop


def test_an_open_loop_has_two_times() -> None:
    """Response time counts from when a request was due, service time from its send. Their difference is lateness."""
    result = open_run(times_us=(200,), late_us=30)
    every = result.requests[ALL]
    assert (every.mean_us, every.service_us_mean) == (200, 170)
    assert every.service_us_p50 == pytest.approx(170, rel=1e-3)
    assert result.late_us is not None
    assert (result.late_us.count, result.late_us.max_us) == (2000, 30)
    assert (result.loop, result.rate_hz, result.throughput_hz, result.completed) == ("open", 1000.0, 1000.0, 2000)
    assert (result.think_us, result.n_over_x_us, result.little_ratio) == (None, None, None)


def test_in_an_open_loop_a_connection_without_a_turn_is_not_starved() -> None:
    """A connection with an answered first call is not starved, though nothing came due on it in the window.

    A connection without any reply is starved.
    """
    called, failed, served_late = Records(), Records(), Records()
    for records, outcome, done_ns in (
        (called, Status.OK, 200 * US),
        (failed, fault_outcome(Unavailable("gone")), 200 * US),
        (served_late, Status.OK, WINDOW.end_ns),
    ):
        records.started += 1
        records.note(0, done_ns, int(outcome), 0)
        if outcome == Status.OK:
            records.note_first()
    result = combine(
        replace(OPEN, clients=1, connections_per_client=3), WINDOW, [report(0, called, failed, served_late, plan=OPEN)]
    )
    assert (result.starved_clients, result.sending_connections, result.starved_connections) == (0, 1, 2)


def test_what_is_said_of_each_client_is_in_the_clients_order() -> None:
    """Values of each client are in the order of the clients' numbers, and not in the order of their ends."""
    reports = []
    for client in (2, 0, 1):
        each = report(client, plan=OPEN, cpu_s=client / 10)
        assert each.recorded is not None
        seen = replace(each.recorded, arrivals=replace(bad_arrivals(), count=client))
        reports.append(replace(each, recorded=seen))
    result = combine(replace(OPEN, clients=3), WINDOW, reports)
    assert [check.count for check in result.arrivals] == [0, 1, 2]
    assert result.client_cpu_each_s == (0.0, 0.1, 0.2)


@pytest.mark.parametrize(
    ("unsent", "said"),
    [(0, None), (1, "1 request was due and never sent"), (1200, "1,200 requests were due and never sent")],
)
def test_what_was_due_and_never_sent_is_off_the_schedule(unsent: int, said: str | None) -> None:
    """Unsent requests put a run off its schedule, also for a client that sent too little for a check of its gaps."""
    records = Records()
    for number in range(40 + unsent):
        due_ns = WINDOW.start_ns + number * MS
        records.started += 1
        records.note(due_ns, due_ns + 100 * US, Status.OK if number < 40 else NEVER_SENT, due_ns)
    result = combine(replace(OPEN, clients=1), WINDOW, [report(0, records, plan=OPEN)])
    assert result.arrivals == ()
    assert result.off_schedule == said


# ---- what is kept


def numbers(request: RequestResult) -> list[object]:
    """Every field that is not a histogram."""
    names = [field.name for field in fields(request) if field.name not in ("response", "service")]
    return [getattr(request, name) for name in names]


def closed_result() -> LoadResult:
    """Result of a closed loop, with a starved client and a lost client."""
    return combine(PLAN, WINDOW, [report(0, closed_records(), closed_records(think_us=7)), starved()], lost=1)


def open_result() -> LoadResult:
    """Result of an open loop with errors, which did not keep its schedule."""
    return replace(open_run(times_us=(100, 900, 20_000), failed=3), arrivals=(bad_arrivals(),))


def no_result() -> LoadResult:
    """Result of a run that was over before it began."""
    return combine(PLAN, Window(0, 1000, 1000), [starved()], interrupted=True)


@pytest.mark.parametrize("result", [closed_result(), open_result(), no_result()], ids=["closed", "open", "nothing"])
def test_what_is_kept_gives_every_number_again(result: LoadResult) -> None:
    """After JSON the counts, and every number that is computed from them, are exactly the same."""
    text = json.dumps(to_json(result), allow_nan=False)
    again = from_json(json.loads(text))
    assert json.dumps(to_json(again), allow_nan=False) == text
    assert again.requests.keys() == result.requests.keys()
    for name, request in result.requests.items():
        assert numbers(again.requests[name]) == numbers(request)
        assert again.requests[name].response.encode() == request.response.encode()
        assert again.requests[name].service.encode() == request.service.encode()
    computed = [name for name, kind in vars(LoadResult).items() if isinstance(kind, property) and name != "requests"]
    assert [getattr(again, name) for name in computed] == [getattr(result, name) for name in computed]


@pytest.mark.parametrize("missing", ["rate_hz", "parts", "connects", "began", "arrivals", "cores"])
def test_what_is_not_whole_is_refused(missing: str) -> None:
    """A missing field raises an error that names the field."""
    document = to_json(open_run(count=200))
    del document[missing]
    with pytest.raises(msgspec.ValidationError, match=missing):
        from_json(document)
