"""A run cut into slices: adding up, and how far its requests depend on each other."""

import json

import numpy as np
import numpy.typing as npt
import pytest

from clients.load.record.slices import BUCKETS, SLICES, Slices

COUNT = 100_000


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that ``--seed`` repeats."""
    return np.random.default_rng(request.config.option.seed)


def sliced(times_ns: npt.NDArray[np.float64]) -> Slices:
    """Requests evenly over the window, with these times in order."""
    made = Slices()
    made.add(np.arange(len(times_ns)) / len(times_ns), times_ns.astype(np.int64))
    return made


def test_every_request_is_in_its_slice_and_its_sum() -> None:
    """The first and the last too; a time shorter or longer than any bucket is in the first or the last."""
    made = Slices()
    share = np.array([0.0, 0.00999, 0.01, 0.5, 0.99999999])
    times_ns = np.array([1, 10**6, 10**6, 2 * 10**6, 10**12], dtype=np.int64)
    made.add(share, times_ns)
    assert made.replies()[[0, 1, 50, SLICES - 1]].tolist() == [2, 1, 1, 1]
    assert made.replies().sum() == 5
    assert made.sums_ns[[0, 1, 50, SLICES - 1]].tolist() == [1 + 10**6, 10**6, 2 * 10**6, 10**12]
    assert made.counts[0, 0] == 1
    assert made.counts[SLICES - 1, BUCKETS - 1] == 1
    assert made.means_us() == pytest.approx([500.0005, 1000, 2000, 1e9])


def test_merging_is_adding_all_to_one(generator: np.random.Generator) -> None:
    """Of connections and processes of the same window."""
    share, times_ns = generator.random(5000), generator.integers(1, 10**9, 5000)
    whole, total = Slices(), Slices()
    whole.add(share, times_ns)
    for part in range(4):
        one = Slices()
        one.add(share[part::4], times_ns[part::4])
        total.merge(one)
    assert (total.counts == whole.counts).all()
    assert (total.sums_ns == whole.sums_ns).all()


def test_json_keeps_it() -> None:
    """To the last count; an empty one too."""
    made = Slices()
    for slices in (made, sliced(np.arange(1.0, 30_000.0) * 1000)):
        again = Slices.from_json(json.loads(json.dumps(slices.to_json())))
        assert (again.counts == slices.counts).all()
        assert (again.sums_ns == slices.sums_ns).all()
        again.merge(slices)  # it can be added to


@pytest.mark.parametrize("document", [{}, {"counts": "AAAA", "sums_ns": "AAAA"}, {"counts": None, "sums_ns": None}])
def test_what_is_no_slices_is_refused(document: dict[str, object]) -> None:
    """By an error that whoever reads a file can expect."""
    with pytest.raises((KeyError, ValueError, TypeError)):
        Slices.from_json(document)


@pytest.mark.parametrize("percentile", [50, 90, 99, 99.9])
def test_independent_requests_are_worth_one_each(generator: np.random.Generator, percentile: float) -> None:
    """The effect is 1, within what chance does to a hundred slices (5 standard errors), and never under 1."""
    effect = sliced(generator.lognormal(13, 1, COUNT)).design_effect(percentile)
    assert 1 <= effect < 1 + 5 * np.sqrt(2 / (SLICES - 1))


@pytest.mark.parametrize("block", [10, 50])
def test_requests_that_come_in_blocks_are_worth_one_a_block(generator: np.random.Generator, block: int) -> None:
    """All of a block alike: its length is the effect, within what chance does to a hundred slices."""
    effect = sliced(np.repeat(generator.lognormal(13, 1, COUNT // block), block)).design_effect(90)
    assert effect == pytest.approx(block, rel=5 * np.sqrt(2 / (SLICES - 1)))


def test_a_stall_is_seen_though_all_connections_share_it(generator: np.random.Generator) -> None:
    """The effect is large where one slice of a hundred has nearly all the slow ones."""
    times_ns = generator.lognormal(12, 0.1, COUNT)
    times_ns[COUNT // 2 : COUNT // 2 + COUNT // 100] += 10**9
    assert sliced(times_ns).design_effect(99) > 100


def test_nothing_is_said_of_nothing() -> None:
    """1 where there is no reply, only one slice has any, or all are alike."""
    assert Slices().design_effect(99) == 1
    assert sliced(np.full(1000, 1e6)).design_effect(99) == 1
    one = Slices()
    one.add(np.full(1000, 0.5), np.arange(1, 1001, dtype=np.int64) * 1000)
    assert one.design_effect(90) == 1
