"""Levels of factors as texts and as values: the kinds of levels, and how each is read and shown. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Level = str | int | float | bool | None

Levels = Mapping[str, Level]
"""A level of every factor, by the factor's name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of a factor's levels: how a level is read, and the allowed levels in words."""

    parse: Callable[[str], Level]
    """Gives the level that a text stands for. Raises ValueError."""
    allowed: str
    levels: str
    """The allowed levels in short: ``1..64``, ``mutex|per-stock``."""


def shown(level: Level) -> str:
    """A level as text; a factor's ``read`` takes it back."""
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
    """``lookup``, or ``lookup=0.5,trade=0.5``, as weights by request type. Raises ValueError."""
    weights: dict[str, float] = {}
    for each in text.split(","):
        name, _, weight = each.partition("=")
        if not name or name in weights:
            raise ValueError(text)
        weights[name] = float(weight) if weight else 1.0
    return weights


def one_of(*names: str) -> Kind:
    """Levels that are names."""

    def parse(text: str) -> Level:
        if text not in names:
            raise ValueError(text)
        return text

    return Kind(parse, ", ".join(names), "|".join(names))


def whole(low: int, high: int, none: bool = False) -> Kind:
    """Whole numbers; with ``none`` also no number at all."""

    def parse(text: str) -> Level:
        if none and text == "none":
            return None
        if not low <= (value := int(text)) <= high:
            raise ValueError(text)
        return value

    return Kind(parse, f"a whole number from {low} to {high}" + ", or none" * none, f"{low}..{high}" + "|none" * none)


def number(low: float, high: float, none: bool = False) -> Kind:
    """Numbers; with ``none`` also no number at all."""

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
