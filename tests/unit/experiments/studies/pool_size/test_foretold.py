"""A setting as the model takes it: its workers, its cores, its loop or its rate."""

import math

import pytest

from experiments.design.demands import Demands
from experiments.design.setting import setting
from experiments.studies.pool_size.prediction import of_demands

WAITS = Demands(gil_s=0.001, free_s=0.0, wait_s=0.009, overhead_s=0.0)
HASHES = Demands(gil_s=0.001, free_s=0.009, wait_s=0.0, overhead_s=0.0)


def test_a_pool_has_its_workers() -> None:
    """Two threads that wait 9 of 10 ms answer 200 a second. Ten would keep the interpreter busy."""
    two = of_demands(setting(workers=2, connections=64), WAITS, cores=2)
    assert (two.workers, two.limit, two.cores) == (2, "workers", 1)
    assert two.throughput_hz == pytest.approx(200, rel=0.1)
    assert of_demands(setting(workers=64, connections=64), WAITS, cores=2).limit == "gil"


def test_a_server_that_is_free_has_all_cores() -> None:
    """A free server has all cores. A server that is apart from the load has one core."""
    of = setting(workers=16, connections=16)
    assert of_demands(of, HASHES, cores=2).capacity_hz == pytest.approx(100, rel=1e-3)
    assert of_demands(of.but(placement="free"), HASHES, cores=2).capacity_hz == pytest.approx(200, rel=1e-3)


def test_without_a_gil_computing_has_all_cores_too() -> None:
    """Without a GIL, threads gain up to the number of cores, and not beyond."""
    computes = Demands(gil_s=0.010, free_s=0.0, wait_s=0.0, overhead_s=0.0)
    of = setting(workers=16, connections=16, placement="free")
    free = of.but(build="free-threaded")
    assert [of_demands(each, computes, cores=2).limit for each in (of, free)] == ["gil", "cores"]
    assert of_demands(of, computes, cores=2).throughput_hz == pytest.approx(100, rel=1e-3)
    each = [of_demands(free.but(workers=workers), computes, cores=2).throughput_hz for workers in (1, 2, 16)]
    assert each == pytest.approx([100, 200, 200], rel=0.02)
    assert of_demands(free, computes, cores=2).demands == computes.without_gil


def test_an_open_loop_is_foretold_by_its_tail() -> None:
    """An open loop is predicted by its tail: infinite beyond the capacity, where the rate is not reached either."""
    of = setting(workers=2, connections=64)
    below, beyond = (of_demands(of.but(rate_hz=rate_hz), WAITS, cores=1) for rate_hz in (100.0, 500.0))
    assert below.throughput_hz == 100
    assert 0.01 <= below.response_s < 0.1
    assert beyond.throughput_hz == pytest.approx(beyond.capacity_hz)
    assert math.isinf(beyond.response_s)
