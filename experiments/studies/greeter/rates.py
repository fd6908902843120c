"""Rates and clocks of an arm over the blocks, and their words: each client's rate, the rate of all clients, and the
cost of a reply.

Every value is a block's, so intervals are Student's t over the blocks' logarithms, and lie above 0. Rounds that were
robbed of time are left out, and blocks that a gate refuses. From cold, a block's value is a mean over its runs. Pure.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge import gates, ratios
from experiments.judge.cold import ColdJudged
from experiments.judge.points import CONFIDENCE
from experiments.judge.stats import Estimate, ratio_interval
from experiments.judge.verdicts import Judgement
from experiments.kinds.cold import ColdRow
from experiments.results.observed import ALL, Block, SliceColumns
from experiments.show.content import Seen
from experiments.show.numbers import NOTHING, number, times_between
from experiments.show.sentences import ratio_sentence
from experiments.studies.greeter.design import CALLS, PEER

NOT_MEASURED = f"Not measured: the peer {PEER} was not built. `make peers` builds it."


def brief(judgement: Judgement, name: str, above: str, below: str) -> str:
    """A comparison in its sentence. A missing comparison has a sentence with the reason."""
    judged = judgement.judged.get(name)
    if judged is not None:
        return ratio_sentence(judged, above, below)
    declared = any(each.name == name for each in judgement.sweep.comparisons)
    return "No block of it counts; the report's gates say why." if declared else NOT_MEASURED


def milliseconds(of: Estimate) -> str:
    """Text in milliseconds: ``0.105 ms (0.102 to 0.108)``."""
    return f"{number(of.value / 1000)} ms{ends(of, 1000)}"


def per_second(of: Estimate) -> str:
    """Text of a rate: ``9,120/s (8,900 to 9,350)``."""
    return f"{number(of.value)}/s{ends(of, 1)}"


def microseconds(of: Estimate) -> str:
    """Text in microseconds: ``41.2 µs (40.9 to 41.6)``."""
    return f"{number(of.value)} µs{ends(of, 1)}"


def ends(of: Estimate, factor: float) -> str:
    """Interval in brackets, as `` (0.102 to 0.108)``; empty where there is none."""
    between = times_between(of, factor)
    return "" if between == NOTHING else f" ({between})"


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates and times of an arm. Rates are replies a second; times are µs for each reply."""

    load_limited: bool
    """True where the clients' core was full: then rates and times are those of client and server together."""
    total_hz: Estimate
    """Rate of the server: all clients together."""
    client_hz: Estimate
    """Rate of each client, over its own time: the mean of the clients."""
    response_us: Estimate
    """The mean time of a call."""
    wall_us: Estimate
    """Wall clock a reply, of all clients together: 1 ÷ rate."""
    client_cpu_us: Estimate
    """Processor time of the clients' program, with the library's threads in it."""
    server_cpu_us: Estimate
    wall_over_cpu: Estimate
    """The wall clock ÷ the clients' processor time."""
    rate_times_response: Estimate
    """Mean time of a call × rate: the calls under way, by Little's law."""


@dataclass(frozen=True, slots=True)
class FromCold:
    """Times of runs of a fresh program; µs."""

    connect_us: Estimate
    first_us: Estimate
    """Time of the first call on a connection that was made before it."""
    as_timed_us: Estimate
    """Time of connecting and of the first call together, as a program sees it that connects within its first call, like
    the original's."""
    rest_us: Estimate
    """The mean of the other calls of the run."""
    first_over_rest: Estimate
    as_timed_over_rest: Estimate


def rates(judgement: Judgement, of: Setting) -> Rates | None:
    """Rates of an arm in blocks that no gate refuses. None without such a block, or where the client does not state its
    clocks."""
    sweep, arm = judgement.sweep, Arm(of)
    if arm not in sweep.arms:
        return None
    blocks = [block for block in judgement.blocks if not any(gates.arm_refusals(sweep, block, arm))]
    if not blocks:
        return None
    place = sweep.arms.index(arm)

    def over(value: Callable[[Block], float | None]) -> Estimate | None:
        return over_blocks([value(block) for block in blocks])

    def parts(
        above: Callable[[SliceColumns], Sequence[int]], below: Callable[[SliceColumns], Sequence[int]]
    ) -> Estimate | None:
        def value(block: Block) -> float | None:
            divisor = _sum(judgement, block, place, below(block.slices))
            return _sum(judgement, block, place, above(block.slices)) / divisor if divisor else None

        return over(value)

    found = (
        _times(1e9, parts(lambda all_: all_.counts[ALL], lambda all_: all_.active_ns)),
        over(lambda block: _mean_rate([hz for window in block.arms[place].windows for hz in window.clients_hz])),
        over(lambda block: ratios.arm_mean_us(sweep, block, place, ALL)),
        _times(0.001, parts(lambda all_: all_.active_ns, lambda all_: all_.counts[ALL])),
        _times(0.001, parts(lambda all_: all_.client_cpu_ns, lambda all_: all_.counts[ALL])),
        over(lambda block: ratios.arm_cpu_us(sweep, block, place)),
        parts(lambda all_: all_.active_ns, lambda all_: all_.client_cpu_ns),
        parts(lambda all_: all_.sums_ns[ALL], lambda all_: all_.active_ns),
    )
    estimates = [each for each in found if each is not None]
    if len(estimates) < len(found):
        return None
    return Rates(gates.is_load_limited(sweep, blocks, arm), *estimates)


def cold_runs(seen: Seen) -> ColdJudged:
    """The judged cold runs; without rows where none were measured."""
    return seen.of(ColdJudged) or ColdJudged()


def from_cold(rows: Sequence[ColdRow], of: Setting) -> FromCold | None:
    """Times of the runs of 1000 calls; None where these were not measured."""
    own = [row for row in rows if row.cell.setting == of and row.cell.calls == CALLS]

    def over(value: Callable[[ColdRow], float]) -> Estimate | None:
        return over_blocks([value(row) for row in own])

    found = (
        over(lambda row: row.connect_us),
        over(lambda row: row.first_call_us),
        over(lambda row: row.connect_us + row.first_call_us),
        over(lambda row: row.rest_us_mean or 0.0),
        over(lambda row: row.first_call_us / row.rest_us_mean if row.rest_us_mean else 0.0),
        over(lambda row: (row.connect_us + row.first_call_us) / row.rest_us_mean if row.rest_us_mean else 0.0),
    )
    estimates = [each for each in found if each is not None]
    return FromCold(*estimates) if len(estimates) == len(found) else None


def over_blocks(values: Sequence[float | None]) -> Estimate | None:
    """Geometric mean of the blocks' values, without values that are 0 or missing. None where no value is left."""
    seen = [math.log(each) for each in values if each]
    return ratio_interval(seen, CONFIDENCE) if seen else None


def _sum(judgement: Judgement, block: Block, place: int, column: Sequence[int]) -> float:
    """Sum of a column over the counted windows of an arm in a block."""
    own = ratios.used(judgement.sweep.limits, block) & (ratios.column(block.slices.arm) == place)
    return float(np.asarray(column)[own].sum())


def _times(factor: float, of: Estimate | None) -> Estimate | None:
    """The estimate times a factor, in another unit."""
    return of and Estimate(of.value * factor, of.low * factor, of.high * factor, of.n)


def _mean_rate(rates_hz: Sequence[float]) -> float | None:
    """Rate over runs with the same number of calls: all calls ÷ all time, which is the harmonic mean."""
    return statistics.harmonic_mean(rates_hz) if rates_hz else None
