"""Search by trials for the highest rate at which a server keeps a limit. The limit is on the 99th percentile of the
response times.

The search has three steps. First, the rate is doubled until a trial fails. If the very first trial fails, the rate is
halved until a trial passes. Second, the interval between the passed and the failed rate is bisected, on a logarithmic
scale, until the interval is 5 % wide. Third, the found rate is tried once more, since a rate may pass once by luck. The
rate is lowered in steps of 5 % until a rate has passed twice.

A failed trial with late sends says little about the server. The search repeats such a trial once, and uses the result
of the repetition. The third step repeats no trial, since a rate could then pass by luck.

Left out: the measurement of a trial. The caller measures a trial in an open loop. A closed loop would slow down
together with the server, and would show no limit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

STEP = 1.05
"""Precision of the answer: the found rate is within 5 % of the highest rate."""

TRIALS_MAX = 40
"""Largest number of trials. Doubling from 10/s to a million takes 18 trials, and bisecting the interval takes 4. The
third step takes some more. Repeated trials count.
"""

HALVINGS_MAX = 4
"""Largest number of times that a failed first rate is halved. The number is small, since a trial at half the rate lasts
twice as long.
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """A rate that was tried, and the result."""

    rate_hz: float
    kept: bool
    """True if every limit was kept."""
    said: str
    """Result of the trial, in a few words."""
    late_sends: bool = False
    """True if requests were sent late, or not as the schedule demands. Then the client, and not the server, may be the
    cause of a failed trial.
    """


@dataclass(frozen=True, slots=True)
class Found:
    """Result of the search."""

    rate_hz: float | None
    """Highest rate that kept the limits twice; None if no rate kept the limits twice."""
    trials: tuple[Trial, ...]
    late_sends: bool
    """True if the last failed trial had late sends. Then the client, and not the server, was probably the limit."""


def find_rate(trial: Callable[[float], Trial], least_hz: float, first_hz: float, high_hz: float) -> Found:
    """Searches from ``first_hz`` up to ``high_hz`` and down to ``least_hz``. Makes at most ``TRIALS_MAX`` trials.
    Blocks until the last trial has ended."""
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
        trials.append(trial(best_hz))  # without a repetition: this trial is the proof
        if not trials[-1].kept:
            failed = trials[-1]
            best_hz /= STEP
        elif sum(tried.kept for tried in trials if tried.rate_hz == best_hz) > 1:
            return Found(best_hz, tuple(trials), failed is not None and failed.late_sends)
    return Found(None, tuple(trials), failed is not None and failed.late_sends)
