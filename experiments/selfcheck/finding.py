"""Findings of the instrument's checks of itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: the measured and the required result, both in plain words with their units."""

    name: str
    shown: str
    must: str
    passed: bool | None
    """None for a skipped check. ``shown`` then says how to get the absent program."""
