"""Synthetic experiments whose true ratio is known: what the statistics are tried on.

An experiment is shaped as the project's own are: blocks, in each of them one run of either arm in random order, each
run made of requests, cut into slices. A family says how the response times of a run come about. In most of them the two
arms differ in shape as well as in mean, so that the log-ratios of runs are not symmetric, which is the harder case:

| family | response times |
|---|---|
| independent | exponential |
| autocorrelated | first-order autoregressive with 0.9, deviation half the mean: 1,600 requests are worth 84 |
| lognormal | σ of the logarithm 1.0 above, 0.5 below |
| Pareto | tail index 2.5 above, 3.5 below: the variance is finite, the third moment above is not |
| bimodal | one in 10 above, one in 20 below, is 20 times as slow as the rest |
| drifting | exponential; the machine slows by up to 20 % from the first run to the last; half of them unsound |
| block effects | exponential; blocks differ (σ 0.3 of the logarithm, shared by both arms), so do runs (σ 0.05) |

In an unsound experiment the arm above also slows by 30 to 60 % within each of its runs: a gate must refuse it.

A ratio is that of the means, above ÷ below. 1,600 requests a run is about the least that the project's quick runs have;
more would bring every family nearer to the normal distribution.

Only the slices' means are kept: 2,000 experiments of 9 blocks take about 1 s a family, and 15 MB. Seeded, pure, numpy;
scipy's filter makes the autoregressive values. Left out: errors, and run-to-run differences but where a family says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import scipy

MEAN_US = 100.0
"""Of the arm below."""

REQUESTS = 1600
SLICES = 50

AUTOREGRESSION = 0.9

_CHUNK = 2**21
"""Requests made at a time: 8 MB."""

_UNSOUND_SHARE = 0.5

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Response times of mean 1, in the shape asked for; the last axis is time within a run."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large an experiment is. ``requests`` must be a multiple of ``slices``."""

    blocks: int = 9
    requests: int = REQUESTS
    """Of a run."""
    slices: int = SLICES


@dataclass(frozen=True, slots=True)
class Family:
    """A way in which response times come about."""

    name: str
    ratio: float
    """True: mean above ÷ mean below."""
    above: Draw
    below: Draw
    drifts: bool = False
    block_deviation: float = 0.0
    """Of the logarithm of a factor that both arms of a block share."""
    run_deviation: float = 0.0
    """Of the logarithm of a factor of each run."""


@dataclass(frozen=True, slots=True)
class Experiments:
    """Experiments of one family."""

    family: Family
    slice_means_us: Doubles
    """By experiment, block, arm (0 above, 1 below) and slice."""
    unsound: npt.NDArray[np.bool_]
    """By experiment: whether a gate must refuse it."""

    @property
    def log_ratios(self) -> Doubles:
        """By experiment and block: the logarithm of run mean above ÷ run mean below."""
        runs = self.slice_means_us.mean(axis=-1)
        ratios: Doubles = np.log(runs[..., 0] / runs[..., 1])
        return ratios


def draw(family: Family, experiments: int, size: Size, rng: np.random.Generator) -> Experiments:
    """So many experiments. ValueError where the requests of a run are no multiple of its slices."""
    if size.requests % size.slices:
        raise ValueError(f"{size.requests} requests in {size.slices} slices, allowed: a multiple")
    means = np.empty((experiments, size.blocks, 2, size.slices))
    unsound = np.zeros(experiments, np.bool_)
    step = max(1, _CHUNK // (size.blocks * size.requests))
    for start in range(0, experiments, step):
        part = slice(start, min(experiments, start + step))
        shape = (part.stop - start, size.blocks, size.slices, size.requests // size.slices)
        for arm, draw_arm in enumerate((family.above, family.below)):
            times = draw_arm(rng, (*shape[:2], size.requests)).reshape(shape)
            means[part, :, arm] = times.mean(axis=-1, dtype=np.float64)
    means[:, :, 0] *= MEAN_US * family.ratio
    means[:, :, 1] *= MEAN_US
    if family.block_deviation:
        means *= rng.lognormal(0, family.block_deviation, (experiments, size.blocks, 1, 1))
    if family.run_deviation:
        means *= rng.lognormal(0, family.run_deviation, (experiments, size.blocks, 2, 1))
    if family.drifts:
        unsound = rng.random(experiments) < _UNSOUND_SHARE
        _drift(means, unsound, rng)
    return Experiments(family, means, unsound)


def _drift(means: Doubles, unsound: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Slows the machine from run to run, and within the runs of the arm above where an experiment is to be unsound."""
    experiments, blocks, _, slices = means.shape
    second = rng.integers(0, 2, (experiments, blocks, 1))  # which arm of a block is run second
    place = 2 * np.arange(blocks)[:, None] + (np.arange(2) == second)
    slowing = rng.uniform(0, 0.2, (experiments, 1, 1)) * place / (2 * blocks - 1)
    means *= 1 + slowing[..., None]
    within = rng.uniform(0.3, 0.6, (experiments, 1, 1)) * unsound[:, None, None]
    means[:, :, 0] *= 1 + within * np.arange(slices) / slices


# ---- response times of mean 1


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Independent, deviation 1."""
    return rng.standard_exponential(shape, dtype=np.float32)


def autoregressive(
    rng: np.random.Generator, shape: tuple[int, ...], correlation: float = AUTOREGRESSION, deviation: float = 0.5
) -> Floats:
    """Each is its predecessor's deviation times the correlation, and something new; normal, in their steady state."""
    new = rng.standard_normal(shape, dtype=np.float32)
    new[..., 1:] *= np.float32(np.sqrt(1 - correlation**2))  # the first stands for all that went before
    filtered = scipy.signal.lfilter(np.ones(1, np.float32), np.array([1, -correlation], np.float32), new, axis=-1)
    return np.asarray(1 + np.float32(deviation) * filtered, np.float32)


def lognormal(sigma: float, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Independent; ``sigma`` is the deviation of the logarithm."""
    logarithms = np.float32(sigma) * rng.standard_normal(shape, dtype=np.float32) - np.float32(sigma**2 / 2)
    return np.asarray(np.exp(logarithms))


def pareto(tail: float, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Independent, over a least value; the tail index must be over 2 for the variance to be finite."""
    power = np.exp(rng.standard_exponential(shape, dtype=np.float32) / np.float32(tail))
    return np.asarray(power * np.float32((tail - 1) / tail))


def bimodal(slow_share: float, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Independent; that share is 20 times as slow as the rest."""
    fast = 1 / (1 + 19 * slow_share)
    return np.where(rng.random(shape, dtype=np.float32) < slow_share, np.float32(20 * fast), np.float32(fast))


FAMILIES = (
    Family("independent", 1.0, exponential, exponential),
    Family("autocorrelated", 1.1, autoregressive, autoregressive),
    Family("lognormal", 0.9, partial(lognormal, 1.0), partial(lognormal, 0.5)),
    Family("Pareto", 1.3, partial(pareto, 2.5), partial(pareto, 3.5)),
    Family("bimodal", 0.7, partial(bimodal, 0.10), partial(bimodal, 0.05)),
    Family("drifting", 1.1, exponential, exponential, drifts=True),
    Family("block effects", 1.05, exponential, exponential, block_deviation=0.3, run_deviation=0.05),
)
