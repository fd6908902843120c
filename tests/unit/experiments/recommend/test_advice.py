"""Advice on known demands: the rule on pools, kinds, rates and targets, and the facts that would change it."""

import math
from functools import cache

import pytest

from experiments.design.demands import Demands
from experiments.recommend.advice import BUSIEST, POOLS, Advice, Kind, Wish, advise

pytestmark = pytest.mark.usefixtures("short_simulations")

MS = 0.001

COMPUTES = Demands(gil_s=2 * MS, free_s=0, wait_s=0, overhead_s=0.1 * MS)
WAITS = Demands(gil_s=0.3 * MS, free_s=0, wait_s=4 * MS, overhead_s=0.1 * MS)
WAITS_LONG = Demands(gil_s=0.2 * MS, free_s=0, wait_s=200 * MS, overhead_s=0.1 * MS)


@cache
def for_waits() -> Advice:
    """The advice on requests that wait, on two cores; made once."""
    return advise(WAITS, Wish(cores=2))


@pytest.mark.slow
def test_the_smallest_pool_near_the_best_is_advised() -> None:
    """The advised pool reaches 95 % of the best, and no smaller one does."""
    advice = for_waits()
    near_hz = 0.95 * max(size.highest_hz for size in advice.pools)
    assert advice.chosen.workers == next(size.workers for size in advice.pools if size.highest_hz >= near_hz)
    assert 1 < advice.chosen.workers < max(POOLS)


@pytest.mark.slow
def test_a_low_rate_needs_fewer_workers() -> None:
    """For a wished rate the advice is the smallest pool that carries it with nearly the tail of the largest."""
    advice = advise(WAITS, Wish(cores=2, rate_hz=300, target_p99_s=0.020))
    assert advice.carried
    assert advice.chosen.workers < for_waits().chosen.workers
    assert advice.chosen.p99_s <= 1.1 * advice.pools[-1].p99_s
    assert advice.highest_in_target_hz is not None
    assert advice.highest_in_target_hz > 300


@pytest.mark.slow
def test_a_rate_beyond_one_gil_needs_processes() -> None:
    """A rate beyond one GIL needs as many processes as carry it. The p99 is then finite."""
    advice = advise(COMPUTES, Wish(cores=4, rate_hz=700))
    assert (advice.kind, advice.chosen.processes, advice.chosen.workers) == (Kind.PROCESSES, 2, 1)
    assert advice.carried
    assert math.isfinite(advice.chosen.p99_s)


@pytest.mark.slow
def test_a_rate_beyond_all_cores_is_not_carried() -> None:
    """A rate beyond all cores is marked as not carried, with the largest server on these cores."""
    advice = advise(COMPUTES, Wish(cores=2, rate_hz=5000))
    assert not advice.carried
    assert advice.chosen.rate_hz > BUSIEST * advice.chosen.highest_hz


@pytest.mark.slow
def test_a_target_that_nothing_keeps_brings_no_processes() -> None:
    """One process carries the rate, and two do not keep the p99 better."""
    advice = advise(WAITS, Wish(cores=2, rate_hz=100, target_p99_s=0.001))
    assert (advice.kind, advice.chosen.processes, advice.carried) == (Kind.THREADS, 1, False)
    assert advice.highest_in_target_hz == 0


@pytest.mark.slow
def test_long_waits_ask_for_asyncio() -> None:
    """A server without a pool is advised where 64 threads do far less; a low rate still needs no more."""
    assert advise(WAITS_LONG, Wish(cores=2)).kind is Kind.ASYNCIO
    assert advise(WAITS_LONG, Wish(cores=2, rate_hz=50)).kind is Kind.THREADS


@pytest.mark.slow
def test_what_would_change_the_advice_is_said() -> None:
    """Half the wait needs fewer workers. Where no change leads to another advice, as on one core, the list is empty."""
    assert ("requests waited half as long", "16 threads") in for_waits().changes
    assert advise(COMPUTES, Wish(cores=1)).changes == ()


@pytest.mark.slow
def test_without_a_gil_threads_compute_on_every_core() -> None:
    """The advice mentions a Python without a GIL where the GIL is the limit, and only with several cores."""
    gone = "Python had no GIL, and were as quick"
    assert dict(advise(COMPUTES, Wish(cores=2)).changes)[gone] == "2 threads, and 2.00 times the highest rate"
    assert gone not in dict(advise(WAITS_LONG, Wish(cores=2)).changes)
