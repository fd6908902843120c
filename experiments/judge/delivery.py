"""Reports of receivers, over blocks: means with intervals, and ratios of two cells that ran in the same blocks. Pure.

A block's value of a cell is that of its run. Runs in which the hypervisor took the cores are left out by the same rule
as rounds of a sweep. A ratio's interval is Student's t on the logarithms. Two cells differ where the interval excludes
1, and Holm's p over all ratios of the family is under the level. A statement on several ratios at once takes their
intervals at Bonferroni's level.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.design.limits import LIMITS, Limits
from experiments.design.setting import Setting
from experiments.judge.stats import Estimate, geometric_interval, holm, ratio_interval, sign_flip_p
from experiments.kinds.block import Block
from experiments.kinds.delivery import Delivered, DeliveryPlan, DeliveryRow, rows

CONFIDENCE = 0.95

Value = Callable[[DeliveryRow], float | None]
"""Reads a value of a run, such as its throughput."""


@dataclass(frozen=True, slots=True)
class DeliveryRatio:
    """Ratio above ÷ below, over the blocks that have both."""

    above: Setting
    below: Setting
    ratio: Estimate
    together: Estimate
    """The same ratio, with an interval that holds for all ratios of its family at once."""
    p_holm: float

    @property
    def differs(self) -> bool:
        """True where the two cells are told apart."""
        return self.p_holm < 1 - CONFIDENCE and not self.ratio.low <= 1 <= self.ratio.high


@dataclass(frozen=True, slots=True)
class DeliveryJudged:
    """Rows of receivers' reports."""

    rows: Sequence[DeliveryRow] = ()
    is_whole: bool = True
    """True where all blocks of the plan were measured. Fewer blocks decide no claim."""


def judged(plan: DeliveryPlan, blocks: Sequence[Block[Delivered]], limits: Limits = LIMITS) -> DeliveryJudged:
    """Rows of all runs, without those that were robbed of time."""
    found = tuple(row for block in blocks for row in rows(plan, block.counting(limits)))
    return DeliveryJudged(found, len(blocks) >= plan.blocks)


def interval(values: Sequence[DeliveryRow], of: Setting, value: Value) -> Estimate | None:
    """Geometric mean over the blocks, since all values are positive. None where there is no value."""
    return geometric_interval((value(row) for row in values if row.cell.setting == of), CONFIDENCE)


def ratios(
    values: Sequence[DeliveryRow], pairs: Sequence[tuple[Setting, Setting]], value: Value
) -> tuple[DeliveryRatio, ...]:
    """Ratio above ÷ below of each pair, as one family. Pairs without a common block are left out."""
    seen = []
    for above, below in pairs:
        over, under = _logs(values, above, value), _logs(values, below, value)
        common = sorted(over.keys() & under.keys())
        if common:
            seen.append((above, below, [over[block] - under[block] for block in common]))
    strict = 1 - (1 - CONFIDENCE) / max(1, len(seen))
    adjusted = holm([sign_flip_p(logs) for _, _, logs in seen])
    return tuple(
        DeliveryRatio(above, below, ratio_interval(logs, CONFIDENCE), ratio_interval(logs, strict), p)
        for (above, below, logs), p in zip(seen, adjusted, strict=True)
    )


def _logs(values: Sequence[DeliveryRow], of: Setting, value: Value) -> dict[int, float]:
    """Logarithm of each block's value."""
    seen = {row.block: value(row) for row in values if row.cell.setting == of}
    return {block: math.log(each) for block, each in seen.items() if each}
