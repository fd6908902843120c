"""Cells of a table: every quantity of a cell with its interval over blocks, and the verdicts on the declared ratios.

A cell is a server under a load of a given number of requests. A ratio compares one quantity of pairs of cells. The unit
is the block: in a block, the value of a ratio is the mean of its pairs' log-ratios. A ratio is LESS or MORE if its
interval excludes 1, and Holm's p of the exact sign-flip test is under the level. Holm's correction covers the declared
family. A ratio is EQUIVALENT if it is not LESS or MORE, and its interval lies inside 0.95 to 1.05. If the load was near
its limit, a ratio of times or rates also depends on the load, and is never EQUIVALENT. A verdict needs values of
``BLOCKS_MIN`` blocks.

A cell is left out of a block if other programs took the cores, or if the cell has more errors than gate 4 allows. The
rule on other programs is the rule for the rounds of a sweep, and ignores the measured values. The functions are pure.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from experiments.design.limits import LIMITS, Limits
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.stats import Estimate, holm, positive_interval, ratio_interval, sign_flip_p
from experiments.judge.verdicts import OF_QUANTITIES, Verdict, ruled
from experiments.kinds.block import Block, Run
from experiments.kinds.table import Cell, CellRatio, CellSeen, TablePlan

SAMPLES_MIN = 5
"""Smallest number of samples of a cell for which the largest sample is reported."""


def _rate_kb(of: int, seen: CellSeen) -> float:
    """Rate of ``of`` bytes over the time of the counted requests, in KB a second."""
    return of / 1024 / seen.total_s


def _mean_share(seen: CellSeen) -> float:
    """Mean share of a core that the server used between the first and the last sample. With fewer than two samples:
    over the whole load."""
    return seen.sampled_cpu_s / seen.sampled_s if seen.sampled_s else seen.server_cpu_s / seen.load_s


def _mean(samples: Sequence[float], whole: float) -> float | None:
    """Mean of the samples, in percent of ``whole``. None without a sample."""
    return 100 * fmean(samples) / whole if samples else None


def _most(samples: Sequence[float], whole: float) -> float | None:
    """Largest sample, in percent of ``whole``. None for fewer than ``SAMPLES_MIN`` samples."""
    return 100 * max(samples) / whole if len(samples) >= SAMPLES_MIN else None


QUANTITIES: Mapping[str, Callable[[Block[CellSeen], CellSeen], float | None]] = {
    "cpu_percent": lambda _, seen: 100 * _mean_share(seen),
    "cpu_percent_max": lambda _, seen: _most(seen.cpu_samples, 1.0),
    "memory_percent": lambda block, seen: _mean(seen.memory_samples_mib, block.memory_mib),
    "memory_percent_max": lambda block, seen: _most(seen.memory_samples_mib, block.memory_mib),
    "memory_mib": lambda _, seen: _mean(seen.memory_samples_mib, 100.0),
    "total_s": lambda _, seen: seen.total_s,
    "response_ms": lambda _, seen: seen.response_us / 1000,
    "received_kb_s": lambda _, seen: _rate_kb(seen.received_bytes, seen),
    "sent_kb_s": lambda _, seen: _rate_kb(seen.sent_bytes, seen),
    "connect_ms": lambda _, seen: seen.connect_us / 1000,
    "processing_ms": lambda _, seen: (seen.response_us - seen.connect_us) / 1000,
    "cpu_us": lambda _, seen: seen.server_cpu_s / seen.load_requests * 1e6,
    "client_percent": lambda _, seen: 100 * seen.client_cpu_s / seen.load_s,
    "throughput_hz": lambda _, seen: seen.requests / seen.total_s,
}
"""Functions that compute the quantities of a cell in a block, by the quantity's name. A function gives None for too few
samples.

``cpu_us`` is the server's processor time for each request. Percentages of processor time are of one core; percentages
of memory are of the machine's memory. A KB has 1024 bytes, as in ``ab``. In the mean of processor samples, longer
samples have more weight; the mean is never over the largest sample.
"""

OF_THE_LOAD = frozenset(
    {
        "cpu_percent",  # processor time per request × requests per second
        "total_s",
        "response_ms",
        "received_kb_s",
        "sent_kb_s",
        "connect_ms",
        "processing_ms",
        "throughput_hz",
    }
)
"""Quantities that are times or rates. If the load is near its limit, such a quantity also depends on the load. Then the
difference between two servers looks smaller than it is."""


@dataclass(frozen=True, slots=True)
class CellJudged:
    """Judgement of one declared ratio: the mean over blocks, the p-value and the verdict."""

    ratio: CellRatio
    seen: Estimate
    """Mean of the ratio ``above`` ÷ ``below`` over the blocks, with its interval."""
    p_holm: float
    """p of the sign-flip test, after Holm's correction over the family."""
    verdict: Verdict | None
    """Verdict on the ratio. None if not all planned blocks were measured, or if fewer than ``BLOCKS_MIN`` blocks have a
    value."""
    load_limited: bool = False
    """True if the ratio is of times or rates, and the load was near its limit in at least one of the cells (gate 7).
    Such a ratio is never EQUIVALENT."""


@dataclass(frozen=True, slots=True)
class TableJudged:
    """Judgement of all cells and ratios, by the measured blocks."""

    plan: TablePlan
    blocks: tuple[Block[CellSeen], ...]
    """Blocks, with their runs in the plan's order."""
    judged: Mapping[str, CellJudged]
    """Judged ratios by name. A ratio without a value is missing."""
    confidence: float
    limits: Limits = LIMITS

    def values(self, cell: Cell, quantity: str) -> list[float]:
        """Values of a cell's quantity, one value for each block in which the cell counts. Empty if the quantity is
        unknown in one of these blocks."""
        place = self.plan.cells.index(cell)
        found = [
            QUANTITIES[quantity](block, block.runs[place].seen)
            for block in self.blocks
            if _counts(self.limits, block, block.runs[place])
        ]
        present = [value for value in found if value is not None]
        return present if len(present) == len(found) else []

    def estimate(self, cell: Cell, quantity: str) -> Estimate | None:
        """Mean of a cell's quantity over blocks, with its interval. None if there are no values."""
        found = self.values(cell, quantity)
        return positive_interval(found, self.confidence) if found else None

    def is_load_limited(self, cell: Cell) -> bool:
        """True if the load took over 80 % of its core, so the times depend on client and server together (gate 7)."""
        return _is_load_limited(self.blocks, self.plan.cells.index(cell), self.limits)

    def errors(self, cell: Cell) -> int:
        """Number of errors of a cell in all blocks, including the warm-up."""
        place = self.plan.cells.index(cell)
        return sum(block.runs[place].seen.errors for block in self.blocks)


def judged(plan: TablePlan, blocks: Sequence[Block[CellSeen]], limits: Limits = LIMITS) -> TableJudged:
    """Judges the measured blocks. Gives verdicts only after all blocks of the plan, and not for fewer than
    ``BLOCKS_MIN`` blocks."""
    blocks = tuple(block.by_place() for block in blocks)
    confidence, whole = 1 - limits.level, len(blocks) >= max(plan.blocks, BLOCKS_MIN)
    over = {place for place in range(len(plan.cells)) if _is_load_limited(blocks, place, limits)}
    found: dict[str, CellJudged] = {}
    for family in dict.fromkeys(ratio.family for ratio in plan.ratios):
        own = [ratio for ratio in plan.ratios if ratio.family == family]
        logs = [_log_ratios(blocks, ratio, limits) for ratio in own]
        for ratio, values, p_holm in zip(own, logs, holm([sign_flip_p(each) for each in logs]), strict=True):
            if not values:
                continue
            seen = ratio_interval(values, confidence)
            limited = ratio.quantity in OF_THE_LOAD and not over.isdisjoint((*ratio.above, *ratio.below))
            verdict = ruled(OF_QUANTITIES, seen, p_holm, limits.level, limits)
            if limited and verdict is Verdict.EQUIVALENT:
                verdict = Verdict.INCONCLUSIVE
            decides = whole and len(values) >= BLOCKS_MIN
            found[ratio.name] = CellJudged(ratio, seen, p_holm, verdict if decides else None, limited)
    return TableJudged(plan, blocks, found, confidence, limits)


def _log_ratios(blocks: Sequence[Block[CellSeen]], ratio: CellRatio, limits: Limits) -> list[float]:
    """Log-ratio of each block: the mean over the ratio's pairs of cells. A pair counts if both cells count, and have a
    positive value. If no pair counts, the block has no value."""
    of, found = QUANTITIES[ratio.quantity], []
    for block in blocks:
        logs = []
        for pair in zip(ratio.above, ratio.below, strict=True):
            runs = [block.runs[place] for place in pair]
            above, below = (of(block, run.seen) if _counts(limits, block, run) else None for run in runs)
            if above and below and min(above, below) > 0:
                logs.append(math.log(above / below))
        if logs:
            found.append(fmean(logs))
    return found


def _counts(limits: Limits, block: Block[CellSeen], run: Run[CellSeen]) -> bool:
    """True if a cell counts in a block: other programs did not take too much processor time, and the share of errors is
    within the limit of gate 4."""
    seen = run.seen
    asked = seen.load_requests + seen.errors
    return block.counts(run, limits) and seen.errors <= limits.errors_share * asked


def _is_load_limited(blocks: Sequence[Block[CellSeen]], place: int, limits: Limits) -> bool:
    """True if the load of a cell used over 80 % of its core (gate 7), in the mean over the blocks in which the cell
    counts."""
    own = [block.runs[place] for block in blocks if _counts(limits, block, block.runs[place])]
    shares = [run.seen.client_cpu_s / run.seen.load_s for run in own]
    return bool(shares) and fmean(shares) > limits.load_share
