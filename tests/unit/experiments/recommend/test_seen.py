"""What a request needs is found again from loads that are computed from known demands."""

from dataclasses import replace

import pytest

from experiments.capacity import Demands, predict
from experiments.recommend.asking import CONNECTIONS
from experiments.recommend.seen import Around, Inferred, Load, infer

MS = 0.001
FLOOR_S = 0.05 * MS
NEAR = 0.10

WAITS = Demands(gil_s=0.2 * MS, free_s=0, wait_s=10 * MS, overhead_s=FLOOR_S)
COMPUTES = Demands(gil_s=0.2 * MS, free_s=0, wait_s=0, overhead_s=FLOOR_S)


def loads(demands: Demands, workers: int, cores: int = 2, reads: bool = True) -> list[Load]:
    """What a server with such demands and so many workers shows."""
    return [
        Load(
            connections=connections,
            throughput_hz=predicted.throughput_hz,
            mean_s=predicted.response_s,
            deviation_s=0.1 * MS,
            p99_s=predicted.response_s,
            processor_s=demands.processor_s if reads else None,
            client_share=0.0,
        )
        for connections in CONNECTIONS
        for predicted in [predict(demands, workers, connections, cores)]
    ]


def inferred(
    demands: Demands, workers: int, has_gil: bool = True, reads: bool = True, kernel_share: float = 0.0
) -> Inferred:
    """What is inferred of it."""
    return infer(loads(demands, workers, reads=reads), Around(FLOOR_S, has_gil, kernel_share, cores=2))


@pytest.mark.parametrize("workers", [1, 4, 10, 32])
def test_a_pool_that_is_the_limit_is_found(workers: int) -> None:
    """The demands are found again, and how many requests are worked at once."""
    found = inferred(WAITS, workers)
    assert found.demands.wait_s == pytest.approx(WAITS.wait_s, rel=NEAR)
    assert found.demands.gil_s == pytest.approx(WAITS.gil_s, rel=NEAR)
    assert found.pool == pytest.approx(workers, abs=1)
    assert found.error < NEAR


@pytest.mark.parametrize("demands", [WAITS, COMPUTES])
def test_a_pool_that_is_no_limit_is_not_found(demands: Demands) -> None:
    """Where the GIL is the limit, nothing is said of a pool."""
    assert inferred(demands, 128).pool is None


def test_a_short_wait_is_a_wake_up() -> None:
    """What one client waits beyond the processor time is overhead, where it is no longer than threads take to wake."""
    demands = replace(COMPUTES, overhead_s=FLOOR_S + 0.1 * MS)
    assert inferred(demands, 8).demands.wait_s == 0


def test_what_is_no_python_holds_no_gil() -> None:
    """Its processor time is on all cores."""
    found = inferred(replace(COMPUTES, gil_s=0, free_s=0.2 * MS), 128, has_gil=False)
    assert found.demands.gil_s == 0
    assert found.demands.free_s == pytest.approx(0.2 * MS)


def test_more_than_one_busy_core_is_time_without_the_gil() -> None:
    """A Python that keeps more than a core busy cannot hold the GIL all of that time."""
    demands = Demands(gil_s=0.2 * MS, free_s=0.1 * MS, wait_s=0, overhead_s=FLOOR_S, variation=0)
    found = inferred(demands, 128)
    assert found.demands.gil_s == pytest.approx(0.2 * MS, rel=NEAR)
    assert found.demands.free_s == pytest.approx(0.1 * MS, rel=2 * NEAR)


def test_what_the_kernel_computes_is_time_without_the_gil() -> None:
    """A call that may block releases it, such as one of a socket; so a second thread is of use."""
    found = inferred(COMPUTES, 1, kernel_share=0.4)
    assert found.demands.gil_s == pytest.approx(0.6 * COMPUTES.gil_s)
    assert found.demands.processor_s == pytest.approx(COMPUTES.gil_s)


def test_a_client_at_its_limit_is_said() -> None:
    """Then nothing is said of a pool."""
    busy = [replace(load, client_share=0.95) for load in loads(WAITS, 4)]
    found = infer(busy, Around(FLOOR_S, True, 0.0, 2))
    assert found.client_limited
    assert found.pool is None


def test_without_processor_time_the_highest_rate_stands_for_it() -> None:
    """A server elsewhere: what it computes is taken from how often it answers at most."""
    found = inferred(COMPUTES, 128, reads=False)
    assert found.demands.gil_s == pytest.approx(COMPUTES.gil_s, rel=NEAR)


def test_what_our_load_took_of_the_cores_is_not_reached() -> None:
    """A server that computes on all cores does half of it beside a load that takes one of two, as was foretold."""
    native = replace(COMPUTES, gil_s=0, free_s=0.2 * MS)
    beside = [replace(each, client_share=1.0) for each in loads(native, 128, cores=1)]
    found = infer(beside, Around(FLOOR_S, has_gil=False, kernel_share=0.0, cores=2))
    assert found.reached == pytest.approx(0.5, rel=NEAR)
    assert found.error < NEAR
