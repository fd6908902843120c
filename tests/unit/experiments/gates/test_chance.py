"""What chance does is not refused, and what it does not do is: on synthetic data, seeded."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from experiments.gates import refusals
from experiments.gates.evidence import Arrivals, FamilyEvidence, Load, Replies, RunEvidence, Times
from experiments.gates.inference_gates import lag_1, lag_1_allowed
from experiments.gates.law_gates import little_ratio
from experiments.stats import holm
from tests.unit.experiments.gates.planted_evidence import closed_run, open_run

Gaps = npt.NDArray[np.float64]
RATE_HZ = 250.0
MEAN_US = 1e6 / RATE_HZ


def arriving(gaps_us: Gaps) -> RunEvidence:
    """An open run, declared to be Poisson at 250 a second, with these gaps between its requests."""
    at_us = np.cumsum(gaps_us)
    counts = np.bincount((at_us / (at_us[-1] / 50)).astype(int).clip(max=49), minlength=50)
    found = Arrivals(
        RATE_HZ,
        len(gaps_us),
        float(gaps_us.mean()),
        float(gaps_us.std() / gaps_us.mean()),
        float(scipy_stats.kstest(gaps_us, "expon", args=(0, MEAN_US)).statistic),
        float(counts.var(ddof=1) / counts.mean()),
        slices=50,
    )
    return replace(open_run(), load=replace(open_run().load, arrivals=found))


def exponential(rng: np.random.Generator, n: int) -> Gaps:
    """The gaps of Poisson arrivals."""
    return rng.exponential(MEAN_US, n)


def uniform(rng: np.random.Generator, n: int) -> Gaps:
    """Gaps anywhere from 0 to twice the mean."""
    return rng.uniform(0, 2 * MEAN_US, n)


def constant(_: np.random.Generator, n: int) -> Gaps:
    """A gap like the next."""
    return np.full(n, MEAN_US)


def slow(rng: np.random.Generator, n: int) -> Gaps:
    """Poisson arrivals at four fifths of the rate."""
    return rng.exponential(1.25 * MEAN_US, n)


def bursty(rng: np.random.Generator, n: int) -> Gaps:
    """Exponential gaps of two means, ten gaps of each at a time: the same mean rate, in bursts."""
    scale = np.where(np.arange(n) // 10 % 2 == 0, 0.2, 1.8)
    return rng.exponential(MEAN_US, n) * scale


@pytest.mark.parametrize("n", [500, 5000, 50_000])
@pytest.mark.parametrize("seed", range(5))
def test_poisson_arrivals_are_accepted_whatever_their_number(n: int, seed: int) -> None:
    """From hundreds to tens of thousands."""
    assert refusals(arriving(exponential(np.random.default_rng(seed), n))) == []


@pytest.mark.parametrize("n", [500, 5000, 50_000])
@pytest.mark.parametrize("gaps", [uniform, constant, slow, bursty])
def test_other_arrivals_are_refused(gaps: Callable[[np.random.Generator, int], Gaps], n: int) -> None:
    """By gate 8 alone."""
    assert {refusal.gate for refusal in refusals(arriving(gaps(np.random.default_rng(1), n)))} == {8}


def test_independent_blocks_are_refused_once_in_a_hundred_and_drifting_ones_most_times() -> None:
    """2000 experiments of 12 blocks each."""
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((2000, 12))
    drift = noise + np.linspace(-3, 3, 12)
    refused = [sum(lag_1(row) > lag_1_allowed(12) for row in rows.tolist()) / 2000 for rows in (noise, drift)]
    assert 0.003 < refused[0] < 0.016
    assert refused[1] > 0.5


@settings(max_examples=40)
@given(
    st.integers(1, 1000),
    st.floats(10, 1e5),
    st.floats(0, 1e4),
    st.floats(0.9, 1.1).filter(lambda x: abs(abs(x - 1) - 0.02) > 1e-3),
)
def test_every_closed_loop_obeys_littles_law_and_none_is_off_by_more(
    connections: int, response_us: float, think_us: float, off: float
) -> None:
    """N = X·(R + Z) passes for whatever N, R and Z; a mean that is off by over 2 % of the cycle does not."""
    requests = 1000 * connections
    duration_s = 1000 * (response_us + think_us) / 1e6
    mean_us = off * (response_us + think_us) - think_us
    if mean_us <= 0:
        return
    run = replace(
        closed_run(),
        load=Load("closed", connections=connections, duration_s=duration_s),
        replies=Replies(requests, requests, validated=True),
        times=Times("perf_counter_ns", mean_us, think_us_mean=think_us, idle_us_mean=0.0),
        server=replace(closed_run().server, cpu_us_per_request=None, demand_us=None, demand_us_max=None),
        seen={},
        throughput_hz=None,
    )
    assert little_ratio(run) == pytest.approx(off)
    assert {refusal.gate for refusal in refusals(run)} == (set() if abs(off - 1) < 0.02 else {6})


@settings(max_examples=40)
@given(st.lists(st.floats(1e-6, 0.9), min_size=1, max_size=20), st.integers(0, 5), st.data())
def test_holms_correction_is_accepted_and_a_smaller_p_is_not(p: list[float], absent: int, data: st.DataObject) -> None:
    """Of the whole family, what was declared and not made included."""
    declared = len(p) + absent
    right = holm([*p, *[1.0] * absent])[: len(p)]
    assert refusals(FamilyEvidence("family", declared, tuple(p), tuple(right))) == []
    place = data.draw(st.integers(0, len(p) - 1))
    wrong = [*right]
    wrong[place] *= 0.99
    assert {refusal.gate for refusal in refusals(FamilyEvidence("family", declared, tuple(p), tuple(wrong)))} == {15}


def test_a_family_is_declared_first_and_corrected_whole() -> None:
    """No comparison is added, none is left uncorrected; one alone needs no correction."""
    assert [r.gate for r in refusals(FamilyEvidence("family", 1, (0.01, 0.02), (0.02, 0.02)))] == [15]
    assert [r.gate for r in refusals(FamilyEvidence("family", 2, (0.01, 0.02), (0.02,)))] == [15]
    assert [r.gate for r in refusals(FamilyEvidence("family", 2, (0.01,), None))] == [15]
    assert refusals(FamilyEvidence("family", 1, (0.01,), None)) == []
