"""Interleaving: the length of the slices and the number of other servers must not change a ratio.

One pair of servers, sockets ÷ gRPC with one client, is measured in slices of 20, 50 and 200 ms. For each length the
pair is measured alone, and then among other servers. The pair and the other servers are ``SERVERS_MAX`` servers, the
largest number in a sweep. All servers are loaded in turn. A **condition** is one length, with the pair alone or among
others. In a **turn**, each condition is measured in one block, so that a slow hour affects all conditions. In each
turn, the pair's ratio in a condition is divided by the pair's ratio in the condition "20 ms, alone". The mean of this
quotient over the turns must be within 5 % of 1. The version for a night has one more condition: slices of 10 s, one
server after the other. This condition is the alternative to the project's short slices.
"""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments.design.arms import Arm, Comparison, Group
from experiments.design.setting import read
from experiments.design.sweep import SERVERS_MAX, Slices, Sweep
from experiments.judge import ratios
from experiments.judge.stats import ratio_interval
from experiments.selfcheck.finding import Finding
from experiments.selfcheck.load import LoadFailed, Measure, found, measured

WITHIN = 0.05
"""Largest allowed difference of the mean quotient from 1."""

MUST = f"ratios within {WITHIN:.0%}"

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in which the pair is measured."""

    counted_s: float
    pairs: int
    """Number of pairs in a block."""
    among: bool = False
    """True if other servers are loaded in turn with the two servers of the pair."""

    @property
    def name(self) -> str:
        """Name in the findings."""
        length = f"{self.counted_s * 1000:.0f} ms" if self.counted_s < 1 else f"{self.counted_s:.0f} s"
        return f"{length}, {f'among {SERVERS_MAX} servers' if self.among else 'alone'}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of the check. ``MINUTES`` is for minutes, ``OVERNIGHT`` is for a night."""

    turns: int
    conditions: tuple[Condition, ...]
    """All conditions. Each condition is compared with the first condition."""


_LENGTHS = ((0.02, 40), (0.05, 20), (0.2, 8))

_ROUNDS = 4
"""Largest number of rounds in a block. In a round each of the other servers is loaded once, and the pair several times.
"""

_CONDITIONS = tuple(Condition(*length, among) for among in (False, True) for length in _LENGTHS)

MINUTES = Scale(5, _CONDITIONS)
OVERNIGHT = Scale(60, (*_CONDITIONS, Condition(10.0, 1)))


def check(scale: Scale, measure: Measure = measured) -> list[Finding]:
    """Measures and compares the conditions. The call takes four minutes with the scale ``MINUTES``. Raises
    KeyboardInterrupt.
    """
    return found("interleaving", MUST, lambda: list(_check(scale, measure)))


def _check(scale: Scale, measure: Measure) -> Iterator[Finding]:
    log_ratios: dict[Condition, list[float]] = {each: [] for each in scale.conditions}
    for turn in range(1, scale.turns + 1):
        for each in scale.conditions[:: -1 if turn % 2 else 1]:
            log_ratios[each].append(_log_ratio(each, turn, measure))
        print(f"  turn {turn} of {scale.turns}", file=sys.stderr)
    yield from judged(log_ratios)


def judged(log_ratios: Mapping[Condition, list[float]]) -> Iterator[Finding]:
    """Findings on every condition after the first. ``log_ratios``: for each condition, the log-ratios of all turns."""
    first, *others = log_ratios
    reference = ratio_interval(log_ratios[first], CONFIDENCE)
    for each in others:
        off = [value - at_first for value, at_first in zip(log_ratios[each], log_ratios[first], strict=True)]
        ratio = ratio_interval(off, CONFIDENCE)
        shown = (
            f"{ratio_interval(log_ratios[each], CONFIDENCE).value:.4g} where {first.name} is {reference.value:.4g}: "
            f"{ratio.value - 1:+.1%} ({ratio.low - 1:+.1%} to {ratio.high - 1:+.1%})"
        )
        yield Finding(f"interleaving, {each.name}", shown, MUST, abs(ratio.value - 1) <= WITHIN)


def design(condition: Condition, turn: int) -> Sweep:
    """Plan of the sweep of a condition in a turn. The seed of the sweep is the number of the turn."""
    above, below = Arm(read("sockets")), Arm(read("grpc executor=static-pool"))
    differ = above.setting.unlike(below.setting)
    comparison = Comparison("pair", "sockets ÷ gRPC", above, below, differ, family="headline")
    beside = [Arm(read("sockets"), 1 + number) for number in range(SERVERS_MAX - 2)] if condition.among else []
    rounds = min(_ROUNDS, condition.pairs)
    groups = (Group((above, below), times=condition.pairs // rounds), *(Group((arm,)) for arm in beside))
    turns = Slices(counted_s=condition.counted_s)
    return Sweep("selfcheck", "interleaving", groups, (comparison,), rounds, (1,), turn, turns)


def _log_ratio(condition: Condition, turn: int, measure: Measure) -> float:
    """Measures the log-ratio of a condition in one block. Raises LoadFailed if the block has no whole pair."""
    sweep = design(condition, turn)
    value = ratios.typical(sweep, measure(sweep, turn), sweep.comparisons[0])
    if value is None or not math.isfinite(value):
        raise LoadFailed(f"{condition.name}: no whole pair in a block")
    return value
