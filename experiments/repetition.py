"""When a run is done again: the rule, the same for every run of a sweep, and its limits.

A run from which the hypervisor stole more than gate 14 allows is done again at once, and the last attempt counts, also
where an earlier one lost less. The rule looks at stolen time alone, and never at what was measured. It is bounded, so
that a sweep's time is: where a bound is reached, the attempt counts as it is, and gate 14 refuses it. Pure.
"""

import math

STEAL_SHARE_MAX = 0.02
"""Of the cores' time: as much as gate 6 leaves to its laws, since stolen time lengthens every time measured."""

ATTEMPTS_MAX = 3
"""Of one run: a neighbour that stays is not waited for."""

RUNS_FOR_ONE = 20
"""One run in so many may be done again, which lengthens a sweep by a twentieth at most."""


def repetitions_max(runs: int) -> int:
    """How many times a sweep of so many runs may do one again, in all."""
    return math.ceil(runs / RUNS_FOR_ONE)


def stolen_too_much(steal_share: float | None) -> bool:
    """Whether gate 14 refuses such a run. Not where stolen time was not counted."""
    return steal_share is not None and not steal_share <= STEAL_SHARE_MAX


def is_done_again(steal_share: float | None, attempt: int, left: int) -> bool:
    """Whether a run is done again after this attempt, the first of which is 1; ``left``: repetitions that the sweep may
    still spend."""
    return stolen_too_much(steal_share) and attempt < ATTEMPTS_MAX and left > 0
