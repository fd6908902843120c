"""Every limit of the gates, from both sides: what lies just within is accepted, what lies just beyond is refused."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from experiments.gates import refusals
from experiments.gates.evidence import Evidence, Percentile
from experiments.gates.inference_gates import lag_1, lag_1_allowed
from experiments.gates.load_gates import late_us_allowed
from experiments.gates.machine_gates import false_differences_allowed
from experiments.stats import Verdict, blocks_min
from tests.unit.experiments.gates.adjusted_evidence import (
    around,
    arrivals,
    blocks,
    bootstrap,
    constant,
    corrected,
    failing,
    few,
    first,
    found,
    from_,
    idle,
    little,
    load,
    paused,
    percentile,
    pools,
    requests,
    round_of,
    sent,
    server,
    starts,
    sweep,
    times,
    told_apart,
    trending,
    under_way,
)
from tests.unit.experiments.gates.fixtures import paced
from tests.unit.experiments.gates.planted_evidence import SEEN, closed_run, open_run, transports

LIMITS: tuple[tuple[int, Callable[[], Evidence], Callable[[], Evidence]], ...] = (
    (1, lambda: idle(0.0199), lambda: idle(0.0201)),
    (1, lambda: paced(33_333.3 * 0.979, None), lambda: paced(33_333.3 * 0.981, None)),
    (1, lambda: paced(33_333.3 * 1.021, None), lambda: paced(33_333.3 * 1.019, None)),
    (1, lambda: times(paced(33_333.3, None), start="due"), lambda: paced(33_333.3, None)),
    (1, lambda: times(closed_run(), start="due"), lambda: times(closed_run(), start="before receive")),
    (2, lambda: found(1019), lambda: found(1021)),
    (2, lambda: found(982), lambda: found(979)),
    (3, lambda: pools(10, 5), lambda: pools(5, 5)),
    (3, lambda: pools(6, 5), lambda: pools(5, 6)),
    (
        3,
        lambda: replace(closed_run(), seen=SEEN | {"connections": 5}),
        lambda: replace(closed_run(), seen=SEEN | {"connections": 4}),
    ),
    (4, lambda: failing(400), lambda: failing(401)),
    (4, lambda: failing(0, timed=False), lambda: failing(1, timed=False)),
    (6, lambda: little(1.0199), lambda: little(1.0201)),
    (6, lambda: little(0.9801), lambda: little(0.9799)),
    (6, lambda: under_way(1.0199), lambda: under_way(1.0201)),
    (6, lambda: under_way(0.9801), lambda: under_way(0.9799)),
    (6, lambda: few(100, 1.049), lambda: few(100, 1.051)),
    (6, lambda: few(100, 0.951), lambda: few(100, 0.949)),
    (6, lambda: paused(1.0499), lambda: paused(1.0501)),
    (6, lambda: replace(closed_run(), throughput_hz=20_390.0), lambda: replace(closed_run(), throughput_hz=20_410.0)),
    (
        6,
        lambda: server(closed_run(), cpu_us_per_request=50.9),
        lambda: server(closed_run(), cpu_us_per_request=51.1),
    ),
    (
        6,
        lambda: server(closed_run(), cpu_us_per_request=101.9, cores=2),
        lambda: server(closed_run(), cpu_us_per_request=102.1, cores=2),
    ),
    (6, lambda: server(closed_run(), demand_us_max=50.9), lambda: server(closed_run(), demand_us_max=51.1)),
    (6, lambda: server(closed_run(), demand_us=249.0), lambda: server(closed_run(), demand_us=251.0)),
    (6, lambda: server(open_run(), demand_us=4080.0), lambda: server(open_run(), demand_us=4083.0)),
    (
        6,
        lambda: replace(closed_run(), replies=replace(closed_run().replies, sent=400_000)),
        lambda: replace(closed_run(), replies=replace(closed_run().replies, sent=400_001)),
    ),
    (7, lambda: load(open_run(), late_us_p99=138.4), lambda: load(open_run(), late_us_p99=138.6)),  # 5 % of 2.77 ms
    (
        7,
        lambda: times(load(open_run(), late_us_p99=99.9), percentiles=(Percentile(50, 200.0),)),
        lambda: times(load(open_run(), late_us_p99=100.1), percentiles=(Percentile(50, 200.0),)),
    ),
    (7, lambda: sent(24_751), lambda: sent(24_749)),
    (7, lambda: sent(25_249), lambda: sent(25_251)),
    (7, lambda: sent(24_751, None, "constant"), lambda: sent(24_749, None, "constant")),
    (7, lambda: sent(24_500, None), lambda: sent(24_470, None)),  # 3.29 ÷ √25,000 is 2.08 %
    (7, lambda: load(closed_run(), cpu_share=0.8), lambda: load(closed_run(), cpu_share=0.801)),
    (7, lambda: load(open_run(), cpu_share=0.99), lambda: load(open_run(), cpu_share=0.99, spinning=False)),
    (
        7,
        lambda: load(closed_run(), cpu_share=0.5, spinning=True),
        lambda: load(closed_run(), cpu_share=0.9, spinning=True),
    ),
    (8, lambda: arrivals(open_run(), variation=1.029), lambda: arrivals(open_run(), variation=1.031)),
    (8, lambda: arrivals(open_run(), variation=0.971), lambda: arrivals(open_run(), variation=0.969)),
    (
        8,
        lambda: arrivals(open_run(), variation=1.32, count=100),
        lambda: arrivals(open_run(), variation=1.34, count=100),
    ),
    (8, lambda: arrivals(open_run(), ks_distance=0.0199), lambda: arrivals(open_run(), ks_distance=0.0201)),
    (
        8,
        lambda: arrivals(open_run(), ks_distance=0.19, count=100),
        lambda: arrivals(open_run(), ks_distance=0.20, count=100),
    ),
    (8, lambda: arrivals(open_run(), gap_us_mean=4083.0), lambda: arrivals(open_run(), gap_us_mean=4085.0)),
    (
        8,
        lambda: arrivals(open_run(), gap_us_mean=4039.0, count=10**6),
        lambda: arrivals(open_run(), gap_us_mean=4041.0, count=10**6),
    ),
    (8, lambda: arrivals(open_run(), dispersion=1.466), lambda: arrivals(open_run(), dispersion=1.48)),
    (8, lambda: arrivals(open_run(), dispersion=0.534), lambda: arrivals(open_run(), dispersion=0.52)),
    (
        8,
        lambda: arrivals(open_run(), dispersion=1.09, slices=10_000),
        lambda: arrivals(open_run(), dispersion=1.11, slices=10_000),
    ),
    (8, lambda: constant(0.049), lambda: constant(0.051)),
    (8, lambda: constant(0.0, 4039.0), lambda: constant(0.0, 4041.0)),
    (9, lambda: blocks(6, 1), lambda: blocks(5, 1)),
    (9, lambda: blocks(9, 12), lambda: blocks(8, 12)),
    (9, lambda: blocks(12, 72), lambda: blocks(11, 72)),
    (9, lambda: starts(9), lambda: starts(8)),
    (10, lambda: first(5, 6), lambda: first(6, 6)),
    (10, lambda: first(1, 6), lambda: first(0, 6)),
    (10, lambda: first(8, 9), lambda: first(9, 9)),
    (10, lambda: first(8, 10), lambda: first(9, 10)),
    (10, lambda: first(10, 12), lambda: first(11, 12)),
    (11, lambda: trending(0.1), lambda: trending(3.0)),
    (11, lambda: requests(1100.0), lambda: requests(1101.0)),
    (11, lambda: replace(requests(9.0), unit="block"), lambda: replace(requests(9.0), effective=None)),
    (12, lambda: bootstrap(13), lambda: bootstrap(12)),
    (12, lambda: from_(0.001), lambda: from_(0.0)),
    (12, lambda: from_(-1.0, positive=False), lambda: from_(-1.0)),
    (12, lambda: replace(from_(1.0), kind="t"), lambda: replace(from_(1.0), kind="standard error")),
    (13, lambda: percentile(99.9, 10_000), lambda: percentile(99.9, 9_999)),
    (13, lambda: percentile(99, 400_000, 1000.0), lambda: percentile(99, 400_000, 999.0)),
    (13, lambda: percentile(50, 20), lambda: percentile(50, 19)),
    (14, lambda: around(steal_share=0.02), lambda: around(steal_share=0.0201)),
    (
        14,
        lambda: around(calibration_us_before=1000.0, calibration_us_after=1050.0),
        lambda: around(calibration_us_before=1000.0, calibration_us_after=1051.0),
    ),
    (14, lambda: sweep(steal_share=0.02), lambda: sweep(steal_share=0.0201)),
    (
        14,
        lambda: sweep(calibration_us_before=1050.0, calibration_us_after=1000.0),
        lambda: sweep(calibration_us_before=1051.0, calibration_us_after=1000.0),
    ),
    (15, lambda: corrected(0.01, 0.02), lambda: replace(corrected(0.01, 0.02), p_holm=None)),
    (15, lambda: corrected(0.01, 0.01), lambda: corrected(0.01, 0.009)),
    (19, lambda: times(closed_run(), max_us=900.0), lambda: times(closed_run(), max_us=898.0)),
    (19, lambda: times(closed_run(), unit="us"), lambda: times(closed_run(), unit="ms")),
    (20, lambda: round_of(8, 2), lambda: round_of(8, 3)),
    (20, lambda: round_of(40, 6), lambda: round_of(40, 7)),
    (20, lambda: round_of(4, 1), lambda: round_of(3, 0)),
    (20, lambda: told_apart(1.10, 1.101, Verdict.SLOWER), lambda: told_apart(1.10, 1.099, Verdict.SLOWER)),
    (20, lambda: told_apart(1.10, 1 / 1.101, Verdict.FASTER), lambda: told_apart(1.10, 1 / 1.099, Verdict.FASTER)),
    (20, lambda: told_apart(1.05, 1.0, Verdict.EQUIVALENT), lambda: told_apart(1.06, 1.0, Verdict.EQUIVALENT)),
    (20, lambda: told_apart(1.5, 1.01, Verdict.INCONCLUSIVE), lambda: told_apart(1.5, 1.01, Verdict.SLOWER)),
    (20, transports, lambda: replace(transports(), machine=None)),
)


@pytest.mark.parametrize(("gate", "within", "beyond"), LIMITS)
def test_a_limit_has_two_sides(gate: int, within: Callable[[], Evidence], beyond: Callable[[], Evidence]) -> None:
    """Just within, no gate refuses; just beyond, that gate does, and no other."""
    assert [str(refusal) for refusal in refusals(within())] == []
    assert {refusal.gate for refusal in refusals(beyond())} == {gate}


@pytest.mark.parametrize(("family", "blocks"), [(1, 6), (6, 8), (12, 9), (72, 12)])
def test_the_fewest_blocks_are_those_of_the_measurement_rules(family: int, blocks: int) -> None:
    """6 for one comparison, 9 for twelve, 12 for seventy-two."""
    assert blocks_min(family) == blocks


def test_a_round_may_show_as_many_false_differences_as_the_measurement_rules_say() -> None:
    """6 of 40; and 2 of 8, which chance exceeds in under one round of a hundred."""
    assert (false_differences_allowed(40), false_differences_allowed(8)) == (6, 2)


def test_the_lateness_that_is_allowed_is_the_greater_of_the_two_limits() -> None:
    """100 µs, or 5 % of the median response where that is more; 100 µs where there is none."""
    assert [late_us_allowed(p50) for p50 in (None, 200.0, 2000.0, 20_000.0)] == [100.0, 100.0, 100.0, 1000.0]


def test_the_autocorrelation_of_neighbours_is_what_it_says() -> None:
    """A trend has it, an alternation its negative, and what does not vary has none."""
    assert lag_1([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(0.4)
    assert lag_1([1.0, -1.0, 1.0, -1.0]) == pytest.approx(-0.75)
    assert lag_1([3.0, 3.0, 3.0]) == 0.0
    assert lag_1([]) == 0.0
    assert lag_1_allowed(9) == pytest.approx(0.529, abs=0.001)


@pytest.mark.parametrize("field", ["mean_us", "max_us"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_time_that_is_no_time_is_refused(field: str, value: float) -> None:
    """Gate 19, whatever else."""
    assert 19 in {refusal.gate for refusal in refusals(times(closed_run(), **{field: value}))}


@pytest.mark.parametrize(
    "spoiled",
    [
        load(open_run(), late_us_p99=math.nan),
        load(closed_run(), cpu_share=math.nan),
        arrivals(open_run(), variation=math.nan),
        arrivals(open_run(), ks_distance=math.nan),
        arrivals(open_run(), dispersion=math.nan),
        arrivals(open_run(), gap_us_mean=math.nan),
        constant(math.nan),
        around(steal_share=math.nan),
        around(calibration_us_before=1000.0, calibration_us_after=math.nan),
        times(closed_run(), think_us_mean=math.nan),
        from_(math.nan),
    ],
)
def test_what_is_no_number_is_refused(spoiled: Evidence) -> None:
    """A limit that is compared with a NaN is not kept."""
    assert refusals(spoiled)
