"""Rows of results as the gates' evidence: what was seen of each run, of a comparison's two arms, and of the machine.

Everything comes from the rows, so that whoever has these can ask the gates again. What no row can say, because it holds
for every run made here, is said once: every reply is validated, connections are made before the window and first calls
are timed apart, times run on one clock, and every run has a server process of its own.

Whether a window is steady is judged for an arm, not for one run: the test of a single run raises a false alarm in some
6 of 100, so that an arm of 9 runs would hardly ever be free of one, and misses a trend that all of them share.

The machine's own speed is the lower quartile of a block's calibrations. On a shared machine a neighbour on the same
physical core makes a good part of them half as long again, for moments; that is noise, which the intervals have in
them, and a median would jump to and fro with it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from experiments import stats
from experiments.gates.evidence import (
    AARecord,
    Arrivals,
    ComparisonEvidence,
    IntervalEvidence,
    Load,
    MachineEvidence,
    Percentile,
    Replies,
    RunEvidence,
    Server,
    Surroundings,
    Times,
)
from experiments.gates.predicates import Level
from experiments.results import Row, parse_counts
from experiments.stats import Comparison, Verdict
from experiments.steady_state import arm_is_steady

FACTORS = (
    "service",
    "transport",
    "executor",
    "dispatch",
    "workers",
    "locking",
    "clients",
    "connections",
    "connection",
    "mix",
    "updater",
    "client",
    "loop",
    "rate_hz",
    "arrivals",
    "timeline",
    "request",
    "warm_up_s",
    "duration_s",
)
"""The columns that were set, not measured."""

HERE = "this machine"

SWEEP = "the load of this sweep"

Declared = frozenset[str]


@dataclass(frozen=True, slots=True)
class Arms:
    """The rows of a comparison's two sides, each of one request type."""

    above: tuple[Row, ...]
    below: tuple[Row, ...]


def arm_evidence(arm: Sequence[Row], percentiles: bool = False) -> tuple[RunEvidence, ...]:
    """The runs of one setting, as their rows of one request type have them, in their order.

    ``percentiles``: whether those of the runs are to be published.
    """
    steady = arm_steady(arm)
    return tuple(_run_evidence(row, steady, percentiles) for row in arm)


def _run_evidence(row: Row, steady: bool | None, percentiles: bool) -> RunEvidence:
    return RunEvidence(
        run_id=row.run_id,
        block=row.block,
        order=row.order,
        process=f"{row.run_id} {row.started_at}",
        factors={name: _level(getattr(row, name)) for name in FACTORS},
        seen=_seen(row),
        load=_load(row),
        replies=Replies(
            sent=row.count + row.errors + row.lost,
            answered=row.count,
            errors=parse_counts(row.error_kinds),
            validated=True,
            errors_timed=True,
            steady=steady,
        ),
        times=_times(row, percentiles),
        server=Server(cores=1 if row.pinned else 64, cpu_us_per_request=row.server_cpu_us_per_request),
        surroundings=Surroundings(steal_share=row.steal_share),
        throughput_hz=row.throughput_hz if row.loop == "closed" else None,
    )


def comparison_evidence(
    arms: Arms,
    declared: Declared,
    family: tuple[str, int],
    log_ratios: Sequence[float],
    result: Comparison,
    machine: MachineEvidence,
) -> ComparisonEvidence:
    """A comparison of mean times; ``family`` is its name and how many were declared in it."""
    above, below = arm_evidence(arms.above), arm_evidence(arms.below)
    ratio = result.ratio
    return ComparisonEvidence(
        name=result.name,
        declared=declared,
        above=above,
        below=below,
        log_ratios=tuple(log_ratios),
        interval=IntervalEvidence(result.name, ratio.low, ratio.high, ratio.n, "block", "t"),
        verdict=result.verdict,
        p=result.p,
        p_holm=result.p_holm,
        family=family[0],
        family_size=family[1],
        machine=machine,
    )


def machine_evidence(
    rows: Sequence[Row], pairs: Iterable[Arms], measure: Callable[[Row], float | None]
) -> MachineEvidence:
    """The machine under the load of this sweep; ``pairs`` are settings that were run twice in each block.

    A pair is an A/A comparison. What the instrument can tell apart is half the width of their intervals, the median.
    """
    judged = [comparison for _, comparison in compared_with_itself(pairs, measure)]
    false = sum(comparison.verdict in (Verdict.FASTER, Verdict.SLOWER) for comparison in judged)
    widths = [math.log(comparison.ratio.high / comparison.ratio.low) / 2 for comparison in judged]
    records = (AARecord(HERE, SWEEP, len(judged), false, math.exp(median(widths))),) if judged else ()
    return MachineEvidence(HERE, SWEEP, records, _surroundings(rows))


def compared_with_itself(
    pairs: Iterable[Arms], measure: Callable[[Row], float | None]
) -> Iterator[tuple[Arms, Comparison]]:
    """Each pair that at least two blocks have, and what the instrument makes of it."""
    for pair in pairs:
        values = stats.log_ratios(_by_block(pair.above, measure), _by_block(pair.below, measure))
        if len(values) > 1:
            yield pair, stats.compare({"aa": values}, seed=1)[0]


def arm_steady(arm: Sequence[Row]) -> bool | None:
    """Whether an arm's windows are free of a trend; None where no run of it could tell."""
    told = [[float(share) for share in row.tenths.split()] for row in arm if row.tenths]
    return arm_is_steady(told) if told else None


def _surroundings(rows: Sequence[Row]) -> Surroundings:
    """Of the sweep: the calibration in its first block and in its last."""
    blocks = sorted({row.block for row in rows})
    if len(blocks) < 2:
        return Surroundings()
    first, last = (
        [row.calibration_us for row in rows if row.block == block and row.calibration_us is not None]
        for block in (blocks[0], blocks[-1])
    )
    return Surroundings(
        steal_share=_mean_steal(rows),
        calibration_us_before=undisturbed_us(first) if first else None,
        calibration_us_after=undisturbed_us(last) if last else None,
    )


def undisturbed_us(calibrations_us: Sequence[float]) -> float:
    """How long the fixed piece of work takes where no neighbour is in its way: the lower quartile."""
    return float(np.quantile(calibrations_us, 0.25))


def _mean_steal(rows: Sequence[Row]) -> float | None:
    shares = {row.run_id: row.steal_share for row in rows if row.steal_share is not None}
    return sum(shares.values()) / len(shares) if shares else None


def _load(row: Row) -> Load:
    arrivals = None
    if row.rate_hz is not None and row.arrival_variation is not None and row.arrival_rate_ratio:
        arrivals = Arrivals(
            rate_hz=row.rate_hz,
            count=(row.count + row.errors) // max(row.clients, 1),
            gap_us_mean=1e6 / (row.rate_hz * row.arrival_rate_ratio),
            variation=row.arrival_variation,
            ks_distance=row.arrival_ks_distance,
            dispersion=row.arrival_dispersion,
            slices=100,
        )
    return Load(
        loop="open" if row.loop == "open" else "closed",
        connections=row.clients * row.connections,
        duration_s=row.duration_s,
        warm_up_s=row.warm_up_s,
        starved=row.starved_clients * row.connections,
        policy="per-request" if row.connection == "per-request" else "kept-alive",
        rate_hz=row.rate_hz,
        process=None if row.rate_hz is None else "constant" if row.arrivals == "constant" else "poisson",
        late_us_p99=row.late_us_p99,
        arrivals=arrivals,
        cpu_share=row.client_cpu_share,
        spinning=row.loop == "open",
    )


def _times(row: Row, percentiles: bool) -> Times:
    published = ((50.0, row.response_us_p50), (90.0, row.response_us_p90), (99.0, row.response_us_p99))
    ranked = tuple(Percentile(rank, us, row.effective_count) for rank, us in published if us is not None)
    shares_window = row.loop == "closed" and row.mix == row.request  # the think time is of all types together
    return Times(
        clock="perf_counter_ns",
        mean_us=row.response_us_mean or 0.0,
        start="due" if row.loop == "open" else "sent",
        percentiles=ranked if percentiles else ranked[:1],
        max_us=row.response_us_max,
        think_us_mean=row.think_us_mean if shares_window else None,
    )


def _seen(row: Row) -> dict[str, Level]:
    seen: dict[str, Level] = {}
    if row.connection == "kept-alive" and row.server_connections is not None:
        seen["connections"] = row.server_connections
    if row.server_threads is not None:
        seen["threads"] = row.server_threads
    return seen


def _level(value: str | float | bool | None) -> Level:
    return "none" if value is None else value


def _by_block(rows: Iterable[Row], measure: Callable[[Row], float | None]) -> dict[int, float]:
    values = ((row.block, measure(row)) for row in rows)
    return {block: value for block, value in values if value}
