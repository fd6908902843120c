"""Response times known beforehand: formula, recursion and simulation agree with each other."""

import heapq
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.selfcheck.theory import Mmc, lindley, stalled_quantile_s

TABLE = [
    (1, 0.5, 2, (4.00, 2.77, 9.21, 18.42), 2),
    (2, 0.5, 2, (2.67, 1.95, 5.99, 11.33), 2),
    (4, 0.6, 2, (2.36, 1.74, 5.25, 9.96), 2),
    (1, 0.8, 5, (25.0, 17.3, 57.6, 115.1), 1),
    (2, 0.7, 5, (9.80, 7.26, 21.8, 41.3), 1),
    (4, 0.7, 5, (6.79, 5.14, 14.9, 27.5), 1),
    (8, 0.8, 5, (6.43, 4.93, 13.9, 25.8), 1),
]
"""Servers, utilisation, service in ms; mean, p50, p90 and p99 in ms as published for these queues; digits given."""


@pytest.mark.parametrize(("servers", "utilisation", "service_ms", "known_ms", "digits"), TABLE)
def test_the_formula_gives_the_known_table(
    servers: int, utilisation: float, service_ms: float, known_ms: tuple[float, ...], digits: int
) -> None:
    """Mean and percentiles of each queue equal the known table, to its digits."""
    queue = Mmc(servers, utilisation, service_ms / 1000)
    computed = [queue.mean_s, *(queue.quantile_s(share) for share in (0.5, 0.9, 0.99))]
    assert [value * 1000 for value in computed] == pytest.approx(known_ms, abs=0.51 * 10**-digits)


def test_equal_rates_are_the_limit_of_unequal_ones() -> None:
    """The queue shrinks as fast as one server serves: the formula's limit is taken, without a jump."""
    at, near = (Mmc(2, utilisation, 0.002).share_over(0.005) for utilisation in (0.5, 0.5 + 1e-7))
    assert at == pytest.approx(near, rel=1e-5)


def test_a_queue_near_its_capacity_has_a_known_quantile() -> None:
    """The response time of a queue with one server is exponential, also near the capacity and far beyond the mean."""
    queue = Mmc(1, 0.99, 0.002)
    assert queue.quantile_s(0.5) == pytest.approx(math.log(2) * queue.mean_s)
    assert queue.share_over(10.0) == pytest.approx(math.exp(-10.0 / queue.mean_s))


requests = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=60)


@pytest.mark.slow
@given(requests, st.integers(1, 5))
def test_the_recursion_is_first_come_first_served(gaps_and_services: list[tuple[int, int]], servers: int) -> None:
    """The recursion agrees with serving each request at the server that is free earliest."""
    arrivals = list(itertools.accumulate(gap for gap, _ in gaps_and_services))
    services = [service for _, service in gaps_and_services]
    free = [0] * servers
    expected = []
    for arrival, service in zip(arrivals, services, strict=True):
        departure = max(arrival, free[0]) + service
        heapq.heapreplace(free, departure)
        expected.append(departure - arrival)
    assert lindley(arrivals, services, servers) == expected


@pytest.mark.slow
def test_formula_and_recursion_agree() -> None:
    """Simulated queues have the formula's mean, and need as many requests for a sure p99 as ``analytic`` says."""
    queue, replications, count = Mmc(4, 0.6, 0.002), 16, 10_000
    rng = np.random.default_rng(7)
    means, p99s = [], []
    for _ in range(replications):
        arrivals = np.cumsum(rng.exponential(1e9 / queue.rate_hz, count)).astype(np.int64).tolist()
        services = rng.exponential(queue.service_s * 1e9, count).astype(np.int64).tolist()
        responses = lindley(arrivals, services, queue.servers)
        means.append(float(np.mean(responses)) / 1e9)
        p99s.append(float(np.percentile(responses, 99)) / 1e9)
    assert np.mean(means) == pytest.approx(queue.mean_s, rel=0.02)
    allowed_s = 0.05 * queue.quantile_s(0.99) + 0.0001
    needed = count * (3 * float(np.std(p99s, ddof=1)) / allowed_s) ** 2
    assert 27_000 / 3 < needed < 27_000 * 3


@pytest.mark.parametrize(("share", "expected_ms"), [(0.99, 100), (0.995, 150), (0.999, 190), (0.97, 0)])
def test_a_stall_of_200_ms_in_10_s(share: float, expected_ms: float) -> None:
    """2 % of the requests wait, uniformly from 0 to 200 ms. The others do not wait."""
    assert stalled_quantile_s(share, 0.2, 10.0) * 1000 == pytest.approx(expected_ms)
