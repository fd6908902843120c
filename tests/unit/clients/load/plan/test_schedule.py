"""Schedules of open loops: the moments at which requests are due."""

from itertools import islice, pairwise

import numpy as np
import pytest

from clients.load.plan.schedule import Arrivals, Schedule
from clients.load.record.dependence import arrival_check

START_NS = 123_456_789_012_345
"""Reading of a clock that has run for a day and a half."""

DAYS_NS = 400 * 86_400 * 10**9
"""A machine that has run for more than a year: a float of its clock is off by some nanoseconds."""


LATER_NS = 10**12 * 10**9 // 1_000_003
"""Moment after 10^12 others, at 1,000,003/s."""


def moments(count: int, rate_hz: float, arrivals: Arrivals = "constant", **of: int) -> list[int]:
    """The first ``count`` moments of a schedule."""
    given = {"part": 0, "parts": 1, "seed": 1, "start_ns": START_NS} | of
    start_ns = given.pop("start_ns")
    return list(islice(Schedule(rate_hz, arrivals, **given).due_ns(start_ns), count))


@pytest.mark.parametrize(
    ("rate_hz", "start_ns", "due_ns"),
    [
        (1, 0, [0, 10**9, 2 * 10**9, 3 * 10**9]),
        (1, 1, [10**9, 2 * 10**9, 3 * 10**9, 4 * 10**9]),
        (1000, 0, [0, 1_000_000, 2_000_000, 3_000_000]),
        (1000, 10**15 + 1, [10**15 + n * 1_000_000 for n in (1, 2, 3, 4)]),
        (3, 0, [0, 333_333_333, 666_666_667, 10**9]),
        (0.1, 0, [0, 10**10, 2 * 10**10, 3 * 10**10]),
        (1_000_000, 5, [1000, 2000, 3000, 4000]),
        (7, DAYS_NS, [DAYS_NS + n * 10**9 // 7 + (n > 0) for n in range(4)]),
        (1_000_003, LATER_NS - 3, [(10**12 + n) * 10**9 // 1_000_003 for n in range(4)]),
    ],
)
def test_constant_moments_are_on_a_grid(rate_hz: float, start_ns: int, due_ns: list[int]) -> None:
    """Constant moments are on a grid, to the nearest nanosecond, for any running time of the machine. The moment after
    10^12 others is where it should be: nothing is added up."""
    seen = moments(4, rate_hz, start_ns=start_ns)
    assert [abs(a - b) <= 1 for a, b in zip(seen, due_ns, strict=True)] == [True] * 4
    assert all(seen[number] == due for number, due in enumerate(due_ns) if rate_hz not in (7, 1_000_003))


@pytest.mark.parametrize("parts", [2, 3, 8])
@pytest.mark.parametrize("rate_hz", [1000.0, 333.3, 77_777.7])
def test_constant_parts_are_constant_together(rate_hz: float, parts: int) -> None:
    """Each part has every n-th moment of the whole schedule, even if the parts start at different moments."""
    starts = [START_NS + part * 1_234_567 for part in range(parts)]
    whole = moments(3000, rate_hz, start_ns=max(starts))
    each = [moments(3000, rate_hz, part=part, parts=parts, start_ns=start) for part, start in enumerate(starts)]
    together = sorted(due for one in each for due in one if due >= max(starts))
    off_ns = max(abs(a - b) for a, b in zip(together[:2000], whole[:2000], strict=True))
    assert off_ns <= 1
    assert all(one[0] >= start for one, start in zip(each, starts, strict=True))


@pytest.mark.slow
def test_adding_blocks_does_not_drift() -> None:
    """After a million moments the constant ones are exact, and the exponential gaps still have their mean."""
    due = Schedule(999_999.0, "constant", 0, 1, 0).due_ns(DAYS_NS)
    first = next(due)
    last = next(islice(due, 999_998, None))
    assert abs(last - first - 999_999 * 10**9 / 999_999) <= 1
    gaps = np.diff(moments(1_000_001, 1e6, "poisson", start_ns=DAYS_NS))
    assert gaps.mean() == pytest.approx(1000, rel=5e-3)


def test_the_seed_and_the_part_decide() -> None:
    """The same seed and part give the same moments for any start. Another seed or part gives others."""
    seen = moments(100, 1000.0, "poisson")
    assert moments(100, 1000.0, "poisson") == seen
    assert [due - 1 for due in moments(100, 1000.0, "poisson", start_ns=START_NS + 1)] == seen
    for other in (moments(100, 1000.0, "poisson", seed=2), moments(100, 2000.0, "poisson", part=1, parts=2)):
        assert other != seen


def test_poisson_parts_are_independent_and_add_up() -> None:
    """Four parts at a quarter of the rate make one Poisson process of the whole rate: the declared mean, exponential
    gaps, and Poisson counts. The parts are independent, and the moments of each part rise."""
    parts = [np.array(moments(10_000, 4000.0, "poisson", part=part, parts=4)) for part in range(4)]
    assert all((np.diff(part) >= 0).all() for part in parts)
    until = min(part[-1] for part in parts)
    together = np.sort(np.concatenate([part[part < until] for part in parts]))
    assert arrival_check(np.diff(together), 4000.0, "poisson").faults == ()
    for one, other in pairwise(parts):
        assert abs(float(np.corrcoef(np.diff(one), np.diff(other))[0, 1])) < 0.05
