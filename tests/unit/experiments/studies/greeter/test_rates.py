"""Rates and clocks are the planted ones. A ratio over blocks has an interval."""

from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.studies.greeter.design import ONE, SAME_CLIENT, TWO, asynchronous
from experiments.studies.greeter.figures import cold_runs, from_cold, rates
from tests.unit.experiments.studies.greeter.judgements import CPP, PYTHON, seen


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (
            TWO[CPP],
            {"client_hz": 6667, "total_hz": 13_333, "response_us": 150, "wall_us": 75, "rate_times_response": 2},
        ),
        (ONE[PYTHON], {"client_cpu_us": 120, "server_cpu_us": 90, "wall_over_cpu": 2.5, "rate_times_response": 1}),
        (asynchronous(CPP, 10), {"rate_times_response": 10}),
    ],
)
def test_rates_and_clocks_are_the_planted_ones(of: Setting, expected: dict[str, float]) -> None:
    """Clients share the server's rate. Rate times response time is the calls under way. 0.4 of the wall clock was
    planted in the client, 0.3 of the times of the calls in the server."""
    found = rates(seen().main, of)
    assert found is not None
    assert {name: getattr(found, name).value for name in expected} == pytest.approx(expected, rel=0.01)
    assert found.wall_us.low < found.wall_us.value < found.wall_us.high


def test_an_arm_without_its_clients_clocks_has_no_rates() -> None:
    """Our lean client reports no clock of each client, so that its arm has no rates. An unknown setting has none
    either."""
    assert rates(seen().main, SAME_CLIENT[CPP]) is None
    assert rates(seen().main, TWO[CPP].but(clients=3)) is None


def test_a_refused_block_is_left_out_alone() -> None:
    """Only the refused block of ten is left out, whose connections did not write everything down."""
    whole = seen().main
    place = whole.sweep.arms.index(Arm(ONE[CPP]))
    first, *others = whole.blocks
    arms = [replace(arm, unrecorded=5 * (at == place)) for at, arm in enumerate(first.arms)]
    found = rates(replace(whole, blocks=(replace(first, arms=arms), *others)), ONE[CPP])
    assert found is not None
    assert found.total_hz.n == 9


def test_from_cold_has_ratios_of_each_block() -> None:
    """Cold runs have ratios of each block: 500 µs first, 1500 to connect, 100 for later calls."""
    run = from_cold(cold_runs(seen()).rows, ONE[CPP])
    assert run is not None
    assert run.first_over_rest.value == pytest.approx(5)
    assert run.as_timed_over_rest.value == pytest.approx(20)
    assert run.as_timed_us.value == pytest.approx(2000, rel=0.02)
    assert run.rest_us.n == 10
    assert from_cold([], ONE[CPP]) is None
