"""Numbers as sentences say them."""

import pytest

from experiments.stats import Estimate
from experiments.studies.stock.wording import interval_text, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.23456e-6, "1.23e-06"),
        (0.0000123456, "0.0000123"),
        (-0.000934, "-0.000934"),
        (0.00307, "0.00307"),
        (0.2907, "0.291"),
        (12.345, "12.3"),
        (-123.45, "-123"),
        (123_456.0, "123,456"),
        (1.23456e7, "1.23e+07"),
    ],
)
def test_a_number_has_three_digits_and_an_exponent_only_where_it_would_be_long(value: float, text: str) -> None:
    """Small ones are written out, as the others are that stand beside them."""
    assert number(value) == text


def test_both_ends_of_an_interval_are_written_alike() -> None:
    """A low end just under zero, and a high one just over it."""
    text = "0.00107 % (95 % interval -0.000934 to 0.00307)"
    assert interval_text(Estimate(0.00107, -0.000934, 0.00307, 9), "%") == text
