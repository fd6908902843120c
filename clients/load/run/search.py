"""The highest rate at which a server still keeps a limit on its 99th percentile, by trial.

The search has three steps. It doubles the rate until a trial fails; where the first fails, it halves the rate until one
passes. It halves the interval between the two (on the logarithm) until that is 5 % wide. It tries the rate found once
more, and steps down by 5 % until some rate has passed twice: one pass may have been luck.

A trial that failed while the client itself was late says little of the server. It is repeated once before it counts.
The last step repeats none: a second chance would let luck in.

Left out: what a trial is. The caller measures it in an open loop, since a closed one slows down with the server and
shows no limit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

STEP = 1.05
"""Precision of the answer: within 5 %."""

TRIALS_MAX = 40
"""From 10/s by doubling to a million takes 18, halving the interval 4, proving some more; repeated ones count too."""

HALVINGS_MAX = 4
"""The first rate is halved so often, at most, where it fails. At half the rate a trial lasts twice as long."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A rate that was tried."""

    rate_hz: float
    kept: bool
    """True where every limit was kept."""
    said: str
    """Result of the trial, in a few words."""
    late_sends: bool = False
    """Requests were sent late, or off their schedule: what was seen may not be the server's limit."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of the search."""

    rate_hz: float | None
    """None: no rate, from the least on, kept the limit twice."""
    trials: tuple[Trial, ...]
    late_sends: bool
    """True where requests were sent late in the failed trial: then the client was the limit, as far as can be told."""


def find_rate(trial: Callable[[float], Trial], least_hz: float, first_hz: float, high_hz: float) -> Found:
    """Searches from ``first_hz`` up to ``high_hz`` and down to ``least_hz``. Blocks for as long as the trials do, at
    most ``TRIALS_MAX`` of them."""
    trials: list[Trial] = []

    def attempt(rate_hz: float) -> Trial:
        trials.append(trial(rate_hz))
        if trials[-1].late_sends and not trials[-1].kept and len(trials) < TRIALS_MAX:
            trials.append(trial(rate_hz))
        return trials[-1]

    best_hz, failed = 0.0, None
    while failed is None and best_hz < high_hz:
        tried = attempt(min(2 * best_hz, high_hz) if best_hz else first_hz)
        if tried.kept:
            best_hz = tried.rate_hz
        else:
            failed = tried
    while failed is not None and not best_hz and failed.rate_hz > least_hz:
        tried = attempt(max(failed.rate_hz / 2, least_hz))
        if tried.kept:
            best_hz = tried.rate_hz
        else:
            failed = tried
    while failed is not None and best_hz and failed.rate_hz / best_hz > STEP and len(trials) < TRIALS_MAX:
        tried = attempt(math.sqrt(best_hz * failed.rate_hz))
        if tried.kept:
            best_hz = tried.rate_hz
        else:
            failed = tried
    while best_hz >= least_hz and len(trials) < TRIALS_MAX:
        trials.append(trial(best_hz))  # once only, whatever it fails by: this is the proof
        if not trials[-1].kept:
            failed = trials[-1]
            best_hz /= STEP
        elif sum(tried.kept for tried in trials if tried.rate_hz == best_hz) > 1:
            return Found(best_hz, tuple(trials), failed is not None and failed.late_sends)
    return Found(None, tuple(trials), failed is not None and failed.late_sends)
