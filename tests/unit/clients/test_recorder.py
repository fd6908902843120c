"""Histograms, merging, and what belongs to the window."""

import pickle
import random
import statistics

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from clients.load.recorder import HIGHEST_NS, Recorder, Times, merged
from clients.load.records import INVALID_REPLY, TYPE_STEP, Records, Window, fault_outcome
from stock_service.errors import DeadlineExceeded, Unavailable
from stock_service.model import Status

WINDOW = Window(0, 1000, 2000)


def times(values: list[int]) -> Times:
    """A distribution of these values, in nanoseconds."""
    recorded = Times()
    recorded.record(np.array(values, dtype=np.int64))
    return recorded


def lognormal(rng: random.Random, count: int) -> list[int]:
    """Times as a server gives them: a few hundred µs, now and then many."""
    return [int(rng.lognormvariate(12.5, 1.0)) + 1 for _ in range(count)]


def test_percentiles_are_within_a_thousandth(rng: random.Random) -> None:
    """Of those of the values themselves, sorted; mean, deviation and extremes are exact."""
    values = sorted(lognormal(rng, 20_000))
    said = times(values).distribution()
    assert said.p50_us is not None
    assert said.p99_us is not None
    assert said.mean_us is not None
    assert said.p50_us * 1000 == pytest.approx(values[9_999], rel=1.1e-3)
    assert said.p99_us * 1000 == pytest.approx(values[19_799], rel=1.1e-3)
    assert said.mean_us * 1000 == pytest.approx(statistics.fmean(values))
    assert said.stddev_us == pytest.approx(statistics.pstdev(values) / 1000)
    assert (said.min_us, said.max_us, said.count) == (values[0] / 1000, values[-1] / 1000, 20_000)


@pytest.mark.slow
@given(st.lists(st.integers(1, HIGHEST_NS), min_size=1, max_size=60))
def test_folding_at_once_is_recording_one_by_one(values: list[int]) -> None:
    """The library's own ``record_value`` puts every value into the bucket that the fold puts it into."""
    one_by_one = HdrHistogram(1, HIGHEST_NS, 3)
    for value in values:
        assert one_by_one.record_value(value)
    assert times(values).encoded() == one_by_one.encode().decode()


def test_merging_is_recording_all_in_one(rng: random.Random) -> None:
    """Whatever was recorded where, and also after a journey between processes."""
    parts = [lognormal(rng, count) for count in (1, 0, 500, 2000)]
    total = Times()
    for part in parts:
        total.merge(pickle.loads(pickle.dumps(times(part))))
    whole = times([value for part in parts for value in part])
    assert total.encoded() == whole.encoded()
    assert total.distribution().p99_us == whole.distribution().p99_us
    assert total.distribution().stddev_us == pytest.approx(whole.distribution().stddev_us)


def test_out_of_range_is_counted_and_in_no_figure() -> None:
    """Below 1 ns and over 60 s, neither dropped in silence nor clipped."""
    said = times([0, -5, 1, 1000, HIGHEST_NS, HIGHEST_NS + 1]).distribution()
    assert (said.count, said.out_of_range) == (3, 3)
    assert said.max_us == HIGHEST_NS / 1000


def test_no_times_have_no_figures() -> None:
    """None, which is not 0."""
    said = Times().distribution()
    assert (said.count, said.mean_us, said.p50_us, said.max_us) == (0, None, None, None)


def test_the_encoded_form_is_the_histogram() -> None:
    """HdrHistogram's own, so that other tools read it."""
    recorded = times([100_000, 200_000, 300_000])
    decoded = HdrHistogram.decode(recorded.encoded())
    assert decoded.get_total_count() == 3
    assert decoded.get_value_at_percentile(50) == pytest.approx(200_000, rel=1e-3)


OK, SUSPENDED = int(Status.OK), int(Status.SUSPENDED)


def recorder() -> Recorder:
    """Of lookups and trades."""
    return Recorder(("lookup", "trade"), WINDOW, per_request=False)


def test_a_request_belongs_to_the_window_in_which_it_was_sent() -> None:
    """Warm-up is not recorded; one sent in the window counts however long it took; a first call is apart."""
    records = Records()
    for sent_ns, done_ns in ((10, 60), (500, 1500), (1000, 1010), (1999, 9999), (2000, 2001)):
        records.note(sent_ns, done_ns, OK)
    folding = recorder()
    span = folding.new_span()
    folding.fold(records, span)
    recorded = folding.recorded()
    lookups = recorded.requests["lookup"]
    assert (lookups.outcomes, lookups.times.count, lookups.times.max_ns) == ({"OK": 2}, 2, 8000)
    assert (recorded.first_calls.count, recorded.first_calls.max_ns) == (1, 50)
    assert (span.replies, span.first_sent_ns, span.last_done_ns) == (2, 1000, 9999)
    assert len(records.outcomes) == 0


def test_a_first_call_in_the_window_is_still_apart() -> None:
    """It pays for what comes once; a client that only had this one is starved."""
    records = Records()
    records.note(1100, 1900, OK)
    folding = recorder()
    span = folding.new_span()
    folding.fold(records, span)
    assert (span.replies, folding.recorded().first_calls.count) == (0, 1)
    assert folding.recorded().requests["lookup"].outcomes == {}


def test_a_first_call_that_is_answered_after_the_end_is_none() -> None:
    """A starved client may be served when the others have left."""
    records = Records()
    records.note(500, 2100, OK)
    folding = recorder()
    folding.fold(records, folding.new_span())
    assert folding.recorded().first_calls.count == 0


def test_types_outcomes_and_errors_are_told_apart() -> None:
    """Errors are in no time, and those outside the window only in the run's own count."""
    records = Records()
    records.note(1, 2, OK)
    for outcome in (OK, SUSPENDED, TYPE_STEP + OK, TYPE_STEP + INVALID_REPLY, fault_outcome(DeadlineExceeded(""))):
        records.note(1100, 1200, outcome)
    records.note(900, 950, fault_outcome(Unavailable("")))
    folding = recorder()
    folding.fold(records, folding.new_span())
    recorded = folding.recorded()
    lookups, trades = recorded.requests["lookup"], recorded.requests["trade"]
    assert (lookups.outcomes, lookups.errors) == ({"OK": 1, "SUSPENDED": 1}, {"deadline_exceeded": 1})
    assert (trades.outcomes, trades.errors) == ({"OK": 1}, {"invalid_reply": 1})
    assert (lookups.times.count, trades.times.count) == (2, 1)
    assert recorded.errors == {"deadline_exceeded": 1, "invalid_reply": 1, "unavailable": 1}


def test_folding_in_parts_is_folding_at_once(rng: random.Random) -> None:
    """Where a run has more records than are held, it folds and goes on."""
    parted, whole = recorder(), recorder()
    parted_span, whole_span = parted.new_span(), whole.new_span()
    all_records, part = Records(), Records()
    for number in range(0, 3000, 3):
        entry = (number, number + rng.randrange(1, 50), rng.choice((OK, SUSPENDED, TYPE_STEP + OK)))
        all_records.note(*entry)
        part.note(*entry)
        if number % 500 == 0:
            parted.fold(part, parted_span)
    parted.fold(part, parted_span)
    whole.fold(all_records, whole_span)
    assert parted_span == whole_span
    for name, report in whole.recorded().requests.items():
        other = parted.recorded().requests[name]
        assert (other.outcomes, other.times.encoded()) == (report.outcomes, report.times.encoded())


def test_counts_are_added_by_name() -> None:
    """Over processes and request types."""
    assert merged([{"OK": 1}, {}, {"OK": 2, "SUSPENDED": 1}]) == {"OK": 3, "SUSPENDED": 1}
