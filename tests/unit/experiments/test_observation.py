"""What was seen of a run, as rows: from a real load result, with times that are known."""

import dataclasses

import pytest

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import TYPE_STEP, fault_outcome
from clients.load.record.recorder import ClientReport, Recorder
from clients.load.record.records import Records, Window
from clients.load.record.result import LoadResult, combine
from clients.load.run.floor import Floor
from experiments.design import LOOKUP_AND_TRADE, Run, Setting
from experiments.observation import LockWait, Machine, Observation, rows
from experiments.timeline import StageSummary, StageTimes
from stock_service.rpc.errors import DeadlineExceeded
from stock_service.trading.model import Status
from tests.unit.experiments import planted_runs

MS = 1_000_000
WINDOW = Window(connect_ns=0, start_ns=100 * MS, end_ns=1100 * MS)
SETTING = Setting("locks", 0.1, 1.0, clients=2, mix=LOOKUP_AND_TRADE, lock_waits=True)
RUN = Run("002-007", block=2, order=7, seed=99, setting=SETTING)
WAITS = {"read": LockWait(0.3, 2.0), "write": LockWait(0.7, 5.0)}


def load_result(cpu_s: float = 0.25) -> LoadResult:
    """Two clients: lookups of 2 ms and trades of 4 ms by turns, one of them with a timeout at the end."""
    plan = LoadPlan("sockets", ("127.0.0.1", 1), 2, dict(LOOKUP_AND_TRADE), ("GameStart",), 0.1, 1.0)
    reports = []
    for client in (0, 1):
        recorder = Recorder(plan, client, WINDOW)
        records, span, now = Records(), recorder.new_span(0), 90 * MS
        records.note_connect(0, 5 * MS)
        while now < WINDOW.end_ns:
            for place, took in ((0, 2 * MS), (1, 4 * MS)):
                records.note(now, now + took, place * TYPE_STEP + Status.OK)
                now += took
        if client == 1:
            records.note(1090 * MS, 1095 * MS, fault_outcome(DeadlineExceeded("late")))
        records.started = len(records.outcomes)
        recorder.fold(records, span)
        reports.append(ClientReport(client, recorder.recorded(), cpu_s))
    return combine(plan, WINDOW, reports)


SEEN = Observation("2026-01-02T03:04:05+00:00", True, 1.0, 0.4, 21.5, load_result(), WAITS)


def test_a_run_has_a_row_for_each_request_type_and_last_one_for_all() -> None:
    """Each with the run's factors, its place and its seed."""
    found = rows("stock", RUN, SEEN)
    assert [row.request for row in found] == ["lookup", "trade", "all"]
    for row in found:
        assert (row.study, row.part, row.block, row.order, row.run_id, row.seed) == (
            "stock",
            "locks",
            2,
            7,
            "002-007",
            99,
        )
        assert (row.mix, row.clients, row.workers, row.locking) == ("lookup=0.5,trade=0.5", 2, 10, "mutex")


def test_latency_and_count_are_of_the_rows_own_request_type() -> None:
    """2 and 4 ms; of all, their mean, and N ÷ X the same."""
    lookup, trade, everything = rows("stock", RUN, SEEN)
    assert lookup.response_us_p50 == pytest.approx(2000, rel=0.001)
    assert trade.response_us_mean == pytest.approx(4000)
    assert everything.response_us_mean == pytest.approx(3000, rel=0.01)
    assert everything.count == lookup.count + trade.count
    assert everything.throughput_hz == lookup.throughput_all_hz == everything.count / 1.0
    assert everything.n_over_x_us == pytest.approx(3000, rel=0.02)
    assert everything.connect_us_mean == 5000
    assert lookup.outcomes == f"OK:{lookup.count}"


def test_an_error_is_counted_and_its_time_up_to_it_is_in_the_latency() -> None:
    """In its request type's row and in that of all: 5 ms, where every answer took 2."""
    lookup, trade, everything = rows("stock", RUN, SEEN)
    assert (lookup.errors, lookup.error_kinds) == (1, "deadline_exceeded:1")
    assert (trade.errors, everything.errors) == (0, 1)
    assert lookup.response_us_max == pytest.approx(5000)
    assert trade.response_us_max == pytest.approx(4000)


def test_processor_time_is_divided_among_all_requests() -> None:
    """A server does not say what it spent on which."""
    for row in rows("stock", RUN, SEEN):
        count = SEEN.load.requests["all"].count if SEEN.load else 0
        assert row.server_cpu_us_per_request == pytest.approx(0.4e6 / count)


def test_an_updaters_requests_are_not_charged_to_the_clients() -> None:
    """The server's time beside an updater is for requests that nobody counted; a window missed has no time at all."""
    beside = dataclasses.replace(RUN, setting=dataclasses.replace(SETTING, updater=True))
    assert {row.server_cpu_us_per_request for row in rows("stock", beside, SEEN)} == {None}
    missed = rows("stock", RUN, dataclasses.replace(SEEN, server_cpu_s=None))
    assert {(row.server_cpu_s, row.server_cpu_us_per_request) for row in missed} == {(None, None)}


def test_an_updater_on_the_clients_core_is_part_of_the_load() -> None:
    """Clients at 70 % and an updater at 15 % leave their common core no room; on cores of their own they do."""
    seen = dataclasses.replace(SEEN, load=load_result(0.35), updater_cpu_s=0.15)
    row = rows("stock", RUN, seen)[-1]
    assert row.client_cpu_share == pytest.approx(0.85)
    assert row.load_limited
    assert not rows("stock", RUN, dataclasses.replace(seen, pinned=False))[-1].load_limited


def test_a_lookup_waits_as_a_reader_and_a_trade_as_a_writer() -> None:
    """Of all together there is no one wait, and where it was not timed there is none at all."""
    lookup, trade, everything = rows("stock", RUN, SEEN)
    assert (lookup.lock_wait_us_mean, trade.lock_wait_us_mean) == (0.3, 0.7)
    assert (lookup.lock_wait_us_p99, trade.lock_wait_us_p99) == (2.0, 5.0)
    assert everything.lock_wait_us_mean is None
    untimed = dataclasses.replace(SEEN, lock_waits=None)
    assert {row.lock_wait_us_mean for row in rows("stock", RUN, untimed)} == {None}


@pytest.mark.parametrize(
    ("pinned", "cpu_s", "share", "limited"),
    [(True, 0.25, 0.5, False), (True, 0.45, 0.9, True), (False, 0.45, 0.45, False), (False, 0.9, 0.9, True)],
)
def test_clients_on_one_core_are_summed_against_it(pinned: bool, cpu_s: float, share: float, limited: bool) -> None:
    """Two clients of 45 % each leave a core no room; on cores of their own they are held against one each."""
    seen = dataclasses.replace(SEEN, pinned=pinned, load=load_result(cpu_s))
    row = rows("stock", RUN, seen)[-1]
    assert row.client_cpu_share == pytest.approx(share)
    assert row.load_limited is limited


def test_clients_that_leave_their_cores_no_room_limit_wherever_they_run() -> None:
    """Two clients of 85 % between them on one core, with nothing pinned."""
    load = dataclasses.replace(load_result(0.425), cores=1)
    unpinned = dataclasses.replace(SEEN, pinned=False, load=load)
    assert rows("stock", RUN, unpinned)[-1].load_limited
    assert not rows("stock", RUN, dataclasses.replace(unpinned, load=dataclasses.replace(load, cores=2)))[
        -1
    ].load_limited


def test_a_server_that_nobody_calls_has_one_row() -> None:
    """With its processor time and memory, and no latency."""
    setting = dataclasses.replace(SETTING, part="idle", clients=0, connections=1000)
    (row,) = rows("server_cost", dataclasses.replace(RUN, setting=setting), dataclasses.replace(SEEN, load=None))
    assert (row.request, row.count, row.connections) == ("all", 0, 1000)
    assert (row.server_cpu_s, row.server_memory_mib) == (0.4, 21.5)
    assert row.response_us_mean is None
    assert row.server_cpu_us_per_request is None


def test_what_was_begun_and_never_recorded_is_lost_in_every_row() -> None:
    """As one that the client started and forgot."""
    load = load_result()
    assert {row.lost for row in rows("stock", RUN, SEEN)} == {0}
    forgotten = dataclasses.replace(SEEN, load=dataclasses.replace(load, began=load.began + 1))
    assert {row.lost for row in rows("stock", RUN, forgotten)} == {1}


def test_the_clients_own_time_is_in_littles_law() -> None:
    """Requests follow each other at once here, so that N = X · (R + Z) holds to within the one with the timeout."""
    everything = rows("stock", RUN, SEEN)[-1]
    assert everything.think_us_mean == pytest.approx(0, abs=0.01)
    assert everything.little_ratio == pytest.approx(1, abs=0.01)
    assert (everything.loop, everything.rate_hz, everything.arrivals, everything.late_us_p99) == (
        "closed",
        None,
        "",
        None,
    )


def test_an_open_loops_row_has_its_rate_its_arrivals_and_how_late_it_sent() -> None:
    """What was declared, and what was seen of it; service time is then not response time, and there is no N ÷ X."""
    (run,) = (run for run in planted_runs.DESIGN.runs()[:8] if run.setting.part == "offered_load")
    setting = dataclasses.replace(run.setting, duration_s=0.5)
    run = dataclasses.replace(run, setting=setting)
    everything = rows("stock", run, planted_runs.observed(run))[-1]
    assert (everything.loop, everything.rate_hz, everything.arrivals, everything.client) == (
        "open",
        4000,
        "poisson",
        "lean",
    )
    assert everything.late_us_p99 is not None
    assert everything.arrival_rate_ratio == pytest.approx(1, abs=0.3)
    assert everything.arrival_variation is not None
    assert everything.arrival_ks_distance is not None
    assert everything.arrival_dispersion is not None
    assert everything.service_us_mean is not None
    assert everything.response_us_mean is not None
    assert everything.service_us_mean < everything.response_us_mean
    assert (everything.n_over_x_us, everything.little_ratio, everything.think_us_mean) == (None, None, None)


def test_the_machine_the_floor_and_the_server_are_in_every_row() -> None:
    """As they were seen; where they were not, nothing."""
    seen = dataclasses.replace(
        SEEN, server_threads=12, server_connections=2, floor=Floor(25.5, 61.0), machine=Machine(0.02, 1990.0)
    )
    assert {row.attempt for row in rows("stock", RUN, seen)} == {1}
    for row in rows("stock", RUN, seen, attempt=3):
        assert row.attempt == 3
        assert (row.server_threads, row.server_connections, row.floor_us_p50) == (12, 2, 25.5)
        assert (row.steal_share, row.calibration_us, row.warm_up_s) == (0.02, 1990.0, 0.1)
    for row in rows("stock", RUN, SEEN):
        assert row.server_threads is row.server_connections is row.floor_us_p50 is row.steal_share is None


def test_stages_are_those_of_the_rows_own_request_type() -> None:
    """A type that was not stamped has none."""

    def stages(first: float) -> StageSummary:
        times = [StageTimes(first + place, first + place, first + place) for place in range(6)]
        queue, preparation, lock, service, reply, total = times
        return StageSummary(9, 9, 1, queue, preparation, lock, service, reply, total, 0, 0.0)

    seen = dataclasses.replace(SEEN, stages={"lookup": stages(10.0), "all": stages(20.0)})
    lookup, trade, everything = rows("stock", RUN, seen)
    assert (lookup.stage_queue_us_mean, everything.stage_queue_us_mean, trade.stage_queue_us_mean) == (10, 20, None)
    names = ("preparation", "lock", "service", "reply", "total")
    assert [getattr(lookup, f"stage_{name}_us_mean") for name in names] == [11, 12, 13, 14, 15]
    assert (lookup.stage_total_us_p50, lookup.stage_total_us_p99, lookup.stage_violation_share) == (15, 15, 0)


def test_a_percentile_has_the_requests_that_are_independent() -> None:
    """No more than there are; alike in the rows of one type and of all, by their shares."""
    lookup, _, everything = rows("stock", RUN, SEEN)
    assert lookup.effective_count is not None
    assert everything.effective_count is not None
    assert 0 < lookup.effective_count <= lookup.count + lookup.errors
    assert lookup.effective_count < everything.effective_count
