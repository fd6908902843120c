"""Findings of the instrument's checks of itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: the seen and the required result, both in plain words with their units."""

    name: str
    shown: str
    must: str
    passed: bool | None
    """None where it was skipped; ``shown`` then says how to get the missing program."""
