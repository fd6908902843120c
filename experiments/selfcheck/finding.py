"""Findings of the checks of ``selfcheck``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: the measured and the required value, as words with units."""

    name: str
    shown: str
    """Measured value."""
    must: str
    """Required value."""
    passed: bool | None
    """True if the measured value meets the required value. None for a skipped check, whose ``shown`` says how to get
    the absent program."""
