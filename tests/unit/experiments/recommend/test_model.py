"""The model, compared with closed forms: bounds, machine repairman, mean value analysis, many processes."""

import math

import pytest

from experiments.design.demands import Demands
from experiments.recommend.model import bounds, capacity_hz, predict
from stock_service.rpc.errors import UsageError
from tests.covering import each_once

MS = 0.001
SAME = 1e-9


def mean_value_analysis(queueing: list[float], delay_s: float, customers: int) -> float:
    """Throughput of a closed network of single queueing stations and a delay, by Reiser and Lavenberg's recursion."""
    lengths = [0.0] * len(queueing)
    throughput_hz = 0.0
    for present in range(1, customers + 1):
        times = [demand * (1 + length) for demand, length in zip(queueing, lengths, strict=True)]
        throughput_hz = present / (delay_s + sum(times))
        lengths = [throughput_hz * time for time in times]
    return throughput_hz


def machine_repairman(machines: int, up_s: float, repair_s: float, repairers: int) -> float:
    """Repairs a second: machines run for exponential times, and this number of repairers mend them."""
    weights = [1.0]
    for broken in range(1, machines + 1):
        ratio = (machines - broken + 1) / up_s * repair_s / min(broken, repairers)
        weights.append(weights[-1] * ratio)
    busy = sum(min(broken, repairers) * weight for broken, weight in enumerate(weights)) / sum(weights)
    return busy / repair_s


@pytest.mark.parametrize("clients", [1, 2, 5, 20, 100])
def test_one_lock_and_pure_waiting_is_mean_value_analysis(clients: int) -> None:
    """With a worker for each client the network has product form, and the levels give the numbers of the exact
    recursion."""
    demands = Demands(gil_s=0.3 * MS, free_s=0, wait_s=4 * MS, overhead_s=0.5 * MS, variation=1)
    known_hz = mean_value_analysis([0.3 * MS], 4.5 * MS, clients)
    assert predict(demands, clients, clients).throughput_hz == pytest.approx(known_hz, rel=SAME)


def test_two_clients_meet_in_one_of_two_processes_half_of_the_time() -> None:
    """Connections are spread at random, and stay: in half of the cases each of two clients has its own process."""
    demands = Demands(gil_s=1 * MS, free_s=0, wait_s=2 * MS, overhead_s=1 * MS)
    alone_hz, together_hz = (predict(demands, 8, clients).throughput_hz for clients in (1, 2))
    predicted_hz = predict(demands, 8, 2, cores=2, processes=2).throughput_hz
    assert predicted_hz == pytest.approx(alone_hz + together_hz / 2)


@pytest.mark.parametrize("workers", [1, 8])
def test_processes_multiply_what_one_does(workers: int) -> None:
    """With a core each and enough clients, four processes have four times the rate."""
    demands = Demands(gil_s=1 * MS, free_s=0, wait_s=2 * MS, overhead_s=1 * MS)
    one_hz = predict(demands, workers, 100).throughput_hz
    assert predict(demands, workers, 400, cores=4, processes=4).throughput_hz == pytest.approx(4 * one_hz, rel=0.01)
    assert capacity_hz(demands, workers, 4, 4) == pytest.approx(4 * capacity_hz(demands, workers))


@pytest.mark.parametrize(("repairers", "clients"), [(1, 1), (1, 6), (4, 3), (4, 20), (16, 64)])
def test_a_pool_that_only_waits_and_work_without_the_gil_are_the_machine_repairman(
    repairers: int, clients: int
) -> None:
    """Clients that are outside are machines that run. Repairers are the workers for waits, and the cores for processor
    time that releases the GIL."""
    known_hz = machine_repairman(clients, 3 * MS, 10 * MS, repairers)
    waits, computes = (Demands(0, free_s, 10 * MS - free_s, 3 * MS, variation=1) for free_s in (0, 10 * MS))
    assert predict(waits, repairers, clients).throughput_hz == pytest.approx(known_hz, rel=SAME)
    assert predict(computes, clients, clients, repairers).throughput_hz == pytest.approx(known_hz, rel=SAME)


@pytest.mark.parametrize(
    ("workers", "clients", "at"), each_once((1, 2, 8, 64), (1, 7, 64), ((1, 1), (2, 1), (2, 2), (4, 2)))
)
def test_no_prediction_is_beyond_the_bounds(workers: int, clients: int, at: tuple[int, int]) -> None:
    """Throughput is at most what the busiest resource and the clients allow, and Little's law holds."""
    demands = Demands(gil_s=1 * MS, free_s=2 * MS, wait_s=5 * MS, overhead_s=1 * MS)
    predicted = predict(demands, workers, clients, *at)
    limits = bounds(demands, workers, *at)
    assert predicted.throughput_hz <= limits.throughput_hz(clients) * (1 + SAME)
    assert predicted.throughput_hz * predicted.response_s == pytest.approx(clients)
    assert predicted.knee_clients == pytest.approx(limits.capacity_hz * demands.response_s)


@pytest.mark.parametrize(("workers", "clients"), [(1, 1), (3, 30), (20, 7), (64, 40)])
def test_constant_times_get_as_far_as_the_bounds(workers: int, clients: int) -> None:
    """Times that do not vary need not queue: the asymptotes are the prediction."""
    demands = Demands(gil_s=0.3 * MS, free_s=0, wait_s=10 * MS, overhead_s=0.2 * MS, variation=0)
    limits = bounds(demands, workers)
    assert predict(demands, workers, clients).throughput_hz == pytest.approx(limits.throughput_hz(clients))


@pytest.mark.parametrize(
    ("demands", "processes", "limit"),
    [
        (Demands(1 * MS, 0, 1 * MS, 0), 1, "gil"),
        (Demands(1 * MS, 2 * MS, 1 * MS, 0), 1, "cores"),
        (Demands(1 * MS, 0, 30 * MS, 0), 1, "workers"),
        (Demands(1 * MS, 0.5 * MS, 1 * MS, 0), 2, "cores"),
    ],
)
def test_the_busiest_resource_is_named(demands: Demands, processes: int, limit: str) -> None:
    """The limit is the resource with the longest time per request, divided by the number of such resources."""
    assert bounds(demands, workers=8, cores=2, processes=processes).limit == limit


def test_useful_workers_is_the_least() -> None:
    """The useful pool reaches 95 % of the best throughput, and a pool with one worker less does not. A request that
    only computes in Python gains nothing from a second thread."""
    assert predict(Demands(0.3 * MS, 0, 0, 0.2 * MS), 1, 64).useful_workers == 1
    demands = Demands(gil_s=0.3 * MS, free_s=0, wait_s=10 * MS, overhead_s=0.2 * MS)
    useful = predict(demands, 1, 64).useful_workers
    best_hz = predict(demands, 64, 64).throughput_hz
    assert predict(demands, useful, 64).throughput_hz >= 0.95 * best_hz > predict(demands, useful - 1, 64).throughput_hz


def test_many_clients_overflow_nothing() -> None:
    """Hundreds of clients at 64 workers have a finite throughput."""
    demands = Demands(gil_s=0.1 * MS, free_s=0.1 * MS, wait_s=50 * MS, overhead_s=5)
    assert math.isfinite(predict(demands, 64, 400).throughput_hz)


@pytest.mark.parametrize("demands", [(-1.0, 0, 0, 0), (0, 0, 0, 1.0), (math.nan, 1.0, 0, 0)])
def test_impossible_demands_are_refused(demands: tuple[float, ...]) -> None:
    """No time is under 0, and a request needs something of a worker."""
    with pytest.raises(UsageError):
        Demands(*demands)


@pytest.mark.parametrize("numbers", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)])
def test_no_workers_or_clients_are_refused(numbers: tuple[int, int, int, int]) -> None:
    """Workers, clients, cores and processes are 1 or more."""
    with pytest.raises(UsageError):
        predict(Demands(1 * MS, 0, 0, 0), *numbers)
