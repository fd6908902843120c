"""Demands of any request, as one client of one worker shows them, and the prediction from demands."""

import math

import pytest

from experiments.design.demands import Demands
from experiments.design.setting import setting
from experiments.recommend.event_loop import event_loop_hz
from experiments.studies.pool_size.design import AIO, GRPC, MODELS, PROCESSES, SOCKETS, Work, one, with_work
from experiments.studies.pool_size.prediction import demands_of, foretell, of_demands
from tests.unit.experiments.studies.pool_size.planted import (
    ALONE_CPU_US,
    ALONE_US,
    BUSY_CPU_US,
    COMMIT_CPU_US,
    COMMIT_US,
    LATE_US,
    WAIT_CPU_US,
    first,
)


def test_demands_are_the_transports_own_and_the_work_that_is_asked_for() -> None:
    """A wait costs processor time, and ends late. A request that computes has the transport's time of one client."""
    of = demands_of(first(), with_work(MODELS[SOCKETS], Work(io_ms=10)))
    assert of.gil_s * 1e6 == pytest.approx(BUSY_CPU_US + WAIT_CPU_US, rel=1e-3)
    assert of.wait_s * 1e6 == pytest.approx(10_000 + LATE_US, rel=1e-3)
    assert of.overhead_s * 1e6 == pytest.approx(ALONE_US - BUSY_CPU_US, rel=1e-3)
    computing = demands_of(first(), with_work(MODELS[SOCKETS], Work(io_ms=10, cpu_ms=2)))
    assert computing.gil_s * 1e6 == pytest.approx(ALONE_CPU_US + 2000 + WAIT_CPU_US, rel=1e-3)
    assert computing.overhead_s * 1e6 == pytest.approx(ALONE_US - ALONE_CPU_US, rel=1e-3)
    assert (of.free_s, demands_of(first(), with_work(MODELS[SOCKETS], Work(hash_ms=3))).free_s) == (0, 0.003)


def test_half_of_the_trades_under_way_share_a_commit() -> None:
    """Half of the trades under way share a commit, while the others gather. Each waits for the disk as one trader did,
    and has its part of the computing."""
    many = with_work(MODELS[GRPC], Work(durable=True)).but(workers=16, connections=10)
    of = demands_of(first(), many)
    assert of.wait_s * 1e6 == pytest.approx(COMMIT_US, rel=1e-3)
    assert of.free_s * 1e6 == pytest.approx(COMMIT_CPU_US / 5, rel=1e-3)
    assert of.gil_s * 1e6 == pytest.approx(BUSY_CPU_US, rel=1e-3)
    assert demands_of(first(), many.but(workers=1)).free_s * 1e6 == pytest.approx(COMMIT_CPU_US, rel=1e-3)


def test_one_client_of_one_worker_is_foretold_as_it_was_measured() -> None:
    """The prediction for one client of one worker is its measurement: the rate is 1 ÷ the response time, plus the
    work's time."""
    plain = one(MODELS[SOCKETS])
    assert foretell(first(), plain).throughput_hz == pytest.approx(1e6 / ALONE_US, rel=1e-3)
    longer = foretell(first(), with_work(plain, Work(cpu_ms=1)))
    assert longer.throughput_hz == pytest.approx(1e6 / (ALONE_US + 1000), rel=1e-3)


def test_a_loop_waits_for_all_at_once_and_computes_one_at_a_time() -> None:
    """A loop waits for all requests at once and computes one at a time, for any number of workers. Its timers end in
    time, and it wakes late."""
    of = with_work(MODELS[AIO], Work(io_ms=10)).but(workers=1, connections=16)
    told = foretell(first(), of)
    assert told.demands.wait_s == pytest.approx(0.010)
    assert told.demands.overhead_s * 1e6 == pytest.approx(ALONE_US - BUSY_CPU_US + LATE_US, rel=1e-3)
    assert told.throughput_hz == event_loop_hz(told.demands, 16)
    assert told.response_s == pytest.approx(16 / told.throughput_hz)
    hashing = foretell(first(), with_work(MODELS[AIO], Work(io_ms=10)).but(hash_ms=10.0, connections=16))
    assert (hashing.demands.free_s, hashing.workers) == (0, 16)
    assert 90 < hashing.throughput_hz < 100


def test_several_processes_need_what_one_does() -> None:
    """Several processes need the resources of one, which was measured. Together they answer more."""
    two = with_work(MODELS[PROCESSES], Work(cpu_ms=1)).but(workers=4, connections=64)
    one_process = two.but(processes=1)
    assert demands_of(first(), two) == demands_of(first(), one_process)
    assert foretell(first(), two).throughput_hz > 1.5 * foretell(first(), one_process).throughput_hz


def test_an_open_loop_is_foretold_by_its_tail() -> None:
    """An open loop is predicted by its tail: infinite beyond the capacity, where the rate is not reached either."""
    of, waits = setting(workers=2, connections=64), Demands(gil_s=0.001, free_s=0.0, wait_s=0.009, overhead_s=0.0)
    below, beyond = (of_demands(of.but(rate_hz=rate_hz), waits, cores=1) for rate_hz in (100.0, 500.0))
    assert below.throughput_hz == 100
    assert 0.01 <= below.response_s < 0.1
    assert beyond.throughput_hz == pytest.approx(beyond.capacity_hz)
    assert math.isinf(beyond.response_s)
