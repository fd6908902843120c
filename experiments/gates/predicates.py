"""What a sentence can claim, as values that a table either bears out or contradicts.

A predicate is evaluated on all cells of its table, and gives every cell that contradicts it. A cell that a claim of
"always" or "every" cannot be checked on (one arm of a pair is missing, a value is not a number) contradicts it too; a
claim that no cell bears out is contradicted by the empty table.

``Shows``, ``NoDifference`` and ``BecauseOf`` are about comparisons, not cells: ``sentence_gates`` evaluates them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import assert_never

from experiments.stats import Verdict

Level = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: the levels of its factors, and its value."""

    levels: Mapping[str, Level]
    value: float

    def __str__(self) -> str:
        return " ".join(f"{factor}={level}" for factor, level in self.levels.items())


@dataclass(frozen=True, slots=True)
class AlwaysBelow:
    """In every setting of the other factors, the value at level ``lower`` is below that at ``upper``."""

    factor: str
    lower: Level
    upper: Level


@dataclass(frozen=True, slots=True)
class BelowIn:
    """As ``AlwaysBelow``, in exactly ``times`` of ``of`` settings."""

    factor: str
    lower: Level
    upper: Level
    times: int
    of: int


@dataclass(frozen=True, slots=True)
class GrowsWith:
    """From each level of a factor, which are numbers, to the next the value grows, in every setting of the others."""

    factor: str


@dataclass(frozen=True, slots=True)
class FallsWith:
    """As ``GrowsWith``, downwards."""

    factor: str


@dataclass(frozen=True, slots=True)
class EveryWithin:
    """Every value lies within the two, ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Shows:
    """Every comparison that is named has this verdict."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class NoDifference:
    """Every comparison that is named was tested for equivalence, and is EQUIVALENT."""


@dataclass(frozen=True, slots=True)
class BecauseOf:
    """The comparisons' difference is this factor's doing."""

    factor: str


TablePredicate = AlwaysBelow | BelowIn | GrowsWith | FallsWith | EveryWithin
Predicate = TablePredicate | Shows | NoDifference | BecauseOf


class Strong(Enum):
    """Words that claim more than single numbers show."""

    UNIVERSAL = re.compile(
        r"(?<!\bnot )\b(?:always|never|consistently|in (?:every|all|each)|every (?:cell|case|setting|one))\b",
        re.IGNORECASE,
    )
    MONOTONE = re.compile(
        r"\b(?:grows?|rises?|increases?|falls?|decreases?) (?:steadily )?(?:with|as)\b", re.IGNORECASE
    )
    ALIKE = re.compile(
        r"(?<!\bnot )\b(?:no (?:significant )?difference|the same(?! (?:block|run|machine|core|mutex|lock|pool)s?\b)"
        r"|equal(?:ly)?|equivalent|as (?:fast|slow) as)\b",
        re.IGNORECASE,
    )
    CAUSE = re.compile(r"(?<!\bnot )\b(?:because of|due to|owing to|caused by|is the reason)\b", re.IGNORECASE)


def strong_words(text: str) -> Iterator[tuple[Strong, str]]:
    """The strong words of a text, each kind's first. "Not always" is not strong."""
    for kind in Strong:
        if found := kind.value.search(text):
            yield kind, found[0]


def backs(predicate: Predicate, kind: Strong) -> bool:
    """Whether a predicate that holds allows words of that kind."""
    match predicate:
        case AlwaysBelow() | EveryWithin():
            return kind is Strong.UNIVERSAL
        case GrowsWith() | FallsWith():
            return kind in (Strong.UNIVERSAL, Strong.MONOTONE)
        case NoDifference():
            return kind is Strong.ALIKE
        case Shows():
            return kind is Strong.ALIKE and predicate.verdict is Verdict.EQUIVALENT
        case BecauseOf():
            return kind is Strong.CAUSE
        case BelowIn():
            return False
        case _:
            assert_never(predicate)


def contradictions(predicate: TablePredicate, cells: Sequence[Cell]) -> list[str]:
    """Each cell, or pair of cells, that contradicts the claim, in words with its numbers; none if all bear it out."""
    match predicate:
        case AlwaysBelow():
            return list(_not_below(predicate, cells))
        case BelowIn():
            return list(_other_count(predicate, cells))
        case GrowsWith():
            return list(_not_ordered(predicate.factor, cells, 1))
        case FallsWith():
            return list(_not_ordered(predicate.factor, cells, -1))
        case EveryWithin():
            if not cells:
                return [_EMPTY]
            low, high = predicate.low, predicate.high
            outside = [cell for cell in cells if not low <= cell.value <= high]
            return [f"{cell}: {cell.value:g} is not within {low:g} to {high:g}" for cell in outside]
        case _:
            assert_never(predicate)


_EMPTY = "the table has no cell that it speaks of"

Others = tuple[tuple[str, Level], ...]


def _not_below(claim: AlwaysBelow, cells: Sequence[Cell]) -> Iterator[str]:
    settings = _pairs(claim, cells)
    if not settings:
        yield _EMPTY
    for others, (lower, upper) in settings.items():
        if lower is None or upper is None:
            yield f"{_named(others)}: {claim.lower if lower is None else claim.upper} is missing"
        elif not lower.value < upper.value:  # a value that is no number is not below
            yield f"{_named(others)}: {claim.lower} {lower.value:g}, {claim.upper} {upper.value:g}"


def _other_count(claim: BelowIn, cells: Sequence[Cell]) -> Iterator[str]:
    settings = _pairs(claim, cells)
    if not settings:
        yield _EMPTY
        return
    pairs = settings.values()
    below = sum(lower is not None and upper is not None and lower.value < upper.value for lower, upper in pairs)
    if (below, len(settings)) != (claim.times, claim.of):
        yield f"{claim.lower} is below {claim.upper} in {below} of {len(settings)}, not in {claim.times} of {claim.of}"


def _not_ordered(factor: str, cells: Sequence[Cell], sign: int) -> Iterator[str]:
    steps = 0
    for others, line in _lines(factor, cells).items():
        for before, after in pairwise(sorted(line, key=lambda cell: float(cell.levels[factor]))):
            steps += 1
            if not sign * (after.value - before.value) > 0:
                at = f"{_named(others)}: " if others else ""
                yield (
                    f"{at}from {factor} {before.levels[factor]} to {after.levels[factor]} it goes "
                    f"from {before.value:g} to {after.value:g}"
                )
    if not steps:
        yield _EMPTY


def _pairs(claim: AlwaysBelow | BelowIn, cells: Sequence[Cell]) -> dict[Others, tuple[Cell | None, Cell | None]]:
    """By the setting of the other factors: the cell at the lower level, and that at the upper."""
    found: dict[Others, tuple[Cell | None, Cell | None]] = {}
    for others, line in _lines(claim.factor, cells).items():
        at = {cell.levels[claim.factor]: cell for cell in line}
        if claim.lower in at or claim.upper in at:
            found[others] = (at.get(claim.lower), at.get(claim.upper))
    return found


def _lines(factor: str, cells: Sequence[Cell]) -> dict[Others, list[Cell]]:
    """The cells that have the factor, by the setting of the others."""
    lines: dict[Others, list[Cell]] = {}
    for cell in cells:
        if factor in cell.levels:
            others = tuple(sorted((name, level) for name, level in cell.levels.items() if name != factor))
            lines.setdefault(others, []).append(cell)
    return lines


def _named(others: Others) -> str:
    return " ".join(f"{name}={level}" for name, level in others) or "everywhere"
