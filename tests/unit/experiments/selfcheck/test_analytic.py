"""Cells of the analytic check, for a right instrument and for a wrong one."""

import math

import pytest

from experiments.selfcheck.analytic import MINUTES, OVERNIGHT, Cell, Row, Scale, cell

NEEDED = {(1, 0.5): 118, (2, 0.5): 29, (4, 0.6): 27, (1, 0.8): 1774, (2, 0.7): 388, (4, 0.7): 120, (8, 0.8): 98}
"""Thousands of requests for three standard errors, from the module's docstring, by servers and utilisation."""


def test_an_interval_is_students_t_on_the_logarithms() -> None:
    """For e⁰, e² and e⁴ the middle is e², and the half width 4.30 × 2 ÷ √3."""
    made = cell(7.0, [math.exp(0), math.exp(2), math.exp(4)], 7.5)
    assert (made.measured, made.known) == (7.0, 7.5)
    assert math.log(made.high) - 2 == pytest.approx(4.3027 * 2 / math.sqrt(3), rel=1e-4)
    assert 2 - math.log(made.low) == pytest.approx(4.3027 * 2 / math.sqrt(3), rel=1e-4)


@pytest.mark.parametrize(("known", "covered"), [(3.99, False), (4.0, True), (4.5, True), (5.01, False)])
def test_an_interval_covers_its_ends(known: float, covered: bool) -> None:
    """A known value is covered between low and high."""
    assert Cell(4.4, 4.0, 5.0, known).covers is covered


@pytest.mark.parametrize(
    ("measured", "within"), [(2.11, True), (2.12, True), (2.21, False), (1.89, True), (1.79, False)]
)
def test_a_cell_may_be_off_by_the_sum_of_both(measured: float, within: bool) -> None:
    """5 % of 2 ms and 100 µs make 200 µs, in both directions."""
    assert Cell(measured, 0.0, 9.0, 2.0).within(Scale(())) is within


@pytest.mark.parametrize("row", MINUTES.rows + OVERNIGHT.rows, ids=lambda row: row.name)
def test_every_row_has_the_requests_and_the_warm_up_that_it_needs(row: Row) -> None:
    """Every row has the requests that three standard errors need, and no more than six times that. The warm-up is
    eight relaxation times or more: 1 ÷ (μ (1 - √ρ)²)."""
    requests = row.queue.rate_hz * row.side_by_side * row.duration_s * MINUTES.replications / 1000
    needed = NEEDED[row.queue.servers, row.queue.utilisation]
    assert needed < requests < 6 * needed
    assert row.warm_up_s > 8 * row.queue.service_s / (1 - math.sqrt(row.queue.utilisation)) ** 2
