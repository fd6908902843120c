"""Sentences made from judged comparisons: each says only what its verdict allows.

A sentence is chosen by the verdict and filled with the ratio and its interval; there is no other way into the report
for a verdict. Numbers beside it (slopes, waits) are printed where no gate refuses the runs that they are of, and
``refusal_text`` where one does. Left out: which sentences are said, and in what order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.gates.evidence import SentenceEvidence
from experiments.gates.predicates import Shows
from experiments.gates.refusal import Refusal
from experiments.gates.sentence import Sentence
from experiments.stats import BLOCKS_MIN, Estimate, Verdict
from experiments.studies.stock.comparisons import MORE_BLOCKS_MEND, Judged

FAR = 100

TOGETHER = "latency of client and server together"
"""What a latency is called when the load side was the limit."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a verdict means in one comparison; each is a clause that ends before the numbers."""

    equivalent: str
    faster: str
    slower: str
    undecided: str


def interval_text(estimate: Estimate, unit: str = "") -> str:
    """``0.30 (95 % interval 0.29 to 0.31)``; from a single value, that there is no interval."""
    end = f" {unit}" if unit else ""
    if math.isinf(estimate.high):
        return f"{number(estimate.value)}{end} (one block: no interval)"
    return f"{number(estimate.value)}{end} (95 % interval {ends_text(estimate)})"


def ends_text(estimate: Estimate) -> str:
    """The two ends; those over a hundredfold from the value are given as bounds: they say no more than that."""
    low, high, value = estimate.low, estimate.high, abs(estimate.value)
    if value == 0 or low <= 0:
        return f"{number(low)} to {number(high)}"
    below = f"under {number(value / FAR)}" if low < value / FAR else number(low)
    above = f"over {number(value * FAR)}" if high > value * FAR else number(high)
    return f"{below} to {above}"


def brief(judged: Judged) -> str:
    """``0.30 (0.29 to 0.31), FASTER``, for tables whose head says that the brackets hold the 95 % interval."""
    ratio = judged.result.ratio
    ends = "no interval" if math.isinf(ratio.high) else ends_text(ratio)
    return f"{number(ratio.value)} ({ends}), {judged.result.verdict.value}"


def percent(estimate: Estimate) -> Estimate:
    """A share as per cent."""
    return Estimate(100 * estimate.value, 100 * estimate.low, 100 * estimate.high, estimate.n)


def number(value: float) -> str:
    """Three significant digits, without an exponent from 0.00001 to under a million."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.2e}"
    if abs(value) < 0.00001:
        return f"{value:.2e}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def verdict_text(judged: Judged) -> str:
    """``**FASTER**``; for INCONCLUSIVE, with the number of blocks that would decide."""
    result = judged.result
    if result.verdict is not Verdict.INCONCLUSIVE:
        return f"**{result.verdict.value}**"
    return f"**{result.verdict.value}** ({blocks_text(judged)})"


def blocks_text(judged: Judged) -> str:
    """How many blocks would decide, as far as these can tell; or why none of them does."""
    by_gates = f"{gates_text(judged.refused)}: " if judged.refused else ""
    if judged.starved_blocks:
        return by_gates + starved_text(judged)
    refused = [refusal for refusal in judged.refused if refusal.gate not in MORE_BLOCKS_MEND]
    if refused:
        return by_gates + refused[0].what
    have, needed = judged.result.ratio.n, judged.result.blocks_needed
    blocks = "1 block" if have == 1 else f"{have} blocks"
    if needed is None:
        return f"{by_gates}{blocks}; how many would decide is unknown, or over 1000"
    guess = ", a guess from so few" if have < BLOCKS_MIN else ""
    return f"{by_gates}{blocks}; about {needed} would decide{guess}"


def gates_text(refused: Sequence[Refusal]) -> str:
    """``refused by gate 3, 5``: all of them, wherever they are named. ValueError for none."""
    if not refused:
        raise ValueError("no gate refuses")
    return f"refused by gate {', '.join(map(str, sorted({refusal.gate for refusal in refused})))}"


def refusal_text(refused: Sequence[Refusal]) -> str:
    """``refused by gate 3, 5: `` and what the first of them found. ValueError for none."""
    return f"{gates_text(refused)}: {min(refused, key=lambda refusal: refusal.gate).what}"


def starved_text(judged: Judged) -> str:
    """``3 blocks had clients without a reply``."""
    blocks = "1 block" if judged.starved_blocks == 1 else f"{judged.starved_blocks} blocks"
    return f"{blocks} had clients without a reply"


def sentence(judged: Judged, phrases: Phrases, limited: str = f"it is the {TOGETHER}") -> str:
    """The comparison in one sentence, and what the clients being the limit means for it, where they were.

    ValueError where a gate would not let it be said.
    """
    ratio = f"ratio {interval_text(judged.result.ratio)}: {verdict_text(judged)}."
    match judged.result.verdict:
        case Verdict.EQUIVALENT:
            clause = phrases.equivalent
        case Verdict.FASTER:
            clause = phrases.faster
        case Verdict.SLOWER:
            clause = phrases.slower
        case Verdict.INCONCLUSIVE:
            clause = phrases.undecided
    condition = f" The clients were the limit in these runs, so {limited}." if judged.load_limited else ""
    text = f"{clause}: {ratio}{condition}"
    assert judged.evidence is not None
    return str(Sentence(SentenceEvidence(text, (Shows(judged.result.verdict),), comparisons=(judged.evidence,))))
