"""Advice on simulated services, from pools and from connections: a lock, a pool of connections, other limits."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from experiments.design.demands import Demands
from experiments.recommend.advice import POOLS, Wish
from experiments.recommend.asking import CONNECTIONS
from experiments.recommend.seen import Found, Level, Limit, Load, Program, enough, limit, of_connections, of_pools
from tests.unit.experiments.recommend.simulated import Simulated

MS = 0.001
WISH = Wish(cores=2)
PYTHON = Program(has_gil=True, cores=2)

Service = Callable[[int, int], Simulated]
"""Function that makes a server with a number of workers and a seed."""


def service(gil_s: float, wait_s: float = 0, wait_variation: float = 0, shared: int = 0, held_s: float = 0) -> Service:
    """A service, by the seconds that a request needs. The client's own time for a request is ``FLOOR_S``."""
    demands = Demands(gil_s, 0, wait_s, FLOOR_S, wait_variation=wait_variation)
    return lambda workers, seed: Simulated(demands, workers, 2, seed, shared, held_s)


FLOOR_S = 0.1 * MS
LOCK = service(0.1 * MS, shared=1, held_s=2 * MS)
FIVE = service(0.1 * MS, shared=5, held_s=20 * MS)
COMPUTES = service(1 * MS)
WAITS = service(0.5 * MS, 10 * MS)
WAITS_OF_ALL_LENGTHS = service(0.5 * MS, 6 * MS, wait_variation=1.3)
WAITS_LONG = service(0.1 * MS, 200 * MS)


def level(of: Service, at_once: int, workers: int, connections: int) -> Level:
    """Two rounds of a server under a number of connections."""
    servers = [of(workers, seed) for seed in (1, 2)]
    loads = (Load(connections, each.closed_hz(connections, 1_200), 0.1, each.demands.gil_s, 0.1) for each in servers)
    return Level(at_once, tuple(loads))


@cache
def pools(of: Service) -> Found:
    """Findings of ``--start``."""
    return of_pools([level(of, size, size, 128) for size in POOLS], PYTHON, WISH)


@cache
def connections(of: Service, workers: int) -> Found:
    """Findings of ``--address`` on a server with this number of workers."""
    return of_connections([level(of, each, workers, each) for each in CONNECTIONS], PYTHON, FLOOR_S, WISH)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "smallest", "best_hz", "limited_by"),
    [
        (LOCK, 1, 500, Limit.INSIDE),
        (FIVE, 8, 250, Limit.INSIDE),
        (COMPUTES, 1, 1000, Limit.GIL),
        (WAITS, 32, 2000, Limit.GIL),
        (WAITS_OF_ALL_LENGTHS, 16, 2000, Limit.GIL),
    ],
)
def test_both_forms_advise_what_is_enough(of: Service, smallest: int, best_hz: float, limited_by: Limit) -> None:
    """The advised pool is at most twice the smallest that is enough. The limit is named, and every stated rate was
    measured. The running server has 64 workers."""
    for found in (pools(of), connections(of, 64)):
        assert smallest <= found.workers <= 2 * smallest, found
        assert found.limit is limited_by
        assert found.highest_hz == pytest.approx(best_hz, rel=0.1)
        assert found.highest_hz <= found.best.throughput_hz


@pytest.mark.slow
def test_a_lock_is_one_request_at_a_time_and_five_connections_are_five() -> None:
    """A lock is one request at a time, and five connections are five: the flat rate and the time of a single request
    show both."""
    assert pools(LOCK).at_a_time == pytest.approx(1, rel=0.1)
    assert pools(FIVE).at_a_time == pytest.approx(5, rel=0.1)
    assert connections(FIVE, 64).at_a_time == pytest.approx(5, rel=0.1)


@pytest.mark.slow
def test_where_the_largest_pool_does_most_the_workers_are_the_limit() -> None:
    """128 connections to a larger pool have twice the rate of 64 threads. This rate is not stated for 64 threads."""
    for found in (pools(WAITS_LONG), connections(WAITS_LONG, 256)):
        assert (found.workers, found.limit) == (64, Limit.WORKERS)
        assert found.highest_hz == pytest.approx(320, rel=0.1)


@pytest.mark.slow
def test_a_small_pool_of_a_running_server_is_seen_as_what_admits_no_more() -> None:
    """From outside, four threads that wait look like a limit of four inside. No rate over theirs is stated."""
    found = connections(WAITS, 4)
    assert found.limit is Limit.INSIDE
    assert found.at_a_time == pytest.approx(4, rel=0.1)
    assert found.highest_hz == pytest.approx(4 / (10.5 * MS), rel=0.1)


def levels(*rates_hz: tuple[float, ...], processor_s: float | None = 0.1 * MS) -> tuple[Level, ...]:
    """Pools from 1 on, by the rates of their rounds."""
    return tuple(
        Level(size, tuple(Load(128, hz, 0.1, processor_s, 0.1) for hz in rounds))
        for size, rounds in zip(POOLS, rates_hz, strict=False)
    )


def test_a_check_that_reads_the_same_of_every_pool_advises_the_smallest() -> None:
    """A lock of 2 ms had 455/s with 4 threads and 452/s with 32: the smallest is advised, and not 32 by its
    prediction."""
    seen = levels((430.0,), (450.0,), (455.0,), (454.0,), (453.0,), (452.0,), (452.0,))
    assert of_pools(seen, PYTHON, WISH).workers == 2


def test_a_slightly_larger_rate_must_be_so_in_every_round() -> None:
    """A gain counts only if every round has it, and if it is 5 % or more."""
    assert enough(levels((100.0, 100.0, 100.0), (110.0, 110.0, 99.0))).at_once == 1
    assert enough(levels((100.0, 100.0, 100.0), (110.0, 110.0, 101.0))).at_once == 2
    assert enough(levels((100.0, 100.0, 100.0), (104.0, 105.0, 104.0))).at_once == 1


def test_one_noisy_round_makes_no_bad_pool_enough() -> None:
    """One noisy round does not make a pool enough that is far from the best in the middle round, or whose round was
    disturbed."""
    assert enough(levels((50.0, 50.0, 100.0), (100.0, 100.0, 99.0))).at_once == 2
    small, large = levels((100.0, 100.0, 100.0), (110.0, 110.0, 99.0))
    disturbed = (*large.rounds[:2], replace(large.rounds[2], is_disturbed=True))
    assert enough((small, replace(large, rounds=disturbed))).at_once == 2


def test_a_pool_that_was_measured_less_often_is_held_against_the_same_rounds() -> None:
    """A pool that is far from the best is loaded once, and compared by the same rounds."""
    assert enough(levels((40.0,), (100.0, 101.0), (102.0, 100.0))).at_once == 2


def test_a_wished_rate_needs_the_smallest_pool_that_carries_it() -> None:
    """A wished rate is at most 80 % of the advised pool's rate. If no pool carries it, the smallest near the best is
    advised."""
    seen = levels((100.0,), (200.0,), (400.0,), (405.0,))
    assert [enough(seen, rate_hz).at_once for rate_hz in (80, 81, 500)] == [1, 2, 4]
    found = of_pools(seen, PYTHON, Wish(2, rate_hz=500))
    assert (found.carried(Wish(2, rate_hz=320)), found.carried(Wish(2, rate_hz=321))) == (True, False)


def test_limits_are_told_by_who_is_busy() -> None:
    """The limit is the client, all cores or the GIL where these are busy; else the workers where the rate still grows,
    and something inside where it does not."""
    load = Load(128, 1000.0, 0.1, 0.2 * MS, 0.3)

    def found(grows: bool = False, has_gil: bool = True, **changed: float | None) -> Limit:
        return limit(Level(8, (replace(load, **changed),)), grows, Program(has_gil, 2))  # type: ignore[arg-type]

    assert found(client_share=0.95) is Limit.CLIENT
    assert found(processor_s=1.6 * MS) is Limit.CORES
    assert found(processor_s=1.0 * MS) is Limit.GIL
    assert found(processor_s=1.0 * MS, has_gil=False) is Limit.INSIDE
    assert found() is Limit.INSIDE
    assert found(grows=True) is Limit.WORKERS
    assert found(processor_s=None) is Limit.UNREAD
    assert found(processor_s=None, grows=True) is Limit.WORKERS
