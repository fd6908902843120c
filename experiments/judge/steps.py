"""Steps: the mean latency of each arm ÷ that of the arm before it, over the same blocks.

A claim that latency rises, falls or stays is a claim about every step, and not about the ends alone: a curve that falls
first may end above its beginning. A step has the whole means of two arms, in the blocks that no gate leaves out of
either. Holm's correction goes over the steps of one curve. Pure. Left out: what a claim makes of its steps.
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
"""Words of a step's verdict in a sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """Mean latency of one arm ÷ that of the arm before it, over blocks."""

    above: Arm
    below: Arm
    ratio: Estimate
    p_holm: float
    """Holm's p over the steps of a curve."""

    def verdict(self, judgement: Judgement) -> Verdict:
        """Verdict on the step. A step whose whole interval is above 1 is not FLAT, however small it is. INCONCLUSIVE at
        no look."""
        verdict = ruled(OF_GROWTH, self.ratio, self.p_holm, judgement.sweep.level, judgement.sweep.limits)
        is_open = judgement.look is None or (verdict is Verdict.FLAT and self.ratio.low > 1)
        return Verdict.INCONCLUSIVE if is_open else verdict

    def is_small(self, limits: Limits) -> bool:
        """True where its interval lies inside 0.95 to 1.05, whether or not it reaches 1."""
        return limits.equivalent_low < self.ratio.low and self.ratio.high < limits.equivalent_high


def steps(judgement: Judgement, arms: Sequence[Arm]) -> tuple[Step, ...]:
    """Every step between neighbours that has a block that counts."""
    pairs = list(pairwise(arms))
    logs = [[*mean_log_ratios(judgement, (above, ALL), (below, ALL)).values()] for below, above in pairs]
    p_values = holm([sign_flip_p(each) for each in logs])
    return tuple(
        Step(above, below, ratio_interval(each, judgement.confidence), p)
        for (below, above), each, p in zip(pairs, logs, p_values, strict=True)
        if each
    )


def mean_log_ratios(judgement: Judgement, above: tuple[Arm, str], below: tuple[Arm, str]) -> dict[int, float]:
    """Log-ratios of the mean latencies of two arms and their request types, by the numbers of the blocks that no gate
    leaves out of either."""
    sweep, found = judgement.sweep, {}
    for block in judgement.blocks:
        means = [ratios.arm_mean_us(sweep, block, sweep.arms.index(arm), of) for arm, of in (above, below)]
        if all(means) and not any(refusal for arm, _ in (above, below) for refusal in arm_refusals(sweep, block, arm)):
            found[block.number] = math.log(means[0] / means[1])  # type: ignore[operator]  # neither is None: see above
    return found
