"""The fit a + b ÷ N: exact on exact data, with intervals over blocks, and None without two N."""

from dataclasses import astuple

import pytest

from experiments.judge.cold import cell_interval, fit, judged, one_off, paid_once
from experiments.judge.stats import mean_interval, positive_interval
from tests.unit.experiments.apart_seen import COLD, GRPC, SOCKETS, cold_block, cold_run
from tests.unit.experiments.known import known

CALLS = (100, 1_000, 10_000)


def test_exact_means_give_back_what_they_were_made_of() -> None:
    """Exact means give back their costs, for any N. The fit then has no error."""
    found = known(fit([{calls: 50 + 12_000 / calls for calls in CALLS} for _ in range(3)]))
    assert found.each_us.value == pytest.approx(50)
    assert found.once_us.value == pytest.approx(12_000)
    assert found.off_share == pytest.approx(0, abs=1e-12)
    assert found.at(500) == pytest.approx(74)


def test_means_that_do_not_fall_so_are_seen_to_be_off() -> None:
    """A cost that grows with N gives a large error of the fit."""
    found = known(fit([{calls: 50.0 * (1 + calls / 10_000) for calls in CALLS}] * 2))
    assert found.off_share > 0.1


def test_one_n_alone_has_no_fit() -> None:
    """One N alone has no fit, and neither has an empty plan. A block with one N is left out."""
    assert fit([]) is None
    assert fit([{100: 5.0}, {}]) is None
    found = known(fit([{100: 5.0}, {100: 6.0, 1_000: 5.1}]))
    assert found.each_us.n == 1


def test_a_missing_n_is_no_error_of_the_fit() -> None:
    """Blocks of other N and other costs are each fitted without an error. The intervals are Student's, over blocks."""
    found = known(fit([{100: 170.0, 1_000: 62.0}, {1_000: 94.0, 10_000: 81.4}]))
    assert found.off_share == pytest.approx(0, abs=1e-12)
    each, once = positive_interval([50.0, 80.0], 0.95), mean_interval([12_000.0, 14_000.0], 0.95)
    assert astuple(found.each_us) == pytest.approx(astuple(each))
    assert astuple(found.once_us) == pytest.approx(astuple(once))


def test_connecting_is_in_the_one_off_cost_where_it_is_asked_for() -> None:
    """Connecting is in the one-off cost if it is asked for: first call 500 µs, others 100, connecting 200 give a = 100,
    and b = 400 or 600."""
    blocks = [
        cold_block(number, [(cell, cold_run(COLD.cells[cell].calls)) for cell in COLD.order(number)])
        for number in (1, 2, 3)
    ]
    seen = judged(COLD, blocks).rows
    for with_connect, once_us in ((False, 400), (True, 600)):
        found = known(one_off(seen, SOCKETS, with_connect))
        assert found.each_us.value == pytest.approx(100)
        assert found.once_us.value == pytest.approx(once_us)
        assert found.once_us.n == 3
        direct = known(paid_once(seen, SOCKETS, with_connect))
        assert direct.value == pytest.approx(once_us)
        assert direct.n == 3
    assert one_off(seen, SOCKETS.but(workers=2), with_connect=False) is None
    assert paid_once(seen, SOCKETS.but(workers=2), with_connect=False) is None


def test_no_interval_of_a_time_reaches_under_0() -> None:
    """No interval of a time reaches under 0, even if the first call of one block takes twenty times as long."""
    blocks = [cold_block(n, [(1, cold_run(10, first_us=500.0 if n > 1 else 10_000.0))]) for n in (1, 2, 3)]
    first = known(cell_interval(judged(COLD, blocks).rows, COLD.cells[1], "first_call_us"))
    assert 0 < first.low < 1_357 < first.high
    assert first.value == pytest.approx((500 * 500 * 10_000) ** (1 / 3))


def test_a_run_that_was_robbed_of_time_does_not_count() -> None:
    """A run that was robbed of time does not count, for any of its times."""
    block = cold_block(1, [(1, cold_run(10, first_us=9_000)), (1, cold_run(10)), (4, cold_run(10))], stolen=(0, 2))
    seen = judged(COLD, [block]).rows
    assert [(row.cell.setting, row.first_call_us) for row in seen] == [(SOCKETS, 500)]
    first = known(cell_interval(seen, COLD.cells[1], "first_call_us"))
    assert first.value == pytest.approx(500)
    assert first.n == 1
    assert COLD.cells[4].setting == GRPC
    assert cell_interval(seen, COLD.cells[4], "first_call_us") is None
