"""Texts of numbers for readers, such as ``0.290``, and of intervals, such as ``0.280 to 0.300``.

An interval is computed from the values of blocks. A block is one repetition of the whole measurement.
"""

import math
from collections.abc import Iterable, Sequence

from experiments.judge.stats import SPREAD_FROM, Estimate

NOTHING = "–"
"""Sign for a missing value."""

INTERVAL_BLOCKS_MIN = 3
"""Smallest number of values for which an interval is shown. With two values, the 95 % interval is useless: the interval
is 25 standard errors wide."""

TOO_FEW = "too few blocks for an interval"

BOUNDS = (0.95, 1.0, 1.05)
"""Bounds in the rules for verdicts. The end of an interval is shown as a bound only if the end equals the bound
exactly."""

_FURTHER = 2
"""Largest number of decimals that are added to three significant digits."""

_FAR = 100
"""Largest factor between a value and an end of its interval. A farther end is shown as ``under`` or ``over`` a
bound."""


def number(value: float) -> str:
    """Text of a number, with three significant digits, or with all digits of the integer part: ``0.290``, ``12,412``. A
    number under 0.0001, or from 10^6 on, has two digits and an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 0.0001 <= abs(value) < 1e6:
        return f"{value:.1e}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def ratio_words(estimate: Estimate) -> tuple[str, str]:
    """Texts of a ratio and of its interval, as ``0.280 to 0.300``. The second text is a dash if no interval is shown.

    The ratio has three significant digits, and both ends of the interval have as many decimals as the ratio. The ratio
    and both ends get up to two more decimals if the decimals do not show all differences (``_tells_apart``).
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if not has_interval(estimate):
        return number(value), NOTHING
    if low < value / _FAR or high > _FAR * value:
        below = f"under {number(value / _FAR)}" if low < value / _FAR else number(low)
        above = f"over {number(_FAR * value)}" if high > _FAR * value else number(high)
        return number(value), f"{below} to {above}"
    places = max(0, 2 - math.floor(math.log10(value)))
    for decimals in range(places, places + _FURTHER + 1):
        words = [f"{each:,.{decimals}f}" for each in (value, low, high)]
        if _tells_apart(words, (value, low, high)):
            break
    return words[0], f"{words[1]} to {words[2]}"


def ratio_with_ends(of: Estimate) -> str:
    """Text of a ratio and its interval: ``0.290 (0.280 to 0.300)``. Without the interval if no interval is shown."""
    value, ends = ratio_words(of)
    return f"{value} ({ends})" if has_interval(of) else value


def range_words(low: float, high: float) -> str:
    """Text of a range of ratios, ``0.280 to 0.300``, with as many digits as an interval."""
    return ratio_words(Estimate(math.sqrt(low * high), low, high, INTERVAL_BLOCKS_MIN))[1]


def spread_words(ratios: Sequence[float]) -> str:
    """Text of the ratios of several runs: ``0.280 to 0.300`` for three ratios or more, ``0.280 and 0.300`` for two
    ratios. The text of a single ratio is ``number`` of the ratio."""
    if len(ratios) == 1:
        return number(ratios[0])
    words = range_words(min(ratios), max(ratios))
    return words if len(ratios) >= SPREAD_FROM else words.replace(" to ", " and ")


def enumeration(words: Iterable[str]) -> str:
    """Text of words or numbers in a sentence: ``1, 2 and 5``."""
    return " and ".join(", ".join(words).rsplit(", ", 1))


def _tells_apart(words: Sequence[str], values: Sequence[float]) -> bool:
    """True if the texts of a ratio and of its ends need no more decimals.

    Different numbers need different texts. The text of an end may equal a bound only if the end itself equals the
    bound. The text of the ratio may be 1 only if the interval contains 1.
    """
    shown = [float(word.replace(",", "")) for word in words]
    on_bound = any(end == bound != exact for end, exact in zip(shown[1:], values[1:], strict=True) for bound in BOUNDS)
    on_1 = shown[0] == 1 and not values[1] <= 1 <= values[2]
    return not on_bound and not on_1 and len(set(shown)) == len(set(values))


def times_between(estimate: Estimate, factor: float) -> str:
    """Text of both ends of an interval of times ÷ ``factor``: 1000 converts µs to ms. A dash if no interval is
    shown."""
    return f"{number(estimate.low / factor)} to {number(estimate.high / factor)}" if has_interval(estimate) else NOTHING


def value_words(estimate: Estimate, unit: str = "") -> str:
    """Text of a value and of its interval, if shown: ``12.3 (11.9 to 12.7)``. ``unit``: text that follows the value,
    as in ``12.3 ms (11.9 to 12.7)``."""
    return number(estimate.value) + unit + (f" ({times_between(estimate, 1)})" if has_interval(estimate) else "")


def has_interval(estimate: Estimate) -> bool:
    """True if the estimate's interval is shown: with ``INTERVAL_BLOCKS_MIN`` values or more, and finite ends."""
    return estimate.n >= INTERVAL_BLOCKS_MIN and math.isfinite(estimate.low) and math.isfinite(estimate.high)


def percent(share: float) -> str:
    """Text of a share in percent: ``98.3 %``, ``95 %``."""
    return f"{float(f'{100 * share:.3g}'):g} %"


def counted(count: int, noun: str) -> str:
    """Text of a count with its noun: ``1 block``, ``10 blocks``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def time_unit(times_us: Iterable[float]) -> tuple[str, float]:
    """Unit that suits the longest of these times, and the number of µs in this unit."""
    most = max(times_us, default=0.0)
    return ("µs", 1.0) if most < 1000 else ("ms", 1000.0) if most < 1e6 else ("s", 1e6)
