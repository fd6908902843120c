"""Windows by turns that no sweep can hold: of several loads at once, of other catalogs, beside what no server does.

A turn is one window of every arm, in random order. A row's figure is computed within a turn, from as many of its
windows as it wants. It is then the median over turns, with the interval of that median, as of any other row.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.judge.stats import median_interval
from experiments.performance.turns import CONFIDENCE, Found, Turn

Window = Callable[[int], Turn]
"""Measures an arm in a turn, whose number it is given. Blocks."""

_SEED = 1


@dataclass(frozen=True, slots=True)
class Derived:
    """A goal whose figure comes from any windows of a turn."""

    what: str
    metric: str
    goal: float | None
    at_least: bool
    arms: tuple[str, ...]
    """Whose windows it wants: ``of`` gets them in this order."""
    of: Callable[..., float]


def throughputs(above: Turn, below: Turn) -> float:
    """What most rows say of two windows."""
    return above.throughput_hz / below.throughput_hz


def by_turns(windows: Mapping[str, Window], turns: int, watch: Callable[[float], None]) -> list[Turn]:
    """Every turn. Blocks. Raises what the windows raise."""
    drawn = random.Random(_SEED)
    found: list[Turn] = []
    for number in range(turns):
        found += [windows[name](number) for name in drawn.sample(list(windows), len(windows))]
        watch((number + 1) / turns)
    return found


def found(row: Derived, turns: Sequence[Turn]) -> Found:
    """What the turns say for a row."""
    by_number: dict[int, dict[str, Turn]] = {}
    for turn in turns:
        by_number.setdefault(turn.appearance, {})[turn.arm] = turn
    whole = [seen for _, seen in sorted(by_number.items()) if set(row.arms) <= set(seen)]
    if not whole:
        return Found(None, absent="no turn had all of its windows")
    beside = [[seen[name] for name in row.arms] for seen in whole]
    values = [row.of(*each) for each in beside]
    of_each = list(zip(*beside, strict=True))
    loaded = [[turn.load_share for turn in own] for own in of_each if any(turn.load_share for turn in own)]
    shares = tuple(median_interval(own, CONFIDENCE).value for own in loaded)
    errors = sum(turn.errors for own in of_each for turn in own)
    return Found(median_interval(values, CONFIDENCE), shares, errors)
