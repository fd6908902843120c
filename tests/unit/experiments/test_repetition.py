"""The rule by which a run is done again: its limit is gate 14's, and its bounds hold."""

import math

import pytest

from experiments.gates.law_gates import LAW_MARGIN
from experiments.repetition import (
    ATTEMPTS_MAX,
    STEAL_SHARE_MAX,
    is_done_again,
    repetitions_max,
    stolen_too_much,
)


@pytest.mark.parametrize(
    ("steal_share", "too_much"), [(None, False), (0.0, False), (0.02, False), (0.0201, True), (math.nan, True)]
)
def test_too_much_is_what_gate_14_refuses(steal_share: float | None, too_much: bool) -> None:
    """Over 2 %, which is what gate 6 leaves to its laws; not where nobody counted."""
    assert STEAL_SHARE_MAX == LAW_MARGIN
    assert stolen_too_much(steal_share) is too_much


@pytest.mark.parametrize(("runs", "repetitions"), [(1, 1), (20, 1), (21, 2), (414, 21)])
def test_a_sweep_may_repeat_one_run_in_twenty(runs: int, repetitions: int) -> None:
    """Rounded up."""
    assert repetitions_max(runs) == repetitions


@pytest.mark.parametrize(
    ("steal_share", "attempt", "left", "again"),
    [
        (0.03, 1, 1, True),
        (0.03, ATTEMPTS_MAX - 1, 1, True),
        (0.03, ATTEMPTS_MAX, 1, False),
        (0.03, 1, 0, False),
        (0.02, 1, 1, False),
        (None, 1, 1, False),
    ],
)
def test_a_run_is_done_again_within_the_bounds(steal_share: float | None, attempt: int, left: int, again: bool) -> None:
    """Three attempts of a run, and what is left to the sweep."""
    assert is_done_again(steal_share, attempt, left) is again
