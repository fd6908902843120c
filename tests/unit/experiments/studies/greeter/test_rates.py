"""Rates and clocks are the planted ones. A ratio over blocks has an interval."""

from dataclasses import replace

import pytest

from experiments.design.arms import Arm
from experiments.studies.greeter.design import ONE, SAME_CLIENT, TWO, asynchronous
from experiments.studies.greeter.rates import cold_runs, from_cold, rates
from tests.unit.experiments.studies.greeter.judgements import CPP, PYTHON, seen


def test_two_clients_share_the_servers_rate() -> None:
    """150 µs a call: 6667/s each, 13,333/s of the server, 75 µs of the wall clock a reply."""
    found = rates(seen().main, TWO[CPP])
    assert found is not None
    assert found.client_hz.value == pytest.approx(6667, rel=0.01)
    assert found.total_hz.value == pytest.approx(13_333, rel=0.01)
    assert found.response_us.value == pytest.approx(150, rel=0.01)
    assert found.wall_us.value == pytest.approx(75, rel=0.01)
    assert found.wall_us.low < found.wall_us.value < found.wall_us.high


def test_the_processor_time_is_the_clients_own() -> None:
    """0.4 of the wall clock was planted in the client, 0.3 of the times of the calls in the server."""
    found = rates(seen().main, ONE[PYTHON])
    assert found is not None
    assert found.client_cpu_us.value == pytest.approx(120, rel=0.01)
    assert found.server_cpu_us.value == pytest.approx(90, rel=0.01)
    assert found.wall_over_cpu.value == pytest.approx(2.5, rel=0.01)


def test_rate_times_response_is_the_calls_under_way() -> None:
    """Rate times response time is the calls under way: one, two with two clients, ten at once."""
    for of, at_once in ((ONE[CPP], 1), (TWO[CPP], 2), (asynchronous(CPP, 10), 10)):
        found = rates(seen().main, of)
        assert found is not None
        assert found.rate_times_response.value == pytest.approx(at_once, rel=0.001)


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
