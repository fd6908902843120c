"""Advice by measurement: the p99, which is measured last, and its effect on the advised pool."""

import pytest

from experiments.recommend.advice import Wish
from experiments.recommend.measured import TAIL_HZ_MOST, with_short_tail, with_tails
from experiments.recommend.seen import Found, Level, Limit, Load, Tail

LEVELS = tuple(Level(size, (Load(128, hz, 0.1, None, 0.1),)) for size, hz in ((4, 400.0), (8, 800.0), (16, 810.0)))


def found(highest_hz: float = 800.0) -> Found:
    """Findings of a pool of eight threads with this rate."""
    return Found(8, 1, True, LEVELS, highest_hz, Limit.INSIDE, 8.0, 0.01, None)


@pytest.mark.parametrize(
    ("highest_hz", "wished_hz", "asked_hz"),
    [
        (60_000, None, TAIL_HZ_MOST),
        (60_000, 25_000, TAIL_HZ_MOST),
        (10_000, None, 7_000),
        (10_000, 500, 500),
        (10_000, 9_000, 8_000),
    ],
)
def test_a_tail_is_asked_for_at_a_rate_that_our_client_keeps(
    highest_hz: float, wished_hz: float | None, asked_hz: float
) -> None:
    """A p99 is measured at 70 % of the highest rate, or at the wished rate if it is carried, and never over the rate of
    one client process."""
    seen = with_tails(found(highest_hz), Wish(2, wished_hz), lambda workers, rate_hz: Tail(workers, rate_hz, 0.01))
    assert [tail.rate_hz for tail in seen.tails] == pytest.approx([asked_hz])


def test_a_wished_p99_is_looked_for_from_the_highest_rate_down() -> None:
    """Rates are tried downwards until one keeps the wished p99. If no rate keeps it, the wish is not carried."""

    def tail_of(workers: int, rate_hz: float) -> Tail:
        return Tail(workers, rate_hz, rate_hz / 10_000)

    seen = with_tails(found(), Wish(2, target_p99_s=0.05), tail_of)
    assert [tail.rate_hz for tail in seen.tails] == pytest.approx([640, 480])
    assert seen.carried(Wish(2, target_p99_s=0.05))
    seen = with_tails(found(), Wish(2, target_p99_s=0.001), tail_of)
    assert len(seen.tails) == 4
    assert not seen.carried(Wish(2, target_p99_s=0.001))


@pytest.mark.parametrize(
    ("p99_s", "tried"),
    [({4: 12, 8: 10, 16: 10}, [16, 4]), ({4: 13, 8: 11, 16: 10}, [16, 4, 8]), ({4: 30, 8: 20, 16: 10}, [4, 8, 16])],
)
def test_a_pool_that_carries_a_rate_also_keeps_about_the_largest_ones_tail(
    p99_s: dict[int, float], tried: list[int]
) -> None:
    """The smallest pool whose p99 is within a quarter of the largest pool's is advised. Its p99 stands last."""
    seen = with_short_tail(found(), 300, lambda workers, rate_hz: Tail(workers, rate_hz, p99_s[workers]))
    assert [tail.workers for tail in seen.tails] == tried
    assert seen.workers == tried[-1]
    assert seen.highest_hz == next(level.throughput_hz for level in LEVELS if level.at_once == seen.workers)
