"""Delivery runs, over blocks: means with intervals, and ratios of two cells that ran in the same blocks.

In a delivery run a client sends messages, and the receiving server reports the messages and their times. A cell is a
setting and the duration of the sending. In each block a cell has one run, which gives one value. A run in which other
programs took the cores is left out, by the same rule as a round of a sweep. The interval of a ratio is Student's t
interval of the logarithms. Two cells differ if the interval excludes 1, and Holm's p over the family of ratios is under
the level. A statement on several ratios at once uses wider intervals, at Bonferroni's level. The functions are pure.
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
"""Function that reads one value from the row of a delivery run, such as the throughput."""


@dataclass(frozen=True, slots=True)
class DeliveryRatio:
    """Ratio of the values of two cells, above ÷ below. Only blocks that have values of both cells count."""

    above: Setting
    below: Setting
    ratio: Estimate
    together: Estimate
    """The same ratio with a wider interval, at Bonferroni's level. With a probability of 95 %, all such intervals of
    the family contain their true ratios."""
    p_holm: float
    """p of the sign-flip test, after Holm's correction over the family."""

    @property
    def differs(self) -> bool:
        """True if the two cells differ: the interval excludes 1, and ``p_holm`` is under the level of 5 %."""
        return self.p_holm < 1 - CONFIDENCE and not self.ratio.low <= 1 <= self.ratio.high


@dataclass(frozen=True, slots=True)
class DeliveryJudged:
    """Rows of the delivery runs. Runs in which other programs took the cores are left out."""

    rows: Sequence[DeliveryRow] = ()
    is_whole: bool = True
    """True if all planned blocks were measured. If False, a study decides no claim."""


def judged(plan: DeliveryPlan, blocks: Sequence[Block[Delivered]], limits: Limits = LIMITS) -> DeliveryJudged:
    """Rows of the blocks' runs. Runs in which other programs took the cores are left out."""
    found = tuple(row for block in blocks for row in rows(plan, block.counting(limits)))
    return DeliveryJudged(found, len(blocks) >= plan.blocks)


def interval(values: Sequence[DeliveryRow], of: Setting, value: Value) -> Estimate | None:
    """Geometric mean of a setting's values over the blocks. Values of None or 0 are left out. None if no value
    remains."""
    return geometric_interval((value(row) for row in values if row.cell.setting == of), CONFIDENCE)


def ratios(
    values: Sequence[DeliveryRow], pairs: Sequence[tuple[Setting, Setting]], value: Value
) -> tuple[DeliveryRatio, ...]:
    """Ratio of ``value`` for each pair of settings: first setting ÷ second setting. Holm's correction covers all pairs.

    If no block has both settings of a pair, the pair has no ratio. The correction still counts this pair.
    """
    seen = []
    for pair in pairs:
        over, under = (_logs(values, of, value) for of in pair)
        seen.append([over[block] - under[block] for block in sorted(over.keys() & under.keys())])
    strict = 1 - (1 - CONFIDENCE) / max(1, len(pairs))
    adjusted = holm([sign_flip_p(logs) for logs in seen])
    return tuple(
        DeliveryRatio(*pair, ratio_interval(logs, CONFIDENCE), ratio_interval(logs, strict), p)
        for pair, logs, p in zip(pairs, seen, adjusted, strict=True)
        if logs
    )


def _logs(values: Sequence[DeliveryRow], of: Setting, value: Value) -> dict[int, float]:
    """Logarithm of a setting's value in each block, by the block's number. Values of None or 0 are left out."""
    seen = {row.block: value(row) for row in values if row.cell.setting == of}
    return {block: math.log(each) for block, each in seen.items() if each}
