"""Rows of cold runs: three separate times, means over the runs of a block, and runs that do not count."""

import pytest

from experiments.design.limits import LIMITS
from experiments.kinds.cold import rows
from tests.unit.experiments.apart_seen import COLD, cold_block, cold_run


def test_a_row_has_connecting_the_first_call_and_the_rest_apart() -> None:
    """A row has separate means of connecting, of the first call and of later calls, and means of all calls."""
    (row,) = rows(COLD, cold_block(1, [(1, cold_run(10, 400, 100)), (1, cold_run(10, 600, 120))]))
    assert (row.cell, row.runs, row.errors) == (COLD.cells[1], 2, 0)
    assert (row.connect_us, row.first_call_us, row.rest_us_mean) == (200, 500, 110)
    assert row.mean_us == pytest.approx((500 + 9 * 110) / 10)
    assert row.with_connect_us == pytest.approx((200 + 500 + 9 * 110) / 10)


def test_a_run_of_one_call_has_no_rest() -> None:
    """A run of one call has no later calls. The mean of the run is its first call."""
    (row,) = rows(COLD, cold_block(1, [(0, cold_run(1))]))
    assert row.rest_us_mean is None
    assert row.mean_us == row.first_call_us == 500


def test_a_run_with_errors_is_counted_and_in_no_mean() -> None:
    """A run with errors only counts with its errors. A cell whose runs all lost their cores has no row."""
    failed = cold_run(10, 9000, 9000, {"unavailable": 1})
    runs = [(1, failed), (1, cold_run(10)), (4, failed), (2, cold_run(100))]
    first, second = rows(COLD, cold_block(1, runs))
    assert (first.cell, first.runs, first.errors, first.first_call_us) == (COLD.cells[1], 1, 1, 500)
    assert second.cell == COLD.cells[2]
    assert [row.cell for row in rows(COLD, cold_block(1, runs, stolen=(1,)).counting(LIMITS))] == [COLD.cells[2]]
