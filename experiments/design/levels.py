"""Levels of factors: kinds of levels, and their conversion from text and to text. Pure.

A level is a value of a factor, such as ``grpc`` of the factor ``transport``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Level = str | int | float | bool | None

Levels = Mapping[str, Level]
"""Levels of all factors, by the factors' names."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of a factor's levels: a parser, and descriptions of the allowed levels."""

    parse: Callable[[str], Level]
    """Parser of a level's text. Raises ValueError."""
    allowed: str
    """Allowed levels in words."""
    levels: str
    """Allowed levels in short: ``1..64``, ``mutex|per-stock``."""


def shown(level: Level) -> str:
    """Text of a level, which a factor's ``read`` converts back."""
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
    """Weights by request type, from a text such as ``lookup`` or ``lookup=0.5,trade=0.5``. Raises ValueError."""
    weights: dict[str, float] = {}
    for each in text.split(","):
        name, _, weight = each.partition("=")
        if not name or name in weights:
            raise ValueError(text)
        weights[name] = float(weight) if weight else 1.0
    return weights


def one_of(*names: str) -> Kind:
    """Kind of levels that are names."""

    def parse(text: str) -> Level:
        if text not in names:
            raise ValueError(text)
        return text

    return Kind(parse, ", ".join(names), "|".join(names))


def whole(low: int, high: int, none: bool = False) -> Kind:
    """Kind of levels that are whole numbers. With ``none``, the level None is also allowed."""

    def parse(text: str) -> Level:
        if none and text == "none":
            return None
        if not low <= (value := int(text)) <= high:
            raise ValueError(text)
        return value

    return Kind(parse, f"a whole number from {low} to {high}" + ", or none" * none, f"{low}..{high}" + "|none" * none)


def number(low: float, high: float, none: bool = False) -> Kind:
    """Kind of levels that are numbers. With ``none``, the level None is also allowed."""

    def parse(text: str) -> Level:
        if none and text == "none":
            return None
        if not low <= (value := float(text)) <= high:
            raise ValueError(text)
        return value

    allowed = f"a number from {low:g} to {high:g}" + (", or none" if none else "")
    return Kind(parse, allowed, f"{low:,g}..{high:,.0f}".replace(",", "") + "|none" * none)


def _parse_yes_no(text: str) -> Level:
    if text not in ("yes", "no"):
        raise ValueError(text)
    return text == "yes"


YES_NO = Kind(_parse_yes_no, "yes, no", "yes|no")
