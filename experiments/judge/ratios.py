"""Value of a comparison in a block: the typical ratio over pairs of slices, and the ratio of plain means.

An arm is a server under a load. A slice is a short load of one arm. A group is a set of arms that are measured one
after another. In each appearance of a group, each arm has one slice. Two slices of one appearance are a pair. The
typical ratio is the trimmed mean of the pairs' log-ratios. A pause of the machine changes few pairs, and the trimmed
mean leaves these pairs out. A plain mean includes pauses, since it also counts slices whose last reply came late. A
round in which other programs took the cores is left out for all arms. This rule ignores the measured times
(``left_out``).
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
from experiments.results.observed import ANSWERED_LATE, KEPT, Block, left_out

Numbers = npt.NDArray[np.float64]


Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class _Same:
    """Key of a cache for one object. Two keys are equal only if both keep the identical object. The key keeps the
    object alive, so no later object can get the same id."""

    __slots__ = ("it",)

    def __init__(self, it: object) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


def last_results(most: int) -> Callable[[Callable[[*Ts], T]], Callable[[*Ts], T]]:
    """Decorator that caches the last ``most`` results of a function, since several comparisons and figures use the same
    result.

    A caller must not change a result. Arguments that are sweeps, blocks, lists or tuples must not change either: they
    are compared by identity, which is fast. Other arguments are compared by value.
    """

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
    """A column of a block's slices, as a read-only array."""
    made: npt.NDArray[np.int64] = np.array(values)
    made.flags.writeable = False
    return made


def is_robbed_block(limits: Limits, block: Block) -> bool:
    """True if other programs took too much processor time in over half of a block's rounds.

    A sweep may measure such a block once more, and then the second attempt counts. If such a block counts, the report
    marks the block.
    """
    robbed = [limits.robbed(each.lost_ticks, each.duration_s, block.cores) for each in block.rounds]
    return 2 * sum(robbed) > len(robbed)


def used(limits: Limits, block: Block, fates: tuple[int, ...] = (KEPT,)) -> npt.NDArray[np.bool_]:
    """Mask of the slices that have one of ``fates``, and are not in a round that is left out. By default, the mask has
    the kept slices: only kept slices can be in pairs."""
    counting = ~_left_out(limits, block)
    counting &= np.logical_or.reduce([column(block.slices.fate) == fate for fate in fates])
    return counting


def of_arm(sweep: Sweep, block: Block, arm: int) -> npt.NDArray[np.bool_]:
    """Mask of the slices of one arm that can be in pairs. ``arm`` is the index of the arm in ``Sweep.arms``."""
    own: npt.NDArray[np.bool_] = used(sweep.limits, block) & (column(block.slices.arm) == arm)
    return own


def used_whole(limits: Limits, block: Block) -> npt.NDArray[np.bool_]:
    """Mask of the slices that count in plain means. Such a slice has the fate KEPT or ANSWERED_LATE, and is not in a
    round that is left out."""
    return used(limits, block, (KEPT, ANSWERED_LATE))


def lost_share(block: Block, arm: int) -> float:
    """Share of an arm's slices in a block that were not kept, for example because a reply came late. 0 if the arm has
    no slices."""
    fates = column(block.slices.fate)[column(block.slices.arm) == arm]
    return int((fates != KEPT).sum()) / len(fates) if len(fates) else 0.0


@last_results(64)
def _left_out(limits: Limits, block: Block) -> npt.NDArray[np.bool_]:
    """Mask of the slices in rounds that are left out because other programs took too much processor time."""
    numbers = left_out(limits, block.rounds, block.cores)
    found: npt.NDArray[np.bool_] = np.isin(column(block.slices.round), list(numbers))
    found.flags.writeable = False
    return found


@last_results(64)
def pair_log_ratios(sweep: Sweep, block: Block, comparison: Comparison) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Two arrays with one element for each pair of slices of the block: the log-ratio of the pair, and the number of
    its round. A pair has one slice of each arm. A slice without a counted request is in no pair."""
    totals, counts = _columns(block, comparison)
    appearances, counting = column(block.slices.appearance), (totals > 0) & (counts > 0)
    arms = (sweep.places[arm] for arm in (comparison.above, comparison.below))
    above, below = (np.flatnonzero(counting & of_arm(sweep, block, arm)) for arm in arms)
    _, one, other = np.intersect1d(appearances[above], appearances[below], return_indices=True)
    above, below = above[one], below[other]
    log_ratios: Numbers = np.log(totals[above] / counts[above] / (totals[below] / counts[below]))
    return log_ratios, column(block.slices.round)[above]


def typical(sweep: Sweep, block: Block, comparison: Comparison) -> float | None:
    """Typical log-ratio of a block: the trimmed mean of the log-ratios of its pairs. None if the block has no pair."""
    log_ratios, _ = pair_log_ratios(sweep, block, comparison)
    return trimmed_mean(log_ratios.tolist(), sweep.limits.trimmed) if len(log_ratios) else None


def whole(sweep: Sweep, block: Block, comparison: Comparison) -> float | None:
    """Logarithm of the ratio of two plain means in a block: one mean for each arm. No slow request is trimmed.

    The means include requests that were answered late. Only appearances of a group that has both arms count. None if an
    arm has no counted request.
    """
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
    """Mean response time in µs of an arm's requests in a block, including requests that were answered late. None if no
    request was counted."""
    chosen = used_whole(sweep.limits, block) & (column(block.slices.arm) == arm)
    count = int(column(block.slices.counts[request])[chosen].sum()) if request in block.slices.counts else 0
    return float(column(block.slices.sums_ns[request])[chosen].sum()) / count / 1000 if count else None


def arm_cpu_us(sweep: Sweep, block: Block, arm: int) -> float | None:
    """Processor time of the server in µs per request of an arm in a block. None if no time was read."""
    return _spent_us(sweep, block, arm, block.slices.server_cpu_ns)


def arm_load_us(sweep: Sweep, block: Block, arm: int) -> float | None:
    """Processor time of the clients in µs per request of an arm in a block. None if no time was read."""
    return _spent_us(sweep, block, arm, block.slices.client_cpu_ns)


def _spent_us(sweep: Sweep, block: Block, arm: int, spent_ns: Sequence[int]) -> float | None:
    """Processor time in µs per request of an arm. ``spent_ns`` has the processor time of each slice. None if no time
    was read."""
    chosen = of_arm(sweep, block, arm)
    requests = int(column(block.slices.requests)[chosen].sum())
    own_ns = float(column(spent_ns)[chosen].sum())
    return own_ns / requests / 1000 if requests and own_ns else None


def _columns(block: Block, comparison: Comparison) -> tuple[Numbers, Numbers]:
    """Two columns with one value for each slice: the sum of the compared times in the slice, in ns, and the number of
    requests in this sum.

    The compared time is the response time, the server's processor time, or the time from a slice's start to its last
    reply.
    """
    slices = block.slices
    if comparison.measure != "response":
        spent = slices.server_cpu_ns if comparison.measure == "cpu" else slices.active_ns
        return column(spent).astype(np.float64), column(slices.requests).astype(np.float64)
    if comparison.request not in slices.counts:
        return np.zeros(len(slices.arm)), np.zeros(len(slices.arm))
    counts, totals = column(slices.counts[comparison.request]), column(slices.sums_ns[comparison.request])
    return totals.astype(np.float64), counts.astype(np.float64)
