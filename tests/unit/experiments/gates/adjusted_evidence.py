"""Evidence with one thing set to a chosen value, so that a limit can be approached from both sides."""

import math
from dataclasses import replace

from experiments.gates.evidence import (
    AARecord,
    ComparisonEvidence,
    IntervalEvidence,
    MachineEvidence,
    Percentile,
    Replies,
    RunEvidence,
    Surroundings,
    Times,
)
from experiments.gates.predicates import Level
from experiments.stats import Verdict
from tests.unit.experiments.gates.planted_evidence import AA, MACHINE, SEEN, closed_run, compared, open_run, transports


def load(run: RunEvidence, **fields: object) -> RunEvidence:
    """The run with other fields of its load."""
    return replace(run, load=replace(run.load, **fields))  # type: ignore[arg-type]


def times(run: RunEvidence, **fields: object) -> RunEvidence:
    """The run with other fields of its times."""
    return replace(run, times=replace(run.times, **fields))  # type: ignore[arg-type]


def server(run: RunEvidence, **fields: object) -> RunEvidence:
    """The run with other fields of its server."""
    return replace(run, server=replace(run.server, **fields))  # type: ignore[arg-type]


def arrivals(run: RunEvidence, **fields: object) -> RunEvidence:
    """The run with other arrivals."""
    assert run.load.arrivals is not None
    return load(run, arrivals=replace(run.load.arrivals, **fields))  # type: ignore[arg-type]


def failing(failed: int, timed: bool = True) -> RunEvidence:
    """400,000 requests, so many without a reply."""
    counts = Replies(400_000, 400_000 - failed, {"timeout": failed} if failed else {}, True, timed)
    return replace(closed_run(), replies=counts, throughput_hz=None)


def idle(share: float) -> RunEvidence:
    """That share of the times is idle."""
    return times(closed_run(), idle_us_mean=245.0 * share)


def little(ratio: float) -> RunEvidence:
    """X·(R + Z) is that many times N."""
    return times(closed_run(), mean_us=250.0 * ratio - 5.0)


def paused(ratio: float) -> RunEvidence:
    """X·(R + Z) is that many times N, and the longest request took a twentieth of the window."""
    run = little(ratio)
    return times(run, max_us=run.load.duration_s * 1e6 / 20)


def under_way(ratio: float) -> RunEvidence:
    """In an open loop, X·R is that many times the requests under way."""
    return times(open_run(), in_flight_mean=1 / ratio)


def few(requests: int, ratio: float) -> RunEvidence:
    """A closed loop of 5 connections that each sent a fifth of so few, with X·(R + Z) so many times N."""
    counts = Replies(requests, requests, validated=True)
    run = load(replace(closed_run(), replies=counts, throughput_hz=None), duration_s=requests * 50e-6)
    return replace(run, times=Times("perf_counter_ns", 250.0 * ratio - 5.0, think_us_mean=5.0, idle_us_mean=0.0))


def sent(count: int, scheduled: int | None = 25_000, process: str = "poisson") -> RunEvidence:
    """An open run at 250 a second for 100 s that sent so many. Its arrivals are not looked at."""
    run = load(open_run(), scheduled=scheduled, arrivals=None, process=process)
    counts = Replies(count, count, validated=True)
    return times(replace(run, replies=counts), in_flight_mean=count / 25_000)


def constant(variation: float, gap_us_mean: float = 4000.0) -> RunEvidence:
    """Arrivals declared to be constant."""
    run = arrivals(open_run(), variation=variation, gap_us_mean=gap_us_mean, ks_distance=0.6, dispersion=0.0)
    return load(run, process="constant")


def percentile(rank: float, answered: int, effective: float | None = None) -> RunEvidence:
    """A percentile of so many replies."""
    counts = Replies(answered, answered, validated=True)
    run = load(replace(closed_run(), replies=counts, throughput_hz=None), duration_s=answered / 20_000)
    return times(run, percentiles=(Percentile(rank, 900.0, effective),))


def around(**fields: float) -> RunEvidence:
    """A run in other surroundings."""
    return replace(closed_run(), surroundings=Surroundings(**fields))


def sweep(**fields: float) -> MachineEvidence:
    """A sweep in other surroundings."""
    return replace(MACHINE, surroundings=Surroundings(**fields))


def blocks(count: int, family_size: int) -> ComparisonEvidence:
    """A comparison over so many blocks, one of so many."""
    return replace(
        compared(closed_run(), closed_run(transport="grpc"), blocks=count), family_size=family_size, p_holm=1.0
    )


def starts(count: int) -> ComparisonEvidence:
    """Nine blocks, the arm above from so many server processes."""
    comparison = transports()
    processes = [f"server {min(place, count - 1)}" for place in range(9)]
    shared = tuple(replace(run, process=name) for run, name in zip(comparison.above, processes, strict=True))
    return replace(comparison, above=shared)


def first(times_first: int, of: int) -> ComparisonEvidence:
    """The arm above came first in so many blocks."""
    comparison = compared(closed_run(), closed_run(transport="grpc"), blocks=of)
    above = tuple(replace(run, order=1 if place < times_first else 2) for place, run in enumerate(comparison.above))
    below = tuple(replace(run, order=2 if place < times_first else 1) for place, run in enumerate(comparison.below))
    return replace(comparison, above=above, below=below)


def trending(weight: float) -> ComparisonEvidence:
    """Nine blocks whose log-ratios are a trend of that weight, and noise."""
    noise = (1.0, -1.0, 0.5, -0.5, 1.0, -1.0, -0.5, 0.5, 0.0)
    logs = tuple(-0.3 + 0.01 * (weight * (place - 4) + noise[place]) for place in range(9))
    return replace(transports(), log_ratios=logs)


def found(reply_bytes: int) -> ComparisonEvidence:
    """One arm's replies have 1000 bytes, the other's so many."""
    above, below = (replace(closed_run(), seen=SEEN | {"reply_bytes": size}) for size in (reply_bytes, 1000))
    return compared(replace(above, factors={"transport": "a"}), replace(below, factors={"transport": "b"}))


def pools(above: Level, below: Level) -> ComparisonEvidence:
    """Pools of 10 and 5, and the threads seen."""
    large = replace(closed_run(workers=10), seen=SEEN | {"threads": above})
    small = replace(closed_run(workers=5), seen=SEEN | {"threads": below})
    return compared(large, small, "workers")


def requests(n: float) -> IntervalEvidence:
    """An interval from so many requests, which are worth 1000."""
    return IntervalEvidence("mean of one run", 1.0, 1.2, n, "request", "t", effective=1000.0)


def bootstrap(n: int) -> IntervalEvidence:
    """A percentile bootstrap over so many blocks."""
    return IntervalEvidence("ratio", 0.9, 1.1, n, "block", "bootstrap")


def from_(low: float, positive: bool = True) -> IntervalEvidence:
    """An interval from there to 9."""
    return IntervalEvidence("think time", low, 9.0, 9, "run", "t", positive)


def corrected(p: float, p_holm: float) -> ComparisonEvidence:
    """One of two comparisons."""
    return replace(transports(), family_size=2, p=p, p_holm=p_holm)


def round_of(comparisons: int, false_differences: int) -> MachineEvidence:
    """An A/A round."""
    record = AARecord("2 cores", MACHINE.load, comparisons, false_differences, 1.04)
    return replace(MACHINE, aa=(record,))


def told_apart(effect_min: float, effect: float, verdict: Verdict) -> ComparisonEvidence:
    """A verdict of that effect, on a machine that tells so much apart."""
    comparison = compared(closed_run(), closed_run(transport="grpc"), effect=effect)
    machine = replace(MACHINE, aa=(replace(AA, effect_min=effect_min),))
    mean = sum(comparison.log_ratios) / 9
    exact = tuple(log - mean + math.log(effect) for log in comparison.log_ratios)
    return replace(comparison, machine=machine, verdict=verdict, log_ratios=exact)
