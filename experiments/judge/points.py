"""Points: the values of one arm over the blocks, for figures and tables. The functions are pure.

An arm is a server under a load. A point has a mean, percentiles and processor time. The mean is the geometric mean of
the blocks' means. The interval of the mean is Student's t interval of the logarithms, and so lies above 0. Percentiles
come from the histograms of all blocks together. A percentile is given only if ten or more independent requests lie
beyond the percentile (gate 13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from clients.load.record.times import Times, total
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
    """Mean, percentiles, errors and processor time of one arm and one request type, over the blocks."""

    arm: Arm
    request: str
    mean_us: Estimate | None
    """Geometric mean, over the blocks, of the mean response time in a block. None if no request was answered. The mean
    in a block includes all counted requests: no slow request is trimmed."""
    times: Times
    """Histogram of the response times of all blocks."""
    errors: int
    """Number of counted requests that got no valid reply."""
    effective: float
    """Effective sample size: a sample of this many independent requests would estimate the 99th percentile as exactly
    as the arm's requests do."""
    server_cpu_us: Estimate | None
    """Processor time of the server for each request. None if no time was read."""
    load_share: float | None
    """Share of one core that the load used. None if the load's program does not report processor time."""
    lost_share: float
    """Share of the arm's slices that were not kept, for example because a reply came late: the mean over the blocks."""
    load_limited: bool
    """True if the load was near its limit, so that the latency depends on client and server together (gate 7)."""
    windows: int
    """Number of windows of the arm in all blocks. 0 in a sweep of slices."""
    starved_clients: int
    """Number of starved connections, summed over all windows. A starved connection got no reply in the window of a
    closed loop, or in the whole run of an open loop."""
    refusals: tuple[Refusal, ...]
    """Refusals of the arm by gates, in all blocks. Equal refusals occur only once."""

    @property
    def starved_each(self) -> float:
        """Mean number of starved connections in a window. 0 if the arm has no windows."""
        return self.starved_clients / self.windows if self.windows else 0.0

    def percentile_us(self, percent: float) -> float | None:
        """Percentile of the response times, in µs. None if too few independent requests lie beyond the percentile."""
        if not self.times.count or not is_carried(percent, self.effective):
            return None
        _, highest, counts = self.times.buckets()
        rank = max(1, int(percent / 100 * self.times.count + 0.5))
        return float(min(highest[np.searchsorted(np.cumsum(counts), rank)], self.times.max_ns)) / 1000


def points(sweep: Sweep, blocks: Sequence[Block]) -> dict[tuple[Arm, str], Point]:
    """Points of a sweep, by arm and request type. The type ``all`` has the requests of all types."""
    return dict(_points(sweep, tuple(blocks)))


@last_results(8)
def _points(sweep: Sweep, blocks: tuple[Block, ...]) -> dict[tuple[Arm, str], Point]:
    return {
        (arm, request): _point(sweep, blocks, arm, request)
        for place, arm in enumerate(sweep.arms if blocks else ())
        for request in blocks[0].arms[place].answered
    }


def _point(sweep: Sweep, blocks: Sequence[Block], arm: Arm, request: str) -> Point:
    """Point of an arm and a request type. ``blocks`` must have at least one block."""
    place = sweep.places[arm]
    windows = [window for block in blocks for window in block.arms[place].windows]
    answered = [block.arms[place].answered[request] for block in blocks]
    refusals = (refusal for block in blocks for refusal in gates.arm_refusals(sweep, block, arm))
    return Point(
        arm=arm,
        request=request,
        mean_us=geometric_interval((ratios.arm_mean_us(sweep, block, place, request) for block in blocks), CONFIDENCE),
        times=total([each.times for each in answered]),
        errors=sum(sum(each.errors.values()) for each in answered),
        effective=sum(each.effective for each in answered),
        server_cpu_us=geometric_interval((ratios.arm_cpu_us(sweep, block, place) for block in blocks), CONFIDENCE),
        load_share=gates.load_share(sweep, blocks, arm),
        lost_share=fmean(ratios.lost_share(block, place) for block in blocks),
        load_limited=gates.is_load_limited(sweep, blocks, arm),
        windows=len(windows),
        starved_clients=sum(window.starved_clients for window in windows),
        refusals=tuple(dict.fromkeys(refusals)),
    )


def stages(sweep: Sweep, blocks: Sequence[Block], arm: Arm) -> Mapping[str, Sequence[StageSummary]]:
    """Summaries of the stages of an arm's requests, by request type and for ``all`` types. A type has one summary for
    each block whose servers wrote a timeline."""
    found: dict[str, list[StageSummary]] = {}
    for block in blocks:
        for name, summary in block.arms[sweep.places[arm]].stages.items():
            found.setdefault(name, []).append(summary)
    return found
