"""Factors under their former names, which older recordings have: each is read as the factor that it is now."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from experiments.design.levels import Level


@dataclass(frozen=True, slots=True)
class Former:
    """A former name of a factor, and the factor's levels at that time."""

    now: str
    """Name of today's factor."""
    read: Callable[[Level], Level]
    """Turns a former level into today's level …"""
    written: Callable[[Level], Level]
    """… and today's level into the former one."""


def _times(factor: float) -> Callable[[Level], Level]:
    return lambda level: float(str(level)) * factor


FORMER: Mapping[str, Former] = {"extra_us": Former("cpu_ms", _times(0.001), _times(1000))}
"""Former names of factors. ``extra_us`` was computed by the wall's clock, and ``cpu_ms`` is by the thread's own. To one
thread they are the same. Several at once had their ``extra_us`` side by side."""


def renewed(levels: Mapping[str, Level]) -> dict[str, Level]:
    """Levels under the factors' names of today."""
    found = {}
    for name, level in levels.items():
        former = FORMER.get(name)
        found[name if former is None else former.now] = level if former is None else former.read(level)
    return found
