"""Cells: every quantity of a cell with its interval over blocks, and the verdicts on the declared ratios. Pure.

The unit is the block. A ratio's value in a block is the mean of its pairs' log-ratios. It is LESS or MORE if its
interval excludes 1 and Holm's p of the exact sign-flip test, over the declared family, is under the level. It is
EQUIVALENT if it is neither, and the interval lies inside 0.95 to 1.05. A ratio of times or rates is never EQUIVALENT
where the load was near its limit, since the load then decides it. A verdict needs values of ``BLOCKS_MIN`` blocks.

Two sorts of cells are left out. From the first sort the hypervisor took the cores: the rule is the one for rounds of a
sweep, and ignores the measured values. The second sort has more errors than gate 4 lets pass.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.design.limits import LIMITS, Limits
from experiments.design.sweep import BLOCKS_MIN
from experiments.judge.stats import Estimate, holm, positive_interval, ratio_interval, sign_flip_p
from experiments.judge.verdicts import OF_QUANTITIES, Verdict, ruled
from experiments.kinds.block import Block, Run
from experiments.kinds.table import Cell, CellRatio, CellSeen, TablePlan


def _rate_kb(of: int, seen: CellSeen) -> float:
    return of / 1024 / seen.total_s


def _mean_share(seen: CellSeen) -> float:
    """Mean share over the time of the samples; over the whole load for a cell that is too short for two samples."""
    return seen.sampled_cpu_s / seen.sampled_s if seen.sampled_s else seen.server_cpu_s / seen.load_s


def _most(samples: Sequence[float]) -> float | None:
    return max(samples) if len(samples) >= SAMPLES_MIN else None


def _memory(block: Block[CellSeen], seen: CellSeen) -> float | None:
    samples = seen.memory_samples_mib
    return 100 * _mean(samples) / block.memory_mib if samples else None


def _memory_max(block: Block[CellSeen], seen: CellSeen) -> float | None:
    most = _most(seen.memory_samples_mib)
    return None if most is None else 100 * most / block.memory_mib


def _cpu_max(seen: CellSeen) -> float | None:
    """Largest sample of the server's share of a core, in %. It is never under the samples' mean, weighted by length."""
    most = _most(seen.cpu_samples)
    return None if most is None else 100 * most


SAMPLES_MIN = 5
"""With fewer samples than this there is no largest sample."""

QUANTITIES: Mapping[str, Callable[[Block[CellSeen], CellSeen], float | None]] = {
    "cpu_percent": lambda _, seen: 100 * _mean_share(seen),
    "cpu_percent_max": lambda _, seen: _cpu_max(seen),
    "memory_percent": _memory,
    "memory_percent_max": _memory_max,
    "memory_mib": lambda _, seen: _mean(seen.memory_samples_mib) if seen.memory_samples_mib else None,
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
"""Quantities of a cell in a block, by name. ``cpu_us``: the server's processor time a request. Percentages of
processors are of one core, those of memory of the machine's; KB are 1024 bytes, as ``ab`` has them. None: too few
samples."""

OF_THE_LOAD = frozenset(
    {
        "cpu_percent",  # processor time a request × requests a second
        "total_s",
        "response_ms",
        "received_kb_s",
        "sent_kb_s",
        "connect_ms",
        "processing_ms",
        "throughput_hz",
    }
)
"""Quantities that are times and rates. Near its limit the load decides a part of them, so that they differ less than
the servers do."""


@dataclass(frozen=True, slots=True)
class CellJudged:
    """A declared ratio, judged."""

    ratio: CellRatio
    log_ratios: Mapping[int, float]
    """Values by the block's number."""
    seen: Estimate
    """Estimate of above ÷ below."""
    p_holm: float
    verdict: Verdict | None
    """None: too few blocks for any verdict, or fewer than were planned."""
    load_limited: bool = False
    """True where it is a ratio of times or rates, and the load was near its limit in one of its cells (gate 7): it
    cannot be EQUIVALENT."""


@dataclass(frozen=True, slots=True)
class TableJudged:
    """Cells, judged by the blocks so far."""

    plan: TablePlan
    blocks: tuple[Block[CellSeen], ...]
    """Their runs in the plan's order."""
    judged: Mapping[str, CellJudged]
    """Judged ratios by name; those without a value are missing."""
    confidence: float
    limits: Limits = LIMITS

    def values(self, cell: Cell, quantity: str) -> list[float]:
        """A quantity of a cell, of each block that counts; empty where a block lacks it."""
        place = self.plan.cells.index(cell)
        found = [
            QUANTITIES[quantity](block, block.runs[place].seen)
            for block in self.blocks
            if _counts(self.limits, block, block.runs[place])
        ]
        present = [value for value in found if value is not None]
        return present if len(present) == len(found) else []

    def estimate(self, cell: Cell, quantity: str) -> Estimate | None:
        """Mean of a quantity of a cell over blocks, with its interval; None where no block counts."""
        found = self.values(cell, quantity)
        return positive_interval(found, self.confidence) if found else None

    def is_load_limited(self, cell: Cell) -> bool:
        """True where the load took so much of its core that times are those of client and server together (gate 7)."""
        return _is_load_limited(self.blocks, self.plan.cells.index(cell), self.limits)

    def errors(self, cell: Cell) -> int:
        """Errors of a cell in all blocks."""
        place = self.plan.cells.index(cell)
        return sum(block.runs[place].seen.errors for block in self.blocks)


def judged(plan: TablePlan, blocks: Sequence[Block[CellSeen]], limits: Limits = LIMITS) -> TableJudged:
    """Judges the blocks so far. Verdicts need all blocks of the plan, and ``BLOCKS_MIN`` at least."""
    blocks = tuple(block.by_place() for block in blocks)
    confidence, whole = 1 - limits.level, len(blocks) >= max(plan.blocks, BLOCKS_MIN)
    logs = {ratio.name: _log_ratios(blocks, ratio, limits) for ratio in plan.ratios}
    over = {place for place in range(len(plan.cells)) if _is_load_limited(blocks, place, limits)}
    found: dict[str, CellJudged] = {}
    for family in dict.fromkeys(ratio.family for ratio in plan.ratios):
        own = [ratio for ratio in plan.ratios if ratio.family == family]
        adjusted = holm([sign_flip_p(list(logs[ratio.name].values())) for ratio in own])
        for ratio, p_holm in zip(own, adjusted, strict=True):
            values = logs[ratio.name]
            if values:
                seen = ratio_interval(list(values.values()), confidence)
                limited = ratio.quantity in OF_THE_LOAD and not over.isdisjoint((*ratio.above, *ratio.below))
                decided = whole and len(values) >= BLOCKS_MIN
                verdict = _verdict(seen, p_holm, limits, limited) if decided else None
                found[ratio.name] = CellJudged(ratio, values, seen, p_holm, verdict, limited)
    return TableJudged(plan, blocks, found, confidence, limits)


def _log_ratios(blocks: Sequence[Block[CellSeen]], ratio: CellRatio, limits: Limits) -> dict[int, float]:
    """Each block's value of a ratio. A block without a whole pair has no value."""
    of, found = QUANTITIES[ratio.quantity], {}
    for block in blocks:
        logs = []
        for pair in zip(ratio.above, ratio.below, strict=True):
            above, below = (block.runs[place] for place in pair)
            if not all(_counts(limits, block, each) for each in (above, below)):
                continue
            values = [value for each in (above, below) if (value := of(block, each.seen)) is not None and value > 0]
            if len(values) == len(pair):
                logs.append(math.log(values[0] / values[1]))
        if logs:
            found[block.number] = _mean(logs)
    return found


def _counts(limits: Limits, block: Block[CellSeen], run: Run[CellSeen]) -> bool:
    """True where a cell of a block counts: its cores were not taken, and its requests did not end in errors (gate
    4)."""
    seen = run.seen
    asked = seen.load_requests + seen.errors
    return block.counts(run, limits) and seen.errors <= limits.errors_share * asked


def _is_load_limited(blocks: Sequence[Block[CellSeen]], place: int, limits: Limits) -> bool:
    own = [block.runs[place] for block in blocks if _counts(limits, block, block.runs[place])]
    shares = [run.seen.client_cpu_s / run.seen.load_s for run in own]
    return _mean(shares) > limits.load_share


def _verdict(seen: Estimate, p_holm: float, limits: Limits, load_limited: bool) -> Verdict:
    verdict = ruled(OF_QUANTITIES, seen, p_holm, limits.level, limits)
    return Verdict.INCONCLUSIVE if load_limited and verdict is Verdict.EQUIVALENT else verdict


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
