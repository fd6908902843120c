"""One-off costs in a mean: the mean of N calls is a + b ÷ N, where a call costs a, and b is paid once. Pure.

Each block has a mean for each N, and its own a and b by least squares on 1 ÷ N; the intervals are Student's t over the
blocks' values. A block in which fewer than two N were answered has none. The first call and connecting are timed apart,
so that b is also measured directly (``paid_once``). The fit and the measured value should agree. Runs in which the
hypervisor took the cores are left out by the same rule as rounds of a sweep. The rule does not look at their times.
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
    """Fit of means by the number N of calls: ``mean(N) = each_us + once_us ÷ N``, with intervals over blocks."""

    each_us: Estimate
    once_us: Estimate
    off_share: float
    """Largest deviation, as a share, of the blocks' mean at any N from the mean of their fits."""

    def at(self, calls: float) -> float:
        """Mean that the fit gives for this number of calls, µs."""
        return self.each_us.value + self.once_us.value / calls


@dataclass(frozen=True, slots=True)
class ColdJudged:
    """Rows of cold runs."""

    rows: Sequence[ColdRow] = ()
    is_whole: bool = True
    """True where all blocks of the plan were measured. Fewer blocks decide no claim."""


def judged(plan: ColdPlan, blocks: Sequence[Block[ColdRun]], limits: Limits = LIMITS) -> ColdJudged:
    """Rows of all blocks, without the runs that were robbed of time."""
    found = tuple(row for block in blocks for row in rows(plan, block.counting(limits)))
    return ColdJudged(found, len(blocks) >= plan.blocks)


def cell_interval(values: Sequence[ColdRow], cell: ColdCell, name: str) -> Estimate | None:
    """A column of a cell, such as ``connect_us`` or ``first_call_us``: the geometric mean over the blocks, since times
    are positive and some are many times others. None where there is no value."""
    return geometric_interval((getattr(row, name) for row in values if row.cell == cell), CONFIDENCE)


def paid_once(values: Sequence[ColdRow], setting: Setting, with_connect: bool) -> Estimate | None:
    """Costs that a run paid once, as measured: the first call's time beyond a later call's, with connecting if asked
    for.

    A block's value is the mean over its N. None where no run had a second call.
    """
    by_block: dict[int, list[float]] = {}
    for row in values:
        if row.cell.setting == setting and row.rest_us_mean is not None:
            once_us = row.first_call_us - row.rest_us_mean + with_connect * row.connect_us
            by_block.setdefault(row.block, []).append(once_us)
    return mean_interval([float(np.mean(each)) for each in by_block.values()], CONFIDENCE) if by_block else None


def one_off(values: Sequence[ColdRow], setting: Setting, with_connect: bool) -> OneOff | None:
    """The fit for a setting over its N. ``with_connect``: of means that include connecting, for a program that connects
    inside its first timed call. None where no block has two N."""
    by_block: dict[int, dict[int, float]] = {}
    for row in values:
        if row.cell.setting == setting:
            mean_us = row.with_connect_us if with_connect else row.mean_us
            by_block.setdefault(row.block, {})[row.cell.calls] = mean_us
    return fit(list(by_block.values()))


def fit(blocks: Sequence[Mapping[int, float]]) -> OneOff | None:
    """Fits a + b ÷ N to each block's means by N. None where no block has two N."""
    usable = [block for block in blocks if len(block) > 1]
    if not usable:
        return None
    pairs = [_least_squares(block) for block in usable]
    each = positive_interval([pair[0] for pair in pairs], CONFIDENCE)
    once = mean_interval([pair[1] for pair in pairs], CONFIDENCE)
    off = []
    for calls in sorted({calls for block in usable for calls in block}):
        seen = float(np.mean([block[calls] for block in usable if calls in block]))
        fitted = float(np.mean([pair[0] + pair[1] / calls for pair in pairs]))
        off.append(abs(fitted - seen) / seen)
    return OneOff(each, once, max(off))


def _least_squares(means: Mapping[int, float]) -> tuple[float, float]:
    """a and b of one block."""
    once, seen = np.array([1 / calls for calls in means]), np.array(list(means.values()))
    spread = once - once.mean()
    b = float((spread * (seen - seen.mean())).sum() / np.square(spread).sum())
    return float(seen.mean()) - b * float(once.mean()), b
