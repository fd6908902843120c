"""Cells: every quantity of a cell with its interval over blocks, and the verdicts on the declared ratios. Pure.

The unit is the block. A ratio's value in a block is the mean of its pairs' log-ratios. It is LESS or MORE if its
interval excludes 1 and Holm's p of the exact sign-flip test, over the declared family, is under the level. It is SAME
if it is neither, and the interval lies inside 0.95 to 1.05. Cells from which the hypervisor took the cores are left
out, by the rule for rounds of a sweep, without a look at what they say.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.design.cells import Cell, CellRatio, Cells
from experiments.design.limits import LIMITS, Limits
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.ratios import is_robbed
from experiments.judge.stats import Estimate, holm, positive_interval, ratio_interval, sign_flip_p
from experiments.results.cells import CellBlock, CellSeen

CellVerdict = Literal["LESS", "MORE", "SAME", "INCONCLUSIVE"]


def _rate_kb(of: int, seen: CellSeen) -> float:
    return of / 1024 / seen.total_s


def _mean_share(seen: CellSeen) -> float:
    return seen.server_cpu_s / seen.load_s


QUANTITIES: Mapping[str, Callable[[CellBlock, CellSeen], float]] = {
    "cpu_percent": lambda _, seen: 100 * _mean_share(seen),
    "cpu_percent_max": lambda _, seen: 100 * max(seen.cpu_samples, default=_mean_share(seen)),
    "memory_percent": lambda block, seen: 100 * _mean(seen.memory_samples_mib) / block.memory_mib,
    "memory_percent_max": lambda block, seen: 100 * max(seen.memory_samples_mib, default=0.0) / block.memory_mib,
    "memory_mib": lambda _, seen: _mean(seen.memory_samples_mib),
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
"""What a cell has in a block, by name. ``cpu_us``: the server's processor time a request. Percentages of processors are
of one core, those of memory of the machine's; KB are 1024 bytes, as ``ab`` has them."""


@dataclass(frozen=True, slots=True)
class CellJudged:
    """A declared ratio, judged."""

    ratio: CellRatio
    log_ratios: Mapping[int, float]
    """By the block's number."""
    seen: Estimate
    """Above ÷ below."""
    p_holm: float
    verdict: CellVerdict | None
    """None: too few blocks for any, or not all that were planned."""


@dataclass(frozen=True, slots=True)
class CellsJudged:
    """Cells as they stand."""

    plan: Cells
    blocks: tuple[CellBlock, ...]
    judged: Mapping[str, CellJudged]
    """By the ratios' names; those without a value are missing."""
    confidence: float
    limits: Limits = LIMITS

    def values(self, cell: Cell, quantity: str) -> list[float]:
        """A quantity of a cell, of each block that counts."""
        place = self.plan.cells.index(cell)
        return [
            QUANTITIES[quantity](block, block.cells[place])
            for block in self.blocks
            if not is_robbed(self.limits, block.cells[place].machine, block.cores)
        ]

    def estimate(self, cell: Cell, quantity: str) -> Estimate | None:
        """Its mean over blocks, with its interval; None where no block counts."""
        found = self.values(cell, quantity)
        return positive_interval(found, self.confidence) if found else None

    def is_load_limited(self, cell: Cell) -> bool:
        """Whether the load took so much of its core that times are those of client and server together (gate 7)."""
        found = self.estimate(cell, "client_percent")
        return found is not None and found.value > 100 * self.limits.load_share

    def errors(self, cell: Cell) -> int:
        """In all blocks."""
        place = self.plan.cells.index(cell)
        return sum(block.cells[place].errors for block in self.blocks)


def judge_cells(plan: Cells, blocks: Sequence[CellBlock], limits: Limits = LIMITS) -> CellsJudged:
    """Judges what there is; verdicts only with all blocks of the plan, and ``BLOCKS_MIN`` at least."""
    confidence, whole = 1 - limits.level, len(blocks) >= max(plan.blocks, BLOCKS_MIN)
    logs = {ratio.name: _log_ratios(plan, blocks, ratio, limits) for ratio in plan.ratios}
    judged: dict[str, CellJudged] = {}
    for family in dict.fromkeys(ratio.family for ratio in plan.ratios):
        own = [ratio for ratio in plan.ratios if ratio.family == family]
        adjusted = holm([sign_flip_p(list(logs[ratio.name].values())) for ratio in own])
        for ratio, p_holm in zip(own, adjusted, strict=True):
            values = logs[ratio.name]
            if values:
                seen = ratio_interval(list(values.values()), confidence)
                verdict = _verdict(seen, p_holm, limits) if whole else None
                judged[ratio.name] = CellJudged(ratio, values, seen, p_holm, verdict)
    return CellsJudged(plan, tuple(blocks), judged, confidence, limits)


def _log_ratios(plan: Cells, blocks: Sequence[CellBlock], ratio: CellRatio, limits: Limits) -> dict[int, float]:
    """A block's value; none for one in which no pair is whole."""
    place, of = {cell: number for number, cell in enumerate(plan.cells)}, QUANTITIES[ratio.quantity]
    found = {}
    for block in blocks:
        logs = []
        for pair in zip(ratio.above, ratio.below, strict=True):
            above, below = (block.cells[place[cell]] for cell in pair)
            if any(is_robbed(limits, each.machine, block.cores) for each in (above, below)):
                continue
            values = of(block, above), of(block, below)
            if min(values) > 0:
                logs.append(math.log(values[0] / values[1]))
        if logs:
            found[block.number] = _mean(logs)
    return found


def _verdict(seen: Estimate, p_holm: float, limits: Limits) -> CellVerdict:
    if p_holm < limits.level and (seen.high < 1 or seen.low > 1):
        return "LESS" if seen.high < 1 else "MORE"
    return "SAME" if limits.equivalent_low < seen.low and seen.high < limits.equivalent_high else "INCONCLUSIVE"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
