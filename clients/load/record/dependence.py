"""Dependence between the requests of a run, and the check of arrivals against the declared process.

Requests of one run are not independent. Slow requests come together, after a stall or behind a full queue. Because of
this dependence, a confidence interval must be wider. The **design effect** measures the dependence: the variance of the
values' mean ÷ the variance that the mean of independent values would have. The requests are divided into clusters, such
as slices of an arm (a measured setting) or whole windows. The clusters are independent of each other. So the spread of
the clusters' means is compared with the spread of the values. For a percentile, a request's value is 1 if the request's
time is above the percentile, and 0 otherwise.

Arrivals are checked against the declared process. The rate is checked for both processes. In a constant process nearly
all gaps must be near the period. In a Poisson process the gaps must be exponential: the Kolmogorov-Smirnov distance to
the exponential distribution must be small. At a high rate no sender keeps each gap exactly. Exact gaps are not needed,
since a response time begins when the request was due. So at a high rate the check adds up several successive gaps. Such
a sum is a millisecond on average. The sums have Erlang's distribution. The distribution of the gaps does not show their
order, and so does not show bursts. Therefore, the counts of a Poisson process's arrivals in windows are checked, too.
The index of dispersion (variance ÷ mean) of the counts must be 1, for windows of two lengths. Source: Cox and Lewis,
"The Statistical Analysis of Series of Events", 1966.

Arrays are in time order. The functions are pure, use numpy alone, and have no loop over values; 4 million gaps take
some 0.2 s. Left out: dependence between clusters, and conclusions from the faults.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt

ArrivalProcess = Literal["constant", "poisson"]

Numbers = npt.NDArray[np.bool_] | npt.NDArray[np.int64] | npt.NDArray[np.float64]

GAPS_MIN = 100
"""Smallest number of gaps that a check needs."""

RATE_OFF_MAX = 0.01
"""Largest allowed difference between the measured and the declared rate, as a share of the declared rate. For a Poisson
process, a difference by chance is allowed in addition (``CHANCE``).
"""

DISTANCE_MAX = 0.02
"""Largest Kolmogorov-Smirnov distance that the sender's own jitter may cause. A distance by chance is allowed in
addition (``_CHANCE_DISTANCE``).
"""

RESOLUTION_NS = 1_000_000
"""Mean length, in nanoseconds, of the sums of Poisson gaps in the distance check. The sender's own work between two
sends takes some 20 µs, and distorts single gaps.
"""

DISPERSION_OFF_MAX = 0.05
"""Largest allowed difference between the index of dispersion and 1. A difference by chance is allowed in addition
(``CHANCE``).
"""

CHANCE = 3.3
"""Largest deviation that counts as chance, in standard errors. If only chance acts, 1 deviation in 1000 is larger
(two-sided).
"""

PERIOD_OFF_MAX = 0.10
"""Largest allowed difference between a gap and the period of a constant process, as a share of the period."""

OFF_SHARE_MAX = 0.05
"""Largest share of gaps that may differ by more than ``PERIOD_OFF_MAX``. Some gaps differ: a pause of the machine makes
one gap long and some later gaps short.
"""

_CHANCE_DISTANCE = 1.95
"""Largest Kolmogorov-Smirnov distance × √n that counts as chance, for n sums. If only chance acts, 1 sample in 1000
exceeds this value.
"""

_SHORT_WINDOW = 10
"""Mean number of arrivals in a short window of the check. Smaller counts would be far from normally distributed."""

_LONG_WINDOWS = 100
"""Largest number of long windows of the check in a run."""


@dataclass(frozen=True, slots=True)
class ArrivalCheck:
    """Measured values of the arrivals, and the differences from the declared process (``faults``). Every field goes
    into JSON unchanged."""

    process: ArrivalProcess
    rate_hz: float
    """Declared rate."""
    count: int
    """Number of gaps."""
    mean_gap_ns: float
    rate_ratio: float
    """Measured rate ÷ declared rate."""
    coefficient_of_variation: float
    """Standard deviation ÷ mean of the gaps: 1 for a Poisson process, 0 for constant arrivals."""
    ks_distance: float
    """Kolmogorov-Smirnov distance between the distribution of the gaps and the distribution of the declared process, 0
    to 1. For a Poisson process, sums of gaps are compared (``RESOLUTION_NS``). For a constant process, the distance is
    never a fault: the declared distribution has a jump, so even a small jitter makes the distance large.
    """
    dispersion_short: float
    """Index of dispersion (variance ÷ mean) of the counts of arrivals in short windows. A short window has 10 arrivals
    on average. The index is 1 for a Poisson process, and near 0 for constant arrivals.
    """
    dispersion_long: float
    """Index of dispersion of the counts of arrivals in long windows. A long window is at least a hundredth of the run.
    """
    off_period_share: float
    """Share of the gaps that differ from the declared period by over 10 %."""
    faults: tuple[str, ...]
    """Differences from the declared process, in words. Empty if no difference was found."""


def cluster_effect(sizes: Numbers, sums: Numbers, variance: float) -> float:
    """The design effect of values in clusters: batches of a run, slices of an arm, or whole windows. ``sizes`` has the
    number of values in each cluster. ``sums`` has the sum of the values in each cluster. ``variance`` is the variance
    of all values. Clusters must be independent of each other. Values within a cluster may depend on each other in any
    way. The variance of the mean is computed as the variance of a ratio of two sums (Cochran, "Sampling Techniques",
    1977, chapter 9A). The effect is at least 1. The effect is 1 for fewer than two clusters, and for equal values.
    """
    clusters, n = len(sizes), float(sizes.sum())
    if clusters < 2 or not n or not variance:
        return 1.0
    off = sums - sizes * (float(sums.sum()) / n)
    return max(1.0, float(np.square(off).sum()) * clusters / (clusters - 1) / (n * variance))


def arrival_check(gaps_ns: npt.NDArray[np.int64], rate_hz: float, process: ArrivalProcess) -> ArrivalCheck:
    """Compares the gaps between successive arrivals with the declared process. ``gaps_ns`` has the gaps in nanoseconds,
    in time order.

    A gap is the time between two successive sends of all senders together. ``rate_hz`` is the rate of these senders
    together. Raises ValueError for a rate that is not over 0, for a gap under 0, and for an empty array.
    """
    if not rate_hz > 0:
        raise ValueError(f"a rate of {rate_hz:g}/s, allowed: over 0")
    if not len(gaps_ns):
        raise ValueError("no gaps to check")
    ordered = np.sort(gaps_ns)
    if ordered[0] < 0:
        raise ValueError("a gap under 0 ns: the arrivals are not in time order")
    period_ns = 1e9 / rate_hz
    count, mean_ns = len(ordered), float(ordered.mean())
    arrivals = np.cumsum(gaps_ns)
    together = _together(period_ns, count) if process == "poisson" else 1
    sums = np.sort(gaps_ns[: count // together * together].reshape(-1, together).sum(axis=1))
    off_low, off_high = period_ns * (1 - PERIOD_OFF_MAX), period_ns * (1 + PERIOD_OFF_MAX)
    within = np.searchsorted(ordered, off_high, "right") - np.searchsorted(ordered, off_low, "left")
    long_windows = min(_LONG_WINDOWS, max(2, count // _SHORT_WINDOW))
    short_windows = max(2, count // _SHORT_WINDOW)
    seen = ArrivalCheck(
        process=process,
        rate_hz=rate_hz,
        count=count,
        mean_gap_ns=mean_ns,
        rate_ratio=period_ns / mean_ns if mean_ns else 0.0,
        coefficient_of_variation=float(ordered.std()) / mean_ns if mean_ns else 0.0,
        ks_distance=_distance(sums, period_ns, process, together),
        dispersion_short=_dispersion(arrivals, _SHORT_WINDOW * mean_ns, short_windows),
        dispersion_long=_dispersion(arrivals, count * mean_ns / long_windows, long_windows),
        off_period_share=1 - int(within) / count,
        faults=(),
    )
    return _with_faults(seen, len(sums), short_windows, long_windows)


def _together(period_ns: float, count: int) -> int:
    """Number of successive gaps in one sum, for a Poisson process. A sum is at least ``RESOLUTION_NS`` on average. If
    the run is too short for ``GAPS_MIN`` such sums, each sum has fewer gaps, but at least 1.
    """
    return max(1, min(math.ceil(RESOLUTION_NS / period_ns), count // GAPS_MIN))


def _erlang(times: npt.NDArray[np.float64], gaps: int) -> npt.NDArray[np.float64]:
    """For each of the ``times``: probability that the sum of ``gaps`` exponential gaps is at most this time (Erlang's
    distribution). The unit of ``times`` is the mean gap.
    """
    term = np.exp(-times)
    over = term.copy()
    for number in range(1, gaps):
        term = term * times / number
        over += term
    return 1 - over


def _distance(ordered: npt.NDArray[np.int64], period_ns: float, process: ArrivalProcess, together: int = 1) -> float:
    """Kolmogorov-Smirnov distance of the measured sums from the declared distribution. ``ordered`` has the sums in
    ascending order. Each sum is of ``together`` gaps.
    """
    n = len(ordered)
    match process:
        case "poisson":
            declared = _erlang(ordered / period_ns, together)
            steps = np.arange(n + 1) / n
            return float(max((steps[1:] - declared).max(), (declared - steps[:-1]).max()))
        case "constant":
            period = round(period_ns)
            under, over = np.searchsorted(ordered, period, "left"), np.searchsorted(ordered, period, "right")
            return max(int(under), n - int(over)) / n
        case _:
            assert_never(process)


def _dispersion(arrivals: npt.NDArray[np.int64], window_ns: float, windows: int) -> float:
    """Index of dispersion (variance ÷ mean) of the counts of arrivals in successive windows. The first of the
    ``windows`` windows begins at 0. Arrivals after the last window do not count.
    """
    if not window_ns:
        return 0.0
    before = np.searchsorted(arrivals, np.arange(windows + 1) * window_ns)
    counts = np.diff(before)
    mean = float(counts.mean())
    return float(counts.var(ddof=1)) / mean if mean else 0.0


def _with_faults(seen: ArrivalCheck, sums: int, short_windows: int, long_windows: int) -> ArrivalCheck:
    """Returns a copy of the check ``seen`` that has the faults. Each fault is a text with the measured and the allowed
    value. ``sums`` is the number of sums in the distance check.
    """
    if seen.count < GAPS_MIN:
        return replace(seen, faults=(f"{seen.count} gaps, needed: {GAPS_MIN}",))
    chance = 1 / math.sqrt(seen.count)
    match seen.process:
        case "poisson":
            checks = [
                ("rate ÷ declared", seen.rate_ratio, 1.0, RATE_OFF_MAX + CHANCE * chance),
                ("distance from exponential gaps", seen.ks_distance, 0.0, _distance_off_max(sums)),
                ("index of dispersion, short windows", seen.dispersion_short, 1.0, _dispersion_off_max(short_windows)),
                ("index of dispersion, long windows", seen.dispersion_long, 1.0, _dispersion_off_max(long_windows)),
            ]
        case "constant":
            checks = [
                ("rate ÷ declared", seen.rate_ratio, 1.0, RATE_OFF_MAX),
                (f"share of gaps over {PERIOD_OFF_MAX:.0%} off the period", seen.off_period_share, 0.0, OFF_SHARE_MAX),
            ]
        case _:
            assert_never(seen.process)
    faults = [
        f"{name} {value:.4g}, allowed: {wanted:g} ± {off:.2g}"
        for name, value, wanted, off in checks
        if abs(value - wanted) > off
    ]
    return replace(seen, faults=tuple(faults))


def _distance_off_max(sums: int) -> float:
    return DISTANCE_MAX + _CHANCE_DISTANCE / math.sqrt(sums)


def _dispersion_off_max(windows: int) -> float:
    """Largest allowed difference between 1 and an index of dispersion over ``windows`` windows."""
    return DISPERSION_OFF_MAX + CHANCE * math.sqrt(2 / (windows - 1))
