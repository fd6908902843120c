"""Levels of factors: the kinds of levels, and conversion of levels from text and to text. Pure.

A level is a value of a factor, such as ``grpc`` of the factor ``transport``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

Level = str | int | float | bool | None

Levels = Mapping[str, Level]
"""Levels of all factors, by the factors' names."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of a factor's levels: a parser, and descriptions of the allowed levels."""

    parse: Callable[[str], Level]
    """Function that converts a text into a level. Raises ValueError."""
    allowed: str
    """Allowed levels in words, such as ``a whole number from 1 to 64``."""
    levels: str
    """Allowed levels in short, such as ``1..64`` or ``mutex|per-stock``."""


def shown(level: Level) -> str:
    """Text of a level, such as ``yes`` for True. ``Factor.read`` converts the text back into the level."""
    match level:
        case bool():
            return "yes" if level else "no"
        case float():
            return f"{level:.10g}"
        case None:
            return "none"
        case _:
            return str(level)


def parsed_mix(text: str) -> dict[str, float]:
    """Weight of each request type, from a text such as ``lookup`` or ``lookup=0.5,trade=0.5``. A type without a weight
    gets weight 1.

    Raises ValueError for a type without a name, a type that occurs twice, or a weight that is not a number.
    """
    weights: dict[str, float] = {}
    for each in text.split(","):
        name, _, weight = each.partition("=")
        if not name or name in weights:
            raise ValueError(text)
        weights[name] = float(weight) if weight else 1.0
    return weights


def one_of(*names: str) -> Kind:
    """Kind of levels that are names from a list, such as ``mutex`` and ``per-stock``."""

    def parse(text: str) -> Level:
        if text not in names:
            raise ValueError(text)
        return text

    return Kind(parse, ", ".join(names), "|".join(names))


def whole(low: int, high: int, none: bool = False) -> Kind:
    """Kind of levels that are whole numbers from ``low`` to ``high``. If ``none`` is true, the level None is also
    allowed."""
    kind = Kind(int, f"a whole number from {low} to {high}", f"{low}..{high}")
    return _within(low, high, none, kind)


def number(low: float, high: float, none: bool = False) -> Kind:
    """Kind of levels that are numbers from ``low`` to ``high``. If ``none`` is true, the level None is also allowed."""
    kind = Kind(float, f"a number from {low:g} to {high:g}", f"{low:,g}..{high:,.0f}".replace(",", ""))
    return _within(low, high, none, kind)


def _within(low: float, high: float, none: bool, kind: Kind) -> Kind:
    """A copy of ``kind`` that refuses numbers outside a range. With ``none``, the text ``none`` is also allowed."""

    def parse(text: str) -> Level:
        if none and text == "none":
            return None
        value = kind.parse(text)
        if not (isinstance(value, (int, float)) and low <= value <= high):
            raise ValueError(text)
        return value

    return Kind(parse, kind.allowed + ", or none" * none, kind.levels + "|none" * none)


_YES_OR_NO = one_of("yes", "no")
YES_NO = replace(_YES_OR_NO, parse=lambda text: _YES_OR_NO.parse(text) == "yes")
