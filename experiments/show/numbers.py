"""Numbers as people read them: three significant digits, intervals as ``0.28 to 0.30``, nothing that crosses a page."""

import math
from collections.abc import Iterable

from experiments.judge.stats import Estimate

NOTHING = "–"
"""Where nothing was measured."""

BOUNDS = (0.95, 1.0, 1.05)
"""No end of an interval is shown to be one of these unless it is."""

_FAR = 100
"""An end of an interval that lies so many times from its value says no more than that it is far."""


def number(value: float) -> str:
    """Three significant digits: ``0.290``, ``12.4``, ``12,400``; an exponent only under 0.0001 and from 10^6 on."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 0.0001 <= abs(value) < 1e6:
        return f"{value:.1e}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def ratio_words(estimate: Estimate) -> tuple[str, str]:
    """A ratio, and its interval as ``0.28 to 0.30``.

    Both have as many decimals as tell the ends apart, and from the bounds that verdicts are made by.
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if not has_interval(estimate):
        return _ratio(value, 2), NOTHING
    if low < value / _FAR or high > _FAR * value:
        below = f"under {_ratio(value / _FAR, 2)}" if low < value / _FAR else _ratio(low, 2)
        above = f"over {_ratio(_FAR * value, 2)}" if high > _FAR * value else _ratio(high, 2)
        return _ratio(value, 2), f"{below} to {above}"
    for decimals in (2, 3, 4):
        words = [_ratio(each, decimals) for each in (value, low, high)]
        shown = [float(word.replace(",", "")) for word in words]
        on_bound = any(
            end == bound != exact for end, exact in zip(shown[1:], (low, high), strict=True) for bound in BOUNDS
        )
        on_1 = shown[0] == 1 and not low <= 1 <= high
        if not on_bound and not on_1 and shown[1] != shown[2]:
            break
    return words[0], f"{words[1]} to {words[2]}"


def _ratio(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}" if 0.1 <= value < 10 else number(value)


def times_between(estimate: Estimate, factor: float) -> str:
    """The ends of an interval of times, divided by ``factor``: µs into ms with 1000."""
    return f"{number(estimate.low / factor)} to {number(estimate.high / factor)}" if has_interval(estimate) else NOTHING


def has_interval(estimate: Estimate) -> bool:
    """Whether there is one: not from a single value."""
    return estimate.n > 1 and math.isfinite(estimate.low) and math.isfinite(estimate.high)


def percent(share: float) -> str:
    """``98.3 %``, ``95 %``."""
    return f"{float(f'{100 * share:.3g}'):g} %"


def counted(count: int, noun: str) -> str:
    """``1 block``, ``10 blocks``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def time_unit(times_us: Iterable[float]) -> tuple[str, float]:
    """The unit in which these read well, and how many µs it has."""
    most = max(times_us, default=0.0)
    return ("µs", 1.0) if most < 1000 else ("ms", 1000.0) if most < 1e6 else ("s", 1e6)
