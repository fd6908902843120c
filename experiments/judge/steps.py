"""Steps of a curve: the mean latency of each arm ÷ the mean latency of the arm before, over the same blocks.

A claim that latency rises, falls or stays equal concerns every step, and not only the ends of the curve: a curve may
first fall, and still end above its beginning. A step uses the untrimmed means of two arms. A block is left out of a
step if a gate refuses one of the two arms. Holm's correction covers the steps of one curve. Left out: the verdict on a
claim; a study decides the verdict from the steps. The functions are pure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiments.design.arms import Arm
from experiments.design.limits import Limits
from experiments.judge import ratios
from experiments.judge.gates import arm_refusals
from experiments.judge.stats import Estimate, holm, ratio_interval, sign_flip_p
from experiments.judge.verdicts import OF_GROWTH, Judgement, Verdict, ruled
from experiments.results.observed import ALL

SAID = {
    Verdict.GROWS: "rises",
    Verdict.FALLS: "falls",
    Verdict.FLAT: "is flat",
    Verdict.INCONCLUSIVE: "is not known to rise or fall",
}
"""Verb for a step's verdict in a sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a curve: mean latency of the arm ``above`` ÷ mean latency of the arm ``below``, over blocks."""

    above: Arm
    below: Arm
    ratio: Estimate
    p_holm: float
    """p of the sign-flip test, after Holm's correction over the steps of a curve."""

    def verdict(self, judgement: Judgement) -> Verdict:
        """Verdict on the step. INCONCLUSIVE if the sweep has no verdicts at its number of blocks.

        A step is FLAT only if the interval lies inside 0.95 to 1.05, and contains 1.
        """
        verdict = ruled(OF_GROWTH, self.ratio, self.p_holm, judgement.sweep.level, judgement.sweep.limits)
        is_open = judgement.look is None or (verdict is Verdict.FLAT and not self.ratio.low <= 1 <= self.ratio.high)
        return Verdict.INCONCLUSIVE if is_open else verdict

    def is_small(self, limits: Limits) -> bool:
        """True if the interval lies inside 0.95 to 1.05. The interval may exclude 1."""
        return limits.equivalent_low < self.ratio.low and self.ratio.high < limits.equivalent_high


def steps(judgement: Judgement, arms: Sequence[Arm]) -> tuple[Step, ...]:
    """Steps of the curve through ``arms``: from each arm to the next arm. If no block has values of both arms, the step
    is left out."""
    pairs = list(pairwise(arms))
    logs = [[*mean_log_ratios(judgement, (above, ALL), (below, ALL)).values()] for below, above in pairs]
    p_values = holm([sign_flip_p(each) for each in logs])
    return tuple(
        Step(above, below, ratio_interval(each, judgement.confidence), p)
        for (below, above), each, p in zip(pairs, logs, p_values, strict=True)
        if each
    )


def mean_log_ratios(judgement: Judgement, above: tuple[Arm, str], below: tuple[Arm, str]) -> dict[int, float]:
    """Log-ratio of two mean latencies in each block, by the block's number. ``above`` and ``below`` are each an arm and
    a request type.

    If a gate refuses one of the two arms in a block, the block is left out.
    """
    sweep, found = judgement.sweep, {}
    for block in judgement.blocks:
        means = [ratios.arm_mean_us(sweep, block, sweep.places[arm], of) for arm, of in (above, below)]
        if all(means) and not any(arm_refusals(sweep, block, arm) for arm, _ in (above, below)):
            found[block.number] = math.log(means[0] / means[1])  # type: ignore[operator]  # neither is None: see above
    return found
