"""Values and words that the study's texts share: receivers' reports, texts of comparisons, spreads of window means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from operator import attrgetter
from statistics import fmean, stdev

import numpy as np

from experiments.design.arms import Arm
from experiments.design.setting import Setting
from experiments.judge import ratios
from experiments.judge.delivery import DeliveryJudged, interval
from experiments.judge.gates import arm_refusals
from experiments.judge.stats import Estimate, ratio_interval
from experiments.judge.verdicts import Judged, Judgement, Verdict
from experiments.kinds.delivery import DeliveryRow
from experiments.results.observed import ALL
from experiments.show.content import Seen
from experiments.show.numbers import counted, number
from experiments.show.sentences import listed
from experiments.studies.sockets import design
from experiments.studies.sockets.design import GRAPHS, NAMES, RATES, SIZES, ratio_name

ABSENT = "Not measured: one of the compared APIs is not built here, or gates left out its blocks."


def delivered(seen: Seen) -> DeliveryJudged:
    """Judged reports of the receivers, without rows where no receiver was measured."""
    return seen.of(DeliveryJudged) or DeliveryJudged()


def reported(seen: Seen, of: Setting, column: str) -> Estimate | None:
    """Geometric mean over blocks of a column of the receivers' reports, with its interval. None where no receiver
    reported the column."""
    return interval(delivered(seen).rows, of, attrgetter(column))


def brief(judged: Judged | None) -> str:
    """Text of a comparison for a list. Where the comparison was not measured, the text gives the reason."""
    return ABSENT if judged is None else listed(judged)


def over_cells(judgement: Judgement, above: str, below: str) -> tuple[Judged, ...]:
    """Measured comparisons of two APIs, at most one for each rate and size, in the order of the graphs."""
    found = (judgement.judged.get(ratio_name(above, below, cell)) for cell in GRAPHS)
    return tuple(each for each in found if each is not None)


def standing(judgement: Judgement, above: str, below: str) -> str:
    """Sentence on two APIs: the range of their ratios over all rates and sizes, and the number of ratios with each
    verdict."""
    seen = over_cells(judgement, above, below)
    if not seen:
        return f"{NAMES[above]} ÷ {NAMES[below]}: not measured."
    values = [each.typical.value for each in seen]
    between = f"{number(min(values))} to {number(max(values))} times the time" if len(seen) > 1 else number(values[0])
    told = f"{NAMES[above]} takes {between} of {NAMES[below]}"
    if not all(each.rulings for each in seen):
        return f"No verdict: {told}."
    kinds = (Verdict.SLOWER, Verdict.FASTER, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)
    counts = {kind: sum(each.verdict is kind for each in seen) for kind in kinds}
    said = ", ".join(f"{kind.value} in {count}" for kind, count in counts.items() if count)
    return f"{told}; verdicts in {counted(len(seen), 'cell')}: {said}."


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread of the window means of an arm (one API under one load), and the mean of the window means with its
    interval."""

    of: Setting
    samples: int
    mean_us: float
    deviation_us: float
    mean: Estimate
    """Mean with its interval over blocks."""

    @property
    def low_us(self) -> float:
        """The mean − 1.96 standard deviations of the samples: the lower end of an "interval" of single samples."""
        return self.mean_us - 1.96 * self.deviation_us


def spread(judgement: Judgement, of: Setting) -> Spread | None:
    """Spread of an arm's window means over all blocks. None for fewer than two windows."""
    by_block = [window_means_us(judgement, block, of) for block in range(len(judgement.blocks))]
    samples = [each for block in by_block for each in block]
    if len(samples) < 2:
        return None
    logs = [float(np.log(fmean(block))) for block in by_block if block]
    return Spread(of, len(samples), fmean(samples), stdev(samples), ratio_interval(logs, 0.95))


def window_means_us(judgement: Judgement, block: int, of: Setting) -> list[float]:
    """Mean response time, in µs, of each window of an arm in a block. Windows that are left out of plain means are left
    out here too. Empty where a gate refuses the arm in the block. ``block``: index of the block in the judgement.
    """
    arm = Arm(of)
    if arm not in judgement.sweep.arms:
        return []
    seen = judgement.blocks[block]
    if arm_refusals(judgement.sweep, seen, arm):
        return []
    place = judgement.sweep.arms.index(arm)
    own = np.flatnonzero(
        ratios.used_whole(judgement.sweep.limits, seen) & (ratios.column(seen.slices.arm) == place)
    ).tolist()
    counts, sums = seen.slices.counts.get(ALL, []), seen.slices.sums_ns.get(ALL, [])
    return [sums[each] / counts[each] / 1000 for each in own if counts[each]]


def spread_log_ratios(judgement: Judgement, above: Setting, below: Setting) -> list[float]:
    """Logarithms of the ratio of two arms' spreads, above ÷ below, with a value for each block.

    The spread of an arm in a block is a mean absolute deviation: of the arm's window means in the block, from the
    median over all blocks. The deviation is on the log scale, as in the test of Brown and Forsythe (1974).
    """
    return _log_ratios(*(_deviations(judgement, each) for each in (above, below)))


def timed(rows: Sequence[DeliveryRow], api: Setting) -> dict[int, float]:
    """Mean time, in µs, by the document's timer at the receiver, by block. A block without timed messages has no
    entry."""
    return {row.block: row.cycle_us for row in rows if row.cell.setting == api and row.cycle_us}


def told_log_ratios(rows: Sequence[DeliveryRow], above: Setting, below: Setting) -> list[float]:
    """Logarithms of the ratio of two APIs' spreads by the document's timer at the receiver, above ÷ below. Each block
    that has both APIs has a value. The spread of an API in a block is the distance of the block's mean from the median
    of all blocks.
    """
    far = []
    for api in (above, below):
        cycles = timed(rows, api)
        median = float(np.median([*cycles.values()])) if cycles else 0.0
        far.append({block: abs(each - median) for block, each in cycles.items()})
    return _log_ratios(*far)


def _deviations(judgement: Judgement, of: Setting) -> dict[int, float]:
    """Mean absolute deviation of an arm's window means in a block from the median over all blocks, on the log scale, by
    the index of the block."""
    by_block = [np.log(window_means_us(judgement, block, of)) for block in range(len(judgement.blocks))]
    filled = {place: block for place, block in enumerate(by_block) if len(block)}
    median = float(np.median(np.concatenate([*filled.values()]))) if filled else 0.0
    return {place: float(np.abs(block - median).mean()) for place, block in filled.items()}


def _log_ratios(above: Mapping[int, float], below: Mapping[int, float]) -> list[float]:
    """Logarithms of above ÷ below, one for each block in which both values exist and neither value is 0."""
    both = sorted(above.keys() & below.keys())
    return [log(above[block] / below[block]) for block in both if above[block] and below[block]]


def size_log_ratios(judgement: Judgement, apis: Sequence[str]) -> list[float]:
    """Logarithms of a ratio of mean response times: with the larger message ÷ with the smaller message. The value of a
    block is the mean over ``apis`` and all rates.
    """
    small, large = SIZES
    cells = [(design.of(api, rate, large), design.of(api, rate, small)) for api in apis for rate in RATES]
    found = []
    for block in range(len(judgement.blocks)):
        means = [[window_means_us(judgement, block, each) for each in pair] for pair in cells]
        if all(each for pair in means for each in pair):
            found.append(fmean(log(fmean(above) / fmean(below)) for above, below in means))
    return found
