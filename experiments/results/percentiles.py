"""Percentiles of one run, and which of them a run carries.

A percentile with fewer than 10 independent values beyond it is not carried, and must not be reported. It would be the
place of a handful of moments in one run. Requests of one run are not independent: slow ones come together. How many
``effective`` ones they are worth is for ``clients.load.record.dependence`` to say. How runs differ is for ``judge``,
over blocks.

Percentiles are in percent. Pure. Left out: their values, which histograms have.
"""

import math

BEYOND_MIN = 10
"""Effective values that must lie beyond a percentile for it to be reported."""


def is_carried(percent: float, effective: float) -> bool:
    """True where this many effective values carry a percentile: at least 10 lie beyond it, on its scarcer side."""
    return effective * min(percent, 100 - percent) >= BEYOND_MIN * 100 * (1 - 1e-12)  # 99.9 is no binary fraction


def needed(percent: float, count: int, effective: float) -> int:
    """Values that would carry a percentile, if as many of them are worth an independent one as of this count."""
    return math.ceil(count / effective * BEYOND_MIN * 100 / min(percent, 100 - percent) - 1e-9)
