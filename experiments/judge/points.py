"""Points: the values of one arm over the blocks, for figures and tables: whole means, percentiles, processor time.

A mean's interval is Student's t over the logarithms of the blocks' means, so that no end is under 0. Percentiles come
from the histograms of all blocks together, and are given only where enough independent requests lie beyond them (gate
13). Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from clients.load.record.times import Times
from experiments.design.arms import Arm
from experiments.design.sweep import Sweep
from experiments.judge import gates, ratios
from experiments.judge.gates import Refusal
from experiments.judge.ratios import last_results
from experiments.judge.stats import Estimate, geometric_interval
from experiments.results.observed import Block, is_carried
from experiments.results.stages import StageSummary

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Point:
    """One arm and request type, over the blocks."""

    arm: Arm
    request: str
    mean_us: Estimate | None
    """Whole mean; None where no request was answered."""
    times: Times
    """Times of all blocks."""
    errors: int
    """Counted requests that got no valid reply."""
    effective: float
    server_cpu_us: Estimate | None
    load_share: float | None
    """The load side's share of its core; None where its program does not report it."""
    lost_share: float
    """Share of the arm's slices that are in no pair."""
    load_limited: bool
    """True where the latency is that of client and server together (gate 7)."""
    windows: int
    starved_clients: int
    """Starved clients of all windows together."""
    refusals: tuple[Refusal, ...]
    """Refusals of the arm by gates, in any block."""

    @property
    def starved_each(self) -> float:
        """Starved clients of a window, on average; 0 without windows."""
        return self.starved_clients / self.windows if self.windows else 0.0

    def percentile_us(self, percent: float) -> float | None:
        """A percentile; None where the requests are too few for it."""
        if not self.times.count or not is_carried(percent, self.effective):
            return None
        _, highest, counts = self.times.buckets()
        rank = max(1, int(percent / 100 * self.times.count + 0.5))
        return float(min(highest[np.searchsorted(np.cumsum(counts), rank)], self.times.max_ns)) / 1000


def points(sweep: Sweep, blocks: Sequence[Block]) -> dict[tuple[Arm, str], Point]:
    """Every point of a sweep, by arm and request type, and by ``all``."""
    return dict(_points(sweep, tuple(blocks)))


@last_results(8)
def _points(sweep: Sweep, blocks: tuple[Block, ...]) -> dict[tuple[Arm, str], Point]:
    requests = {arm: tuple(blocks[0].arms[place].answered) if blocks else () for place, arm in enumerate(sweep.arms)}
    found: dict[tuple[Arm, str], Point] = {}
    for arm in sweep.arms:
        refusals = [refusal for block in blocks for refusal in gates.arm_refusals(sweep, block, arm)]
        every = tuple(dict.fromkeys(refusals))
        found |= {(arm, request): _point(sweep, blocks, arm, request, every) for request in requests[arm]}
    return found


def _point(sweep: Sweep, blocks: Sequence[Block], arm: Arm, request: str, refusals: tuple[Refusal, ...]) -> Point:
    place, times, effective = sweep.arms.index(arm), Times(), 0.0
    windows = [window for block in blocks for window in block.arms[place].windows]
    for block in blocks:
        answered = block.arms[place].answered[request]
        times.merge(answered.times)
        effective += answered.effective
    return Point(
        arm=arm,
        request=request,
        mean_us=_over_blocks(blocks, lambda block: ratios.arm_mean_us(sweep, block, place, request)),
        times=times,
        errors=sum(sum(block.arms[place].answered[request].errors.values()) for block in blocks),
        effective=effective,
        server_cpu_us=_over_blocks(blocks, lambda block: ratios.arm_cpu_us(sweep, block, place)),
        load_share=gates.load_share(sweep, blocks, arm),
        lost_share=fmean(ratios.lost_share(block, place) for block in blocks) if blocks else 0.0,
        load_limited=gates.is_load_limited(sweep, blocks, arm),
        windows=len(windows),
        starved_clients=sum(window.starved_clients for window in windows),
        refusals=refusals,
    )


def _over_blocks(blocks: Sequence[Block], value: Callable[[Block], float | None]) -> Estimate | None:
    """Mean of the blocks' values; its interval is computed on their logarithms, so that it lies above 0 (rule 12)."""
    values = [each for each in map(value, blocks) if each]
    ends = geometric_interval(values, CONFIDENCE)
    return None if ends is None else replace(ends, value=fmean(values))


def stages(sweep: Sweep, blocks: Sequence[Block], arm: Arm) -> Mapping[str, Sequence[StageSummary]]:
    """The stages that servers stamped, in each block that has them: by request type, and of all requests."""
    place = sweep.arms.index(arm)
    names = dict.fromkeys(name for block in blocks for name in block.arms[place].stages)
    return {
        name: [block.arms[place].stages[name] for block in blocks if name in block.arms[place].stages] for name in names
    }
