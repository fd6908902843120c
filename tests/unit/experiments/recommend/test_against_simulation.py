"""The model beside a simulation that shares no code with it, where no closed form is known.

Tolerances: 7 % of throughput, 25 % of a p99, of which some 10 % is chance at nine tenths of the capacity.
"""

import pytest

from experiments.design.demands import Demands
from experiments.recommend.model import capacity_hz, predict
from experiments.recommend.tail import tail
from tests.covering import each_once
from tests.unit.experiments.recommend.simulated import Simulated

MS = 0.001
NEAR, NEAR_TAIL = 0.07, 0.25
REPLIES, TAIL_REQUESTS = 2_500, 16_000

KINDS = {
    "a short wait": Demands(gil_s=1 * MS, free_s=0, wait_s=3 * MS, overhead_s=0.5 * MS),
    "a long wait": Demands(gil_s=0.3 * MS, free_s=0, wait_s=10 * MS, overhead_s=0.2 * MS),
    "half of it without the GIL": Demands(gil_s=1 * MS, free_s=1 * MS, wait_s=4 * MS, overhead_s=0.5 * MS),
    "longer than the switch interval": Demands(gil_s=12 * MS, free_s=0, wait_s=20 * MS, overhead_s=0.5 * MS),
    "no wait": Demands(gil_s=0.5 * MS, free_s=0, wait_s=0, overhead_s=0.3 * MS),
}


SIZES = [(1, 4, 2), (4, 4, 2), (4, 16, 2), (16, 12, 2), (64, 40, 1)]
"""Workers, clients and cores."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size", "variation"), each_once(KINDS, SIZES, (0.5, 1.0)))
def test_throughput_is_that_of_the_simulation(kind: str, size: tuple[int, int, int], variation: float) -> None:
    """Throughput equals that of the simulation below, at and above the knee, for every kind, size and variation."""
    workers, clients, cores = size
    mean = KINDS[kind]
    demands = Demands(mean.gil_s, mean.free_s, mean.wait_s, mean.overhead_s, variation=variation)
    predicted_hz = predict(demands, workers, clients, cores).throughput_hz
    simulated_hz = Simulated(demands, workers, cores).closed_hz(clients, REPLIES)
    assert predicted_hz == pytest.approx(simulated_hz, rel=NEAR)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "share"), each_once(KINDS, (0.5, 0.7, 0.9)))
def test_the_tail_is_that_of_the_simulation(kind: str, share: float) -> None:
    """The tail is that of the simulation at half, seven and nine tenths of the server's capacity."""
    demands = KINDS[kind]
    rate_hz = share * capacity_hz(demands, workers=16, cores=2)
    _, simulated_s = Simulated(demands, 16, 2).open_s(rate_hz, TAIL_REQUESTS / rate_hz)
    assert tail(demands, 16, rate_hz, cores=2) == pytest.approx(simulated_s + demands.overhead_s, rel=NEAR_TAIL)


@pytest.mark.slow
def test_work_of_several_turns_with_the_gil_ends_before_the_wait() -> None:
    """A worker's request first ends its work with the GIL, which takes several turns, and then waits."""
    demands = KINDS["longer than the switch interval"]
    rate_hz = 0.5 * capacity_hz(demands, workers=1)
    _, simulated_s = Simulated(demands, 1, 1).open_s(rate_hz, TAIL_REQUESTS / rate_hz)
    assert tail(demands, 1, rate_hz) == pytest.approx(simulated_s + demands.overhead_s, rel=NEAR_TAIL)
