"""Numbers: three digits, and more only where texts would look equal."""

import math

import pytest

from experiments.judge.stats import Estimate
from experiments.show.numbers import NOTHING, number, percent, ratio_words, time_unit, times_between


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.2899, "0.290"),
        (12.34, "12.3"),
        (9.999, "10.0"),
        (123.4, "123"),
        (12345, "12,345"),
        (1.5e7, "1.5e+07"),
    ],
)
def test_three_digits(value: float, text: str) -> None:
    """Numbers of any size have three digits."""
    assert number(value) == text


@pytest.mark.parametrize(
    ("estimate", "words"),
    [
        (Estimate(0.29, 0.28, 0.30, 10), ("0.290", "0.280 to 0.300")),
        (Estimate(0.2602, 0.2598, 0.2606, 10), ("0.2602", "0.2598 to 0.2606")),
        (Estimate(0.05231, 0.05229, 0.05233, 10), ("0.05231", "0.05229 to 0.05233")),
        (Estimate(12.34, 11.9, 12.9, 10), ("12.3", "11.9 to 12.9")),
        (Estimate(1234.5, 1200.1, 1300, 10), ("1,234", "1,200 to 1,300")),
        (Estimate(0.5, 0.5, 0.5, 10), ("0.500", "0.500 to 0.500")),
        (Estimate(0.997, 0.996, 0.998, 10), ("0.997", "0.996 to 0.998")),
        (Estimate(1.01, 0.999, 1.02, 10), ("1.010", "0.999 to 1.020")),
        (Estimate(0.98, 0.9504, 1.02, 10), ("0.9800", "0.9504 to 1.0200")),
        (Estimate(1.5, 1e-9, 1e9, 3), ("1.50", "under 0.0150 to over 150")),
        (Estimate(1.5, 1.1, 2.1, 2), ("1.50", NOTHING)),
        (Estimate(1.5, 0.0, math.inf, 1), ("1.50", NOTHING)),
    ],
)
def test_a_ratio_and_its_interval(estimate: Estimate, words: tuple[str, str]) -> None:
    """A ratio has three digits, and more where it, its ends and the bounds 0.95, 1 and 1.05 would look equal."""
    assert ratio_words(estimate) == words


def test_one_value_has_no_interval() -> None:
    """One value has a dash as the interval."""
    assert times_between(Estimate(5, -math.inf, math.inf, 1), 1) == NOTHING
    assert times_between(Estimate(5000, 4000, 6000, 3), 1000) == "4.00 to 6.00"


def test_small_words() -> None:
    """Units of time, and shares."""
    assert [time_unit([each]) for each in (5.0, 5e3, 5e6)] == [("µs", 1.0), ("ms", 1e3), ("s", 1e6)]
    assert percent(1 - 0.05 / 3) == "98.3 %"
