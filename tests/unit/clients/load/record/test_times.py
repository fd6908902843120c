"""Histograms: their content, merging, and their form in JSON."""

import json
import pickle
import random
import statistics

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from clients.load.record.times import HIGHEST_NS, Times


def times(values: list[int]) -> Times:
    """A distribution of these values, in nanoseconds."""
    recorded = Times()
    recorded.record(np.array(values, dtype=np.int64))
    return recorded


def lognormal(rng: random.Random, count: int) -> list[int]:
    """Response times as of a server: a few hundred µs, now and then many more."""
    return [int(rng.lognormvariate(12.5, 1.0)) + 1 for _ in range(count)]


def test_percentiles_are_within_a_thousandth(rng: random.Random) -> None:
    """Percentiles are within a thousandth of those of the sorted values. Mean, deviation and extremes are exact."""
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
    """Merging equals recording all values in one histogram, also of kept ones, after a journey between processes."""
    parts = [lognormal(rng, count) for count in (1, 0, 500, 2000)]
    total = Times()
    for part in parts:
        total.merge(kept(pickle.loads(pickle.dumps(times(part)))))
    whole = times([value for part in parts for value in part])
    assert total.encoded() == whole.encoded()
    assert (total.count, total.sum_ns, total.min_ns, total.max_ns) == (
        whole.count,
        whole.sum_ns,
        whole.min_ns,
        whole.max_ns,
    )
    assert total.distribution().p99_us == whole.distribution().p99_us
    assert total.distribution().stddev_us == pytest.approx(whole.distribution().stddev_us)


def test_out_of_range_is_counted_and_in_no_figure() -> None:
    """Values below 1 ns and over 60 s are counted, and are in no figure."""
    said = times([0, -5, 1, 1000, HIGHEST_NS, HIGHEST_NS + 1]).distribution()
    assert (said.count, said.out_of_range) == (3, 3)
    assert said.max_us == HIGHEST_NS / 1000


def kept(recorded: Times) -> Times:
    """A histogram after a journey through JSON."""
    return Times.from_json(json.loads(json.dumps(recorded.to_json(), allow_nan=False)))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_json_keeps_every_number(rng: random.Random, count: int) -> None:
    """JSON keeps exactly: moments, extremes, percentiles, values out of range, and the histogram; also without
    values."""
    recorded = times([*lognormal(rng, count), 0, HIGHEST_NS + 1])
    again = kept(recorded)
    assert again.distribution() == recorded.distribution()
    assert again.to_json() == recorded.to_json()


@pytest.mark.parametrize("change", [{"histogram": "no base64!"}, {"histogram": "AAAA"}, {"histogram": None}])
def test_what_is_no_histogram_is_refused(change: dict[str, object]) -> None:
    """Bytes that are not a histogram raise an error that readers of files expect."""
    with pytest.raises((ValueError, TypeError, KeyError)):
        Times.from_json({**times([1, 2, 3]).to_json(), **change})


def test_the_buckets_are_the_histograms_own(rng: random.Random) -> None:
    """The buckets are HdrHistogram's, ascending, each with bounds and count."""
    recorded = times([*lognormal(rng, 2000), 1, 2047, 2048, 4095, 4096, HIGHEST_NS])
    lowest, highest, counts = recorded.buckets()
    seen = [
        (item.value_iterated_to, item.count_at_value_iterated_to)
        for item in recorded.histogram().get_recorded_iterator()
    ]
    assert list(zip(highest.tolist(), counts.tolist(), strict=True)) == seen
    assert (lowest <= highest).all()
    assert all(
        recorded.histogram().get_lowest_equivalent_value(int(value)) == low
        for value, low in zip(highest, lowest, strict=True)
    )
