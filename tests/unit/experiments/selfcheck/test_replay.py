"""Replay finds faults of a client's clock, schedule or records, and none in a right client."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np
import pytest

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.recorder import RawRecords
from experiments.selfcheck import replay
from experiments.selfcheck.load import LoadFailed
from experiments.selfcheck.queue_server import Log, Options, service_times_ns
from experiments.selfcheck.replay import MINUTES, PARTS, Compared, compare, judge
from experiments.selfcheck.steal import StealWatch
from experiments.selfcheck.theory import lindley

OPTIONS = Options(servers=2, mean_s=0.001, seed=4)
REQUESTS, CONNECTIONS = 400, 2
"""Number of connections, so small that replies overtake each other on one."""

WIRE_NS = 20_000


def planted() -> tuple[Log, RawRecords]:
    """A server's log, and the records of a client that is right: 20 µs on the wire each way, no late sends."""
    rng = np.random.default_rng(3)
    due_ns = np.cumsum(rng.exponential(700_000, REQUESTS)).astype(np.int64)
    arrival_ns = due_ns + WIRE_NS
    services = service_times_ns(OPTIONS.mean_s, OPTIONS.seed)
    departure_ns = arrival_ns + np.array(lindley(arrival_ns.tolist(), services, OPTIONS.servers))
    connection = np.arange(REQUESTS) % CONNECTIONS
    call = np.arange(REQUESTS) // CONNECTIONS + 1
    log = Log(connection, call, np.zeros(REQUESTS, dtype=np.int64), arrival_ns, departure_ns, departure_ns)
    done_ns = departure_ns + WIRE_NS
    order = np.lexsort((done_ns, connection))  # as a client keeps them: by connection, in order of done
    assert (np.diff(due_ns[order][: REQUESTS // CONNECTIONS]) < 0).any()
    return log, RawRecords(
        due_ns=due_ns[order],
        sent_ns=due_ns[order],
        done_ns=done_ns[order],
        outcomes=np.ones(REQUESTS, dtype=np.uint8),
        connection=connection[order].astype(np.int32),
        first=call[order] == 1,
    )


def test_a_client_that_times_from_the_send_is_off() -> None:
    """Sends that are 5 ms late, without this time in the response time, are found (coordinated omission)."""
    log, records = planted()
    late_ns = 5_000_000
    sent_ns = records.sent_ns
    honest = replace(records, due_ns=sent_ns - late_ns)
    assert compare(log, honest, OPTIONS).off_ns.tolist() == [2 * WIRE_NS + late_ns] * REQUESTS
    assert not judge("replay", compare(log, honest, OPTIONS), StealWatch(), MINUTES).passed


def test_a_wrong_clock_is_off() -> None:
    """A clock of twice the speed is found, since every time is too long."""
    log, records = planted()
    took_ns = records.done_ns - records.due_ns
    wrong = replace(records, done_ns=records.due_ns + 2 * took_ns)
    assert not judge("replay", compare(log, wrong, OPTIONS), StealWatch(), MINUTES).passed


def test_a_lost_record_is_found() -> None:
    """A request that the client's records lack is found."""
    log, records = planted()
    fewer = RawRecords(*(getattr(records, column.name)[1:] for column in fields(records)))
    with pytest.raises(LoadFailed, match="400 requests, the client's records 399"):
        compare(log, fewer, OPTIONS)


def test_a_request_that_arrived_before_it_was_sent_is_found() -> None:
    """Records of another clock, or of another request, contradict the server's."""
    log, records = planted()
    with pytest.raises(LoadFailed, match="400 requests arrived before they were sent"):
        compare(log, replace(records, sent_ns=records.sent_ns + 2 * WIRE_NS), OPTIONS)


def test_a_server_that_departs_from_the_recursion_is_found() -> None:
    """A server that serves one request out of turn departs from the recursion, and is found."""
    log, records = planted()
    wrong = log.departure_ns.copy()
    wrong[7] += 1
    with pytest.raises(LoadFailed, match="not those of the recursion"):
        compare(replace(log, departure_ns=wrong), records, OPTIONS)


def judged(
    off_ms: list[float], moments: list[tuple[int, int]], parts: list[int] | None = None
) -> tuple[bool | None, str]:
    """The verdict on requests that are a second apart, each so far off in one of the parts, with moments of steal in
    seconds."""
    off_ns = np.array([int(each * 1e6) for each in off_ms])
    due_ns = np.arange(len(off_ms)) * 1_000_000_000
    watch = StealWatch()
    watch.moments += [(int(began * 1e9), int(ended * 1e9)) for began, ended in moments]
    part = np.array(parts or [1] * len(off_ms))
    late_ns = np.array([np.where(part == number, off_ns, 0) for number in range(len(PARTS))])
    finding = judge("replay", Compared(due_ns, due_ns + 1_000_000, late_ns), watch, MINUTES)
    return finding.passed, finding.shown


@pytest.mark.parametrize(
    ("off_ms", "stolen_s", "passed", "said"),
    [
        ([0.1] * 999 + [9.0], 0, True, "99.90% of 1,000 within 1 ms"),
        ([0.1] * 998 + [9.0] * 2, 0, False, "99.80% of 1,000 within 1 ms"),
        ([0.2] * 1000, 0, False, "median off 200 µs"),
        ([-0.2] * 1000, 0, False, "median off 200 µs"),
        ([9.0] * 10 + [0.1] * 990, 10, True, "10 left out"),
        ([0.1] * 1000, 101, False, "too many"),
    ],
    ids=["one far", "two far", "median", "median early", "steal", "too much steal"],
)
def test_the_bounds_of_a_replay(off_ms: list[float], stolen_s: int, passed: bool, said: str) -> None:
    """999 of 1,000 requests must be within 1 ms, and the median within 150 µs. Requests at a moment of steal are left
    out, but not more than a tenth of all requests."""
    found = judged(off_ms, [(0, stolen_s)] if stolen_s else [])
    assert found[0] is passed
    assert said in found[1]


def test_where_requests_were_late_is_said_and_nothing_excused_by_it() -> None:
    """Each request that is too far off is named where it was late most. It is not excused by this. Others are not
    counted."""
    passed, shown = judged([9.0] * 6 + [0.1] * 994, [], [2, 0, 2, 1, 3, 2] + [0] * 994)
    assert passed is False
    assert "; of those farther off sent late 1, read late by the server 1, answered late by it 3, seen late by" in shown
    assert " by the client 1, too short 0; " in shown


def test_a_time_that_is_too_short_was_late_nowhere() -> None:
    """A time that is too short is an error of the client's clock, and as far off as one that is too long."""
    passed, shown = judged([-5.0] * 2 + [9.0] + [0.1] * 997, [])
    assert passed is False
    assert (
        "sent late 0, read late by the server 1, answered late by it 0, seen late by the client 0, too short 2; "
        in shown
    )


def test_every_part_of_a_lateness_is_told_from_the_others() -> None:
    """Sent 1 ms late, read 2 ms later than that, answered 3 ms late, seen 4 ms after: 10 ms in all."""
    log, records = planted()
    ms = 1_000_000
    late_log = replace(log, sent_ns=log.departure_ns + 3 * ms)
    sent_ns = records.sent_ns + WIRE_NS - 2 * ms
    done_ns = records.done_ns - WIRE_NS + 7 * ms
    compared = compare(late_log, replace(records, due_ns=sent_ns - ms, sent_ns=sent_ns, done_ns=done_ns), OPTIONS)
    assert compared.late_ns.tolist() == [[ms] * REQUESTS, [2 * ms] * REQUESTS, [3 * ms] * REQUESTS, [4 * ms] * REQUESTS]
    assert compared.off_ns.tolist() == [10 * ms] * REQUESTS


@pytest.mark.parametrize("why", ["", "no second core"])
def test_a_server_is_replayed_both_ways(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """Server and client have real-time priority in half of the runs. Where it is not allowed, these runs are skipped
    with the reason."""
    had: list[tuple[bool, bool]] = []

    @contextmanager
    def queue_server(options: Options) -> Iterator[tuple[None, tuple[str, int]]]:
        had.append((options.real_time, options.real_time))
        yield None, ("127.0.0.1", 1)

    def run(plan: LoadPlan) -> None:
        had[-1] = (had[-1][0], plan.real_time)
        raise LoadFailed("enough")

    monkeypatch.setattr(replay, "queue_server", queue_server)
    monkeypatch.setattr(replay, "run", run)
    monkeypatch.setattr(replay, "no_real_time", lambda: why)
    findings = replay.check(MINUTES)
    assert had == [(False, False)] * 2 + [(True, True)] * (0 if why else 2)
    names = ["replay, 1 server", "replay, 4 servers"]
    assert [finding.name for finding in findings] == names + [f"{name}, at real-time priority" for name in names]
    assert [finding.passed for finding in findings] == [False, False] + [None if why else False] * 2
    assert [finding.shown for finding in findings[2:]] == [why or "enough"] * 2


def test_the_warm_up_is_not_judged() -> None:
    """Requests due in the first half second are left out."""
    nothing = np.array([0, 0, 0])
    compared = Compared(np.array([10**9, 12 * 10**8, 15 * 10**8]), nothing, np.array([[5, 6, 4], [0, 0, 3]]))
    assert compared.due_after(0.5).off_ns.tolist() == [7]
