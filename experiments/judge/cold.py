"""One-off costs of cold runs: the mean time of N calls is a + b ÷ N. Each call costs a, and a run pays b once.

In a cold run a new client process makes N calls. Each block has a mean time for each N. A least-squares fit on 1 ÷ N
gives a and b of each block. The intervals are Student's t intervals over the blocks' values. If a block has answers for
only one N, the block has no fit. The first call and connecting are also timed separately. These times give b directly
(``paid_once``), and should agree with the fitted b. A run in which other programs took the cores is left out, by the
same rule as a round of a sweep. The rule ignores the measured times. The functions are pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clients.load.record.cold_run import ColdRun
from experiments.design.limits import LIMITS, Limits
from experiments.design.setting import Setting
from experiments.judge.stats import Estimate, geometric_interval, mean_interval, positive_interval
from experiments.kinds.block import Block
from experiments.kinds.cold import ColdCell, ColdPlan, ColdRow, rows

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class OneOff:
    """Fit of a call's mean time in runs of N calls: ``mean(N) = each_us + once_us ÷ N``. Intervals are over blocks.

    ``each_us`` is the time of a later call. ``once_us`` is the extra time that each run needs once.
    """

    each_us: Estimate
    once_us: Estimate
    off_share: float
    """Largest relative difference between the fitted mean and the measured mean, over all N. Both means are over the
    blocks that measured this N."""

    def at(self, calls: float) -> float:
        """Fitted mean time of a call, in µs, in a run of ``calls`` calls."""
        return self.each_us.value + self.once_us.value / calls


@dataclass(frozen=True, slots=True)
class ColdJudged:
    """Rows of the cold runs. Runs in which other programs took the cores are left out."""

    rows: Sequence[ColdRow] = ()
    is_whole: bool = True
    """True if all planned blocks were measured. If False, a study decides no claim."""


def judged(plan: ColdPlan, blocks: Sequence[Block[ColdRun]], limits: Limits = LIMITS) -> ColdJudged:
    """Rows of the cold runs, one for each cell and block. Runs in which other programs took the cores are left out."""
    found = tuple(row for block in blocks for row in rows(plan, block.counting(limits)))
    return ColdJudged(found, len(blocks) >= plan.blocks)


def cell_interval(values: Sequence[ColdRow], cell: ColdCell, name: str) -> Estimate | None:
    """Geometric mean of one column of a cell's rows, over the blocks. ``name`` is the column, such as ``connect_us``.

    The mean is geometric because times are positive, and a few times are far longer than the others. None if the cell
    has no row.
    """
    return geometric_interval((getattr(row, name) for row in values if row.cell == cell), CONFIDENCE)


def paid_once(values: Sequence[ColdRow], setting: Setting, with_connect: bool) -> Estimate | None:
    """Measured time that a cold run needs only once: the time of the first call minus the mean time of a later call.

    If ``with_connect`` is true, the time of connecting is added. A block has cells with several numbers of calls; the
    block's value is the mean over these cells. None if no run has a second call.
    """
    by_block: dict[int, list[float]] = {}
    for row in values:
        if row.cell.setting == setting and row.rest_us_mean is not None:
            once_us = row.first_call_us - row.rest_us_mean + with_connect * row.connect_us
            by_block.setdefault(row.block, []).append(once_us)
    return mean_interval([float(np.mean(each)) for each in by_block.values()], CONFIDENCE) if by_block else None


def one_off(values: Sequence[ColdRow], setting: Setting, with_connect: bool) -> OneOff | None:
    """Fits a + b ÷ N to the mean times of one setting's runs of N calls. None if no block has two different N.

    If ``with_connect`` is true, the mean times include the time of connecting, as for a client program that connects
    inside its first timed call.
    """
    by_block: dict[int, dict[int, float]] = {}
    for row in values:
        if row.cell.setting == setting:
            mean_us = row.with_connect_us if with_connect else row.mean_us
            by_block.setdefault(row.block, {})[row.cell.calls] = mean_us
    return fit(list(by_block.values()))


def fit(blocks: Sequence[Mapping[int, float]]) -> OneOff | None:
    """Fits a + b ÷ N to each block by least squares. Each block maps a number of calls N to a mean time in µs. None if
    no block has two different N."""
    usable = [block for block in blocks if len(block) > 1]
    if not usable:
        return None
    pairs = [np.polyfit([1 / calls for calls in block], [*block.values()], 1).tolist() for block in usable]
    each = positive_interval([a for _, a in pairs], CONFIDENCE)
    once = mean_interval([b for b, _ in pairs], CONFIDENCE)
    off = []
    for calls in sorted({calls for block in usable for calls in block}):
        own = [(block[calls], a + b / calls) for block, (b, a) in zip(usable, pairs, strict=True) if calls in block]
        seen, fitted = np.mean(own, axis=0).tolist()
        off.append(abs(fitted - seen) / seen)
    return OneOff(each, once, max(off))
