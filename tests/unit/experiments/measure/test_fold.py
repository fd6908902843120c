"""Folding: requests that count, fates of slices, and effective sample sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from clients.load.plan.load_plan import LoadPlan
from clients.load.plan.outcomes import FAULT_FIRST, TYPE_STEP
from clients.load.plan.turns import Turn, TurnLoad
from clients.load.record.turn_records import Requests, TurnRecords
from experiments.measure.fold import effective, fold, mean_responses_s
from experiments.results.observed import ALL, ANSWERED_LATE, KEPT, SILENT, STARTED_LATE, ArmSeen, SliceColumns

US = 1_000

TURNS = tuple(
    Turn(load, begin, begin + 10 * US, begin + 110 * US, begin + 140 * US)
    for load, begin in ((0, 1000 * US), (1, 1140 * US), (0, 1280 * US))
)

OK, UNAVAILABLE = 1, FAULT_FIRST + 14


def load(clients: int = 1, mix: Sequence[str] = ("lookup",), updates: bool = False) -> TurnLoad:
    """A load with this number of clients."""
    of = "sockets", ("127.0.0.1", 1), clients, dict.fromkeys(mix, 1.0), ("GameStart",), 0.0, 1.0
    plan = LoadPlan(*of, client="library")
    return TurnLoad(plan, (), 0.02 if updates else None)


@dataclass
class Wrote:
    """Records of a connection. A request has its send and its reply in µs, and its outcome."""

    requests: list[tuple[float, float, int]] = field(default_factory=list)
    lost: int = 0
    """Number of requests that began and were not recorded."""

    def closed_loop(self, turn: Turn, response_us: float, think_us: float = 0.0, outcome: int = OK) -> "Wrote":
        """Adds requests one after another, from a turn's begin until all counted requests are answered."""
        now_us = turn.begin_ns / US
        while now_us * US < turn.last_ns:
            self.requests.append((now_us, now_us + response_us, outcome))
            now_us += response_us + think_us
        return self

    def taken(self) -> Requests:
        """The records as arrays."""
        sent, done, outcomes = zip(*self.requests, strict=True) if self.requests else ((), (), ())
        sent_ns, done_ns = (np.array([round(each * US) for each in column], dtype=np.int64) for column in (sent, done))
        return Requests(0, sent_ns, done_ns, np.array(outcomes, dtype=np.uint8), len(outcomes) + self.lost)


def report(client: int, *connections: Wrote, cpu_ns: int = 0) -> TurnRecords:
    """Records of a client process."""
    clock = np.full(len(TURNS), cpu_ns, dtype=np.int64)
    return TurnRecords(client, tuple(each.taken() for each in connections), clock, 2 * clock, 3 * clock)


def folded(
    reports: Sequence[TurnRecords], loads: Sequence[TurnLoad] = (load(), load()), robbed: Sequence[int] = ()
) -> tuple[SliceColumns, list[ArmSeen]]:
    """Slices and arms of ``TURNS``, whose last turn is in a second round."""
    return fold([(0, 0), (0, 0), (1, 1)], TURNS, loads, reports, robbed)


def usual(response_us: float = 10.0, think_us: float = 0.0) -> Wrote:
    """Records of a connection that sends in every turn."""
    wrote = Wrote()
    for turn in TURNS:
        wrote.closed_loop(turn, response_us, think_us)
    return wrote


def test_a_request_counts_if_it_was_sent_in_the_counted_part() -> None:
    """A request counts if its send is in the counted part, including the start and excluding the end of this part."""
    wrote = usual()
    slices, arms = folded([report(0, wrote)])
    assert slices.fate == [KEPT] * 3
    assert slices.counts[ALL] == [10, 10, 10]  # at 10, 20, … 100 µs of each
    assert slices.sums_ns[ALL] == [100 * US] * 3
    assert slices.requests == [11, 11, 11]
    assert arms[0].answered[ALL].times.count == 20
    assert arms[1].answered[ALL].times.sum_ns == 100 * US
    edge = Wrote([*wrote.requests, (1110, 1120, OK), (1109.999, 1110.999, OK)])
    assert folded([report(0, edge)])[0].counts[ALL] == [11, 10, 10]


def test_a_connection_that_begins_late_spoils_its_slice() -> None:
    """A slice is lost if one of its two connections begins late. Its times are left out, and its errors count. Other
    slices are kept."""
    late = Wrote([each for each in usual().requests if not 1140 <= each[0] < 1151])
    failing = Wrote([*usual().requests, (1180.5, 1185, UNAVAILABLE)])
    slices, arms = folded([report(0, failing), report(1, late)], [load(2), load(2)])
    assert slices.fate == [KEPT, STARTED_LATE, KEPT]
    assert (arms[1].answered[ALL].times.count, arms[1].answered[ALL].errors) == (0, {"unavailable": 1})
    assert arms[0].answered[ALL].times.count == 40


def test_a_counted_request_that_is_answered_late_spoils_its_slice() -> None:
    """A slice is lost if a counted request is answered after the end of the slice. A request that does not count may
    take any time."""
    for sent_us, done_us, fate in (
        (1100, 1140, KEPT),
        (1100, 1140.001, ANSWERED_LATE),
        (1115, 1139, KEPT),
        (1115, 9000, KEPT),
    ):
        wrote = Wrote([*usual().requests[:-12], *usual().requests[-11:], (sent_us, done_us, OK)])
        assert folded([report(0, wrote)])[0].fate[0] == fate


def test_a_slice_without_a_counted_request_is_silent() -> None:
    """A slice without a counted request is silent, even if its connection had begun."""
    wrote = Wrote([each for each in usual().requests if each[0] <= 1140 or each[0] >= 1280])
    slices, arms = folded([report(0, wrote)])
    assert slices.fate == [KEPT, SILENT, KEPT]
    assert slices.counts[ALL] == [10, 0, 10]
    assert (arms[1].span_ns, arms[1].answered[ALL].effective) == (0, 0)


def test_a_lost_slice_still_says_how_slow_its_arm_is() -> None:
    """A lost slice has a mean response time. A slice without requests has 0."""
    wrote = Wrote().closed_loop(TURNS[0], 10).closed_loop(TURNS[1], 60)
    slices, _ = folded([report(0, wrote), report(1, Wrote())], [load(1), load(2)])
    assert slices.fate == [KEPT, STARTED_LATE, SILENT]
    assert mean_responses_s(slices) == pytest.approx([10e-6, 60e-6, 0.0])


def test_faults_are_counted_by_kind_and_are_in_no_time() -> None:
    """Faults are counted by kind. Faults have no times, and are not answered requests."""
    wrote = usual()
    wrote.requests[3] = (wrote.requests[3][0], wrote.requests[3][1], UNAVAILABLE)
    slices, arms = folded([report(0, wrote)])
    assert slices.counts[ALL] == [9, 10, 10]
    assert slices.requests[0] == 10
    assert arms[0].answered[ALL].errors == {"unavailable": 1}
    assert arms[0].answered[ALL].outcomes == {"OK": 19}


def test_request_types_are_told_apart() -> None:
    """A request type is an index in the mix of its load. Another load may have another mix."""
    mixed = [load(mix=("lookup", "trade")), load(mix=("trade",))]
    wrote = usual()
    for place in range(0, 11, 2):  # of the first turn: trades
        sent, done, _ = wrote.requests[place]
        wrote.requests[place] = (sent, done, TYPE_STEP + OK)
    slices, arms = folded([report(0, wrote)], mixed)
    assert slices.counts["lookup"] == [5, 0, 10]
    assert slices.counts["trade"] == [5, 10, 0]
    assert slices.counts[ALL] == [10, 10, 10]
    assert arms[0].answered["trade"].times.count == 5
    assert list(arms[1].answered) == ["trade", ALL]


def test_think_and_response_times_fill_the_span() -> None:
    """Think times plus response times equal the span from the first counted send to the last counted reply."""
    wrote = usual(response_us=7, think_us=3)
    _, arms = folded([report(0, wrote), report(1, usual(response_us=10))], [load(2), load(2)])
    of_all = arms[1].answered[ALL].times
    assert arms[1].think_ns == 9 * 3 * US  # ten requests of the first connection; the second does not think
    assert arms[1].span_ns == (9 * 10 + 7) * US + 100 * US
    assert of_all.sum_ns + arms[1].think_ns == arms[1].span_ns
    assert (arms[0].think_ns, arms[0].span_ns) == (2 * arms[1].think_ns, 2 * arms[1].span_ns)


def test_clocks_of_all_clients_are_added_up() -> None:
    """Processor times of all clients are added up for each slice. The updater is left out."""
    slices, _ = folded([report(0, usual(), cpu_ns=5), report(1, usual(), cpu_ns=2)], [load(2), load(2)])
    assert (slices.client_cpu_ns, slices.server_cpu_ns, slices.wire_bytes) == ([7] * 3, [14] * 3, [21] * 3)
    alone, _ = folded([report(0, usual(), cpu_ns=5), report(1, usual(), cpu_ns=2)])
    assert alone.client_cpu_ns == [5] * 3
    assert slices.active_ns == [110 * US] * 3
    assert slices.counted_ns == [100 * US] * 3


def test_updates_count_for_the_load_in_whose_slice_they_were_sent() -> None:
    """Updates and failed updates count for the load of their slice. Updates have no times."""
    updates = Wrote([(1005, 1010, OK), (1100, 1110, UNAVAILABLE), (1150, 1160, OK), (1300, 1310, OK)])
    slices, arms = folded([report(0, usual()), report(1, updates)], [load(updates=True), load()])
    assert [(arm.updates, arm.update_errors) for arm in arms] == [(3, 1), (1, 0)]
    assert slices.counts[ALL] == [10] * 3


@pytest.mark.slow
@pytest.mark.parametrize("stall_share", [0.0, 0.05])
def test_requests_of_a_slice_are_worth_as_many_as_their_p99_varies(stall_share: float) -> None:
    """In 400 simulated blocks, the variance of the share above the true p99 gives the effective sample size. Without
    stalls it is the number of requests. Stalls, which slow several requests of a slice, leave a fraction."""
    rng = np.random.default_rng(1)
    slices, each = 60, 100
    clusters = np.repeat(np.arange(slices), each)

    def block() -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        times = rng.exponential(100_000, (slices, each))
        stalled = rng.random(slices) < stall_share
        times[stalled, 40:60] += 5_000_000
        return np.rint(times).astype(np.int64).ravel()

    blocks = [block() for _ in range(400)]
    truth = np.percentile(np.concatenate(blocks), 99)
    beyond = np.array([(times > truth).mean() for times in blocks])
    worth = 0.01 * 0.99 / beyond.var(ddof=1)
    said = float(np.median([effective(times, clusters) for times in blocks]))
    assert 0.75 < said / min(worth, slices * each) < 1.35
    assert (worth < 0.2 * slices * each) == bool(stall_share)


def test_few_slices_say_nothing_of_their_dependence() -> None:
    """One slice, no slice, and equal values give the number of requests as the effective sample size."""
    assert effective(np.zeros(0, np.int64), np.zeros(0, np.int64)) == 0
    assert effective(np.arange(100), np.zeros(100, np.int64)) == 100
    assert effective(np.ones(100, np.int64), np.arange(100) // 10) == 100


def test_errors_and_pauses_of_lost_slices_are_kept() -> None:
    """A slice with a timeout or a long pause is lost, and is in no pair. The timeout counts as an error, and the pause
    is in the arm's histogram."""
    for outcome, errors, max_ns in ((UNAVAILABLE, {"unavailable": 1}, 10 * US), (OK, {}, 300 * US)):
        slices, arms = folded([report(0, Wrote([*usual().requests, (1180.5, 1480.5, outcome)]))])
        assert slices.fate == [KEPT, ANSWERED_LATE, KEPT]
        assert (arms[1].answered[ALL].errors, arms[1].answered[ALL].times.max_ns) == (errors, max_ns)


def test_what_was_sent_to_another_server_is_in_no_slice() -> None:
    """A request that a late client sends to another server than the slice's server is left out."""
    stray = Requests(7, np.array([1200 * US]), np.array([1205 * US]), np.array([OK], dtype=np.uint8), 1)
    clean = report(0, usual())
    both = TurnRecords(0, (*clean.requests, stray), clean.client_cpu_ns, clean.server_cpu_ns, clean.wire_bytes)
    assert folded([both])[0] == folded([clean])[0]


def test_a_robbed_round_is_in_no_histogram() -> None:
    """A round that lost too much time is left out of histograms. Its sums stay."""
    slices, arms = folded([report(0, usual())], robbed=[1])
    all_of_it, whole = folded([report(0, usual())])
    assert arms[0].answered[ALL].times.count == slices.counts[ALL][0] < whole[0].answered[ALL].times.count
    assert arms[1].answered[ALL].times.count == whole[1].answered[ALL].times.count == slices.counts[ALL][1]
    assert slices == all_of_it


def test_requests_that_were_never_written_down_are_counted() -> None:
    """Requests that began and were never recorded are counted, for each load of a shared connection."""
    wrote = usual()
    assert [arm.unrecorded for arm in folded([report(0, wrote)])[1]] == [0, 0]
    wrote.lost = 2
    assert [arm.unrecorded for arm in folded([report(0, wrote)])[1]] == [2, 2]
