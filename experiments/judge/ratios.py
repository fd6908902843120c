"""A block's value of a comparison: the typical ratio over its pairs of slices, and the ratio of whole means.

A pair is two slices of one appearance of a group. The typical ratio is the trimmed mean of the pairs' log-ratios: a
pause of the machine meets one slice of a pair, and few pairs. The ratio of whole means leaves nothing out.
Rounds in which others took the cores are left out for all arms alike, without a look at the times (``left_out``).
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
import numpy.typing as npt

from experiments.design.arms import Comparison
from experiments.design.limits import Limits
from experiments.design.sweep import Sweep
from experiments.judge.stats import trimmed_mean
from experiments.results.observed import ANSWERED_LATE, KEPT, Block, RoundSeen, left_out

Numbers = npt.NDArray[np.float64]


Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class _Same:
    """An object as a key, equal to itself alone."""

    __slots__ = ("it",)

    def __init__(self, it: object) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


def last_results(most: int) -> Callable[[Callable[[*Ts], T]], Callable[[*Ts], T]]:
    """Keeps the last results of a function, since each comparison, arm and figure asks for them anew. They are to be
    read. Sweeps, blocks and columns never change, and count as equal only to themselves; other arguments by their
    values."""

    def keeping(function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        @lru_cache(most)
        def kept(*keys: Any) -> T:
            arguments: Any = (key.it if isinstance(key, _Same) else key for key in keys)
            return function(*arguments)

        @wraps(function)
        def asked(*arguments: *Ts) -> T:
            return kept(*(_Same(each) if isinstance(each, (Sweep, Block, list, tuple)) else each for each in arguments))

        return asked

    return keeping


@last_results(512)
def column(values: Sequence[int]) -> npt.NDArray[np.int64]:
    """A column of a block's slices as an array."""
    made: npt.NDArray[np.int64] = np.array(values)
    made.flags.writeable = False
    return made


def is_robbed(limits: Limits, seen: RoundSeen, cores: int) -> bool:
    """True where other processes took so much of a round that the round is left out."""
    return limits.robbed(seen.lost_ticks, seen.duration_s, cores)


def is_robbed_block(limits: Limits, block: Block) -> bool:
    """True where other processes took over half of a block's rounds. Such a block is run again once; the second one
    counts, marked."""
    return 2 * sum(is_robbed(limits, each, block.cores) for each in block.rounds) > len(block.rounds)


def used(limits: Limits, block: Block) -> npt.NDArray[np.bool_]:
    """Marks the slices of a block that make pairs: kept slices in rounds that were not robbed."""
    kept: npt.NDArray[np.bool_] = (column(block.slices.fate) == KEPT) & ~_left_out(limits, block)
    return kept


def used_whole(limits: Limits, block: Block) -> npt.NDArray[np.bool_]:
    """Marks the slices that whole means have: kept slices, and slices that were answered late."""
    fates = column(block.slices.fate)
    counting: npt.NDArray[np.bool_] = ((fates == KEPT) | (fates == ANSWERED_LATE)) & ~_left_out(limits, block)
    return counting


def lost_share(block: Block, arm: int) -> float:
    """Share of an arm's slices in a block that are not kept."""
    fates = column(block.slices.fate)[column(block.slices.arm) == arm]
    return int((fates != KEPT).sum()) / len(fates) if len(fates) else 0.0


@last_results(64)
def _left_out(limits: Limits, block: Block) -> npt.NDArray[np.bool_]:
    """Marks the slices in rounds that are left out."""
    numbers = left_out(limits, block.rounds, block.cores)
    found: npt.NDArray[np.bool_] = np.isin(column(block.slices.round), list(numbers))
    found.flags.writeable = False
    return found


@last_results(64)
def pair_log_ratios(sweep: Sweep, block: Block, comparison: Comparison) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Log-ratio of each pair of the block, and the round of each pair. Empty where no pair is whole."""
    above, below = _slices(sweep, block, comparison)
    pairs = sorted(above.keys() & below.keys())
    rounds = [block.slices.round[above[pair][0]] for pair in pairs]
    return np.array([math.log(above[pair][1] / below[pair][1]) for pair in pairs]), np.array(rounds, dtype=np.int64)


def typical(sweep: Sweep, block: Block, comparison: Comparison) -> float | None:
    """The block's log-ratio of the two means, typical of its pairs; None where no pair is whole."""
    log_ratios, _ = pair_log_ratios(sweep, block, comparison)
    return trimmed_mean(log_ratios.tolist(), sweep.limits.trimmed) if len(log_ratios) else None


def whole(sweep: Sweep, block: Block, comparison: Comparison) -> float | None:
    """The block's log-ratio of whole means, where the arms stood side by side. Late answers are in the means too."""
    totals, counts = _columns(block, comparison)
    arms, appearances = column(block.slices.arm), column(block.slices.appearance)
    of_both = [appearances[arms == sweep.places[arm]] for arm in (comparison.above, comparison.below)]
    beside = np.isin(appearances, np.intersect1d(*of_both))
    counting = used_whole(sweep.limits, block) & (totals > 0) & beside
    means = []
    for arm in (comparison.above, comparison.below):
        own = counting & (arms == sweep.places[arm])
        if not counts[own].sum():
            return None
        means.append(float(totals[own].sum() / counts[own].sum()))
    return math.log(means[0] / means[1])


def arm_mean_us(sweep: Sweep, block: Block, arm: int, request: str) -> float | None:
    """The whole mean response of an arm in a block; None where no request was counted."""
    chosen = used_whole(sweep.limits, block) & (column(block.slices.arm) == arm)
    count = int(column(block.slices.counts[request])[chosen].sum()) if request in block.slices.counts else 0
    return float(column(block.slices.sums_ns[request])[chosen].sum()) / count / 1000 if count else None


def arm_cpu_us(sweep: Sweep, block: Block, arm: int) -> float | None:
    """The server's processor time for each request of an arm in a block; None where it was not read."""
    return _spent_us(sweep, block, arm, block.slices.server_cpu_ns)


def arm_load_us(sweep: Sweep, block: Block, arm: int) -> float | None:
    """The load's processor time for each request of an arm in a block; None where it was not read."""
    return _spent_us(sweep, block, arm, block.slices.client_cpu_ns)


def _spent_us(sweep: Sweep, block: Block, arm: int, spent_ns: Sequence[int]) -> float | None:
    chosen = used(sweep.limits, block) & (column(block.slices.arm) == arm)
    requests = int(column(block.slices.requests)[chosen].sum())
    own_ns = float(column(spent_ns)[chosen].sum())
    return own_ns / requests / 1000 if requests and own_ns else None


def _slices(
    sweep: Sweep, block: Block, comparison: Comparison
) -> tuple[dict[int, tuple[int, float]], dict[int, tuple[int, float]]]:
    """Slices of both arms by appearance: the place and the mean of each slice that has a mean."""
    totals, counts = _columns(block, comparison)
    counting = used(sweep.limits, block) & (totals > 0) & (counts > 0)
    arms = column(block.slices.arm)
    found = []
    for arm in (comparison.above, comparison.below):
        own = np.flatnonzero(counting & (arms == sweep.places[arm])).tolist()
        found.append({block.slices.appearance[place]: (place, float(totals[place] / counts[place])) for place in own})
    return found[0], found[1]


def _columns(block: Block, comparison: Comparison) -> tuple[Numbers, Numbers]:
    """Sum of each slice, and the number of requests in it."""
    slices = block.slices
    if comparison.measure != "response":
        spent = slices.server_cpu_ns if comparison.measure == "cpu" else slices.active_ns
        return column(spent).astype(np.float64), column(slices.requests).astype(np.float64)
    if comparison.request not in slices.counts or comparison.request not in slices.sums_ns:
        return np.zeros(len(slices.arm)), np.zeros(len(slices.arm))
    counts, totals = column(slices.counts[comparison.request]), column(slices.sums_ns[comparison.request])
    return totals.astype(np.float64), counts.astype(np.float64)
