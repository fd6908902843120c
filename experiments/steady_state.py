"""Steady state of a run, from the means of its slices: steady from the start, steady from a slice on, or not steady.

A run's window is cut into 20 or more slices of equal length (50 to 100 is usual), each with the mean response and the
number of replies. The slices are put into ten batches, which decorrelates them, and two tests are made:

- drift: Student's t test of the least-squares slope over the ten batches, which also finds a step;
- head: whether the first tenth differs from the last half, by the spread of the batches in that half: what is left of a
  warm-up. The comparison is Geweke's ("Evaluating the accuracy of sampling-based approaches to the calculation of
  posterior moments", 1992), with Student's t on batches for his spectral estimate.

An alarm also needs a size, 2 % of the mean: what is less biases no verdict, whose limits are at 5 %. Where there is an
alarm, the start is cut off by the MSER rule (White, "An effective truncation heuristic for bias reduction in simulation
output", 1997: the cut that leaves the mean with the smallest estimated error; its usual batches of five are our slices,
each of many requests), and the rest must pass both tests. A cut at half of the run is none: it never settled.

A single slice that stands out, as a pause of the machine makes, is first pulled in to 4 deviations from the median, for
the rule would cut there; the very first slice is not, since a warm-up may be as short. A pulse in the middle of a run
is therefore not found. ``arm_is_steady`` puts the runs of an arm together, which finds what noise hides in each.

False alarms, simulated with 50 or 100 slices, mean and count: 2 in 100 runs of independent slices, 3 with
autocorrelation 0.5 from slice to slice, 3 to 6 with 0.7; with 20 slices 2, 7 and 17. At 0.9, where 50 slices are worth
three, one cannot tell (25): such a run is too short. Under half of the false alarms say "not steady".
Pure. The unit is whatever it was given in.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

SLICES_MIN = 20

BATCHES = 10

ALPHA = 0.005
"""Of each test on each series; there are up to four."""

NEGLIGIBLE = 0.02
"""A drift from first to last, or a head that differs, of less than this share of the mean is none."""

_DEVIATIONS_MAX = 4.0
"""Slices farther from the median are pulled in."""

_MAD_TO_DEVIATION = 1.4826
"""For normal values: 1 ÷ Φ⁻¹(3/4)."""

_PLACES = np.arange(BATCHES) - (BATCHES - 1) / 2
_PLACES_SQUARED = float(_PLACES @ _PLACES)

Series = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SteadyState:
    """What was found of one run."""

    steady: bool
    first_slice: int
    """From which slice on, counted from 0; where the run is not steady, where the rule would have cut."""
    slices: int
    drift: float
    """Trend from the first to the last slice that was kept, ÷ their mean; of the series where it is largest."""
    p_drift: float
    p_head: float
    """The least p of all series, of the slices that were kept."""

    @property
    def from_start(self) -> bool:
        """Whether the whole window is steady: the warm-up was long enough."""
        return self.steady and self.first_slice == 0


@dataclass(frozen=True, slots=True)
class _Tested:
    """One series, or what was kept of it."""

    drift: float
    p_drift: float
    head: float
    p_head: float

    @property
    def passed(self) -> bool:
        """No alarm."""
        drifts = self.p_drift < ALPHA and abs(self.drift) >= NEGLIGIBLE
        return not drifts and not (self.p_head < ALPHA and abs(self.head) >= NEGLIGIBLE)


def detect(means: Sequence[float] | Series, counts: Sequence[float] | Series | None = None) -> SteadyState:
    """Whether a run is steady, from its slices' mean responses and, where given, their numbers of replies.

    Slices must be in time order and all have a mean: leave out one without replies, from both. ValueError for under 20
    slices, for series of different lengths, and for a mean that is no finite number.
    """
    series = [np.asarray(one, np.float64) for one in (means, counts) if one is not None]
    slices = len(series[0])
    if slices < SLICES_MIN:
        raise ValueError(f"{slices} slices, needed: {SLICES_MIN}")
    if any(len(one) != slices or not np.isfinite(one).all() for one in series):
        raise ValueError("slices without a finite mean, or as many counts")
    pulled_in = [_pulled_in(one) for one in series]
    first = 0
    tested = [_tested(one) for one in pulled_in]
    if not all(one.passed for one in tested):
        first = max(truncation(one) for one, test in zip(pulled_in, tested, strict=True) if not test.passed)
        tested = [_tested(one[first:]) for one in pulled_in]
    steady = all(one.passed for one in tested) and (first < slices // 2)
    worst = max(tested, key=lambda one: abs(one.drift))
    p_drift, p_head = min(one.p_drift for one in tested), min(one.p_head for one in tested)
    return SteadyState(steady, first, slices, worst.drift, p_drift, p_head)


def truncation(series: Sequence[float] | Series) -> int:
    """The MSER rule's cut: how many of the first values to leave out, up to half of them.

    It minimises the squared standard error of the mean of what is left, as if that were independent.
    """
    values = np.asarray(series, np.float64)
    left = np.arange(len(values), 0, -1)
    centred = values - values.mean()  # so that the difference of squares below keeps its digits
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    errors = (squares - sums**2 / left) / left.astype(np.float64) ** 2
    return int(np.argmin(errors[: len(values) // 2 + 1]))


def tenths(means: Sequence[float] | Series) -> Series:
    """A run's slices in ten batches ÷ their mean; what is left over is left out at the start. ValueError for under 20
    slices, or a mean that is not over 0."""
    values = np.asarray(means, np.float64)
    if len(values) < SLICES_MIN:
        raise ValueError(f"{len(values)} slices, needed: {SLICES_MIN}")
    batches = _batches(values)
    mean = float(batches.mean())
    if not mean > 0:
        raise ValueError(f"a run whose slices' mean is {mean:g}, not over 0")
    shares: Series = batches / mean
    return shares


def arm_is_steady(runs: Sequence[Sequence[float] | Series] | Series) -> bool:
    """Whether runs of one setting, each as its ``tenths``, together show neither a drift nor a head.

    The tests are made on the medians over the runs: what all runs share, such as a warm-up, stands out, and a pause of
    the machine in one of them does not. ValueError for none, or for what is not ten of each.
    """
    shares = np.asarray(runs, np.float64)
    if shares.ndim != 2 or not len(shares) or shares.shape[1] != BATCHES:
        raise ValueError(f"shares of shape {shares.shape}, needed: runs × {BATCHES}")
    return _tested(np.median(shares, axis=0)).passed


def _tested(values: Series) -> _Tested:
    """Both tests on ten batches."""
    batches = _batches(values)
    mean = float(batches.mean())
    if not mean:
        return _Tested(0.0, 1.0, 0.0, 1.0)
    off_mean = batches - mean
    slope = float(_PLACES @ off_mean) / _PLACES_SQUARED
    residuals = off_mean - slope * _PLACES
    slope_error = math.sqrt(float(residuals @ residuals) / (BATCHES - 2) / _PLACES_SQUARED)
    settled = batches[BATCHES // 2 :]
    off = float(batches[0] - settled.mean())
    off_error = float(settled.std(ddof=1)) * math.sqrt(1 + 1 / len(settled))
    return _Tested(
        drift=slope * (BATCHES - 1) / mean,
        p_drift=_two_sided_p(slope, slope_error, BATCHES - 2),
        head=off / mean,
        p_head=_two_sided_p(off, off_error, len(settled) - 1),
    )


def _batches(values: Series) -> Series:
    """The means of ten batches of equal size; what is left over is left out at the start."""
    size = len(values) // BATCHES
    means: Series = values[len(values) - BATCHES * size :].reshape(BATCHES, size).mean(axis=1)
    return means


def _two_sided_p(value: float, error: float, freedom: int) -> float:
    """Of Student's t test that the value is 0."""
    return 2 * float(scipy.special.stdtr(freedom, -abs(value) / error)) if error else float(value == 0)


def _pulled_in(values: Series) -> Series:
    """Single values far from the median, but for the first, no farther than some deviations."""
    middle = float(np.median(values))
    reach = _DEVIATIONS_MAX * _MAD_TO_DEVIATION * float(np.median(np.abs(values - middle)))
    far = np.abs(values - middle) > reach
    single = far.copy()
    single[0] = False
    single[1:] &= ~far[:-1]
    single[:-1] &= ~far[1:]
    return np.where(single, np.clip(values, middle - reach, middle + reach), values) if reach else values
