"""Findings of the checks of ``selfcheck``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check: the measured and the required value, as words with units."""

    name: str
    shown: str
    must: str
    passed: bool | None
    """None for a skipped check. ``shown`` then has the way to get the absent program."""
