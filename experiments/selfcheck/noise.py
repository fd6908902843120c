"""Noise for synthetic experiments. The noise is resampled from the A/A pairs of one of the project's recordings.

An A/A pair is two equal arms; an arm is a server under a load. The log-ratio of a pair of slices of equal arms is
noise. A family is a model of the order and the size of this noise on real machines. The two arms of an A/A pair could
be exchanged, so the sign of a drawn value is random: + or − with equal probability.

| family | drawn values |
|---|---|
| independent | pairs, one by one, from all blocks |
| autocorrelated | sequences of 10 neighbouring pairs |
| lognormal | pairs, each larger or smaller by a lognormal factor (σ 0.7 of the logarithm) |
| one-sided outliers | pairs; in one of 10 pairs a pause lengthens one slice, in 4 of 5 cases the first arm's slice¹ |
| drifting | pairs; their noise doubles or halves over the experiment, and the machine slows from slice to slice |
| block effects | blocks, each with its own offset and spread; the pairs of a block are resampled within the block |

¹ In half of the cases if both arms must have equally distributed noise.

Left out: times of single requests, since a comparison uses only means of slices. Equal seeds give equal noise. All
functions except ``recorded`` are pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.judge import ratios
from experiments.results import files
from stock_service.rpc.errors import UsageError

Numbers = npt.NDArray[np.float64]

Source = Sequence[Numbers]
"""Log-ratios of the pairs of one A/A comparison: an array for each block, in the order of the measurement."""

NEIGHBOURS = 10
"""Number of neighbouring pairs in a sequence of autocorrelated noise."""

PAUSED_SHARE, PAUSED_ABOVE = 0.1, 0.8
"""``PAUSED_SHARE``: share of the pairs with a pause. ``PAUSED_ABOVE``: share of these pauses that are in the first
arm's slice, if the arms need not be equal."""

BLOCKS_MIN = 5
"""Smallest number of blocks of a comparison that is used as a source. With fewer blocks, a source shows too little of
the differences between blocks."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Amount of noise to be drawn."""

    experiments: int
    blocks: int
    pairs: int
    """Number of pairs in a block."""
    equal: bool = True
    """True if both arms must have equally distributed noise."""

    @property
    def whole(self) -> tuple[int, int, int]:
        """Lengths of the three axes of an array of this noise: experiments, blocks, pairs."""
        return self.experiments, self.blocks, self.pairs


Draw = Callable[[Source, Shape, np.random.Generator], Numbers]
"""Function that draws an array of log-ratios, whose axes are experiments, blocks and pairs."""


def recorded(folder: Path) -> list[Source]:
    """Sources of a recording, one for each A/A comparison. A block needs more than ``NEIGHBOURS`` pairs, and a
    comparison needs at least ``BLOCKS_MIN`` such blocks. All other blocks and comparisons are left out. Raises
    UsageError for a folder without a source."""
    sweep, blocks = files.read_sweep(folder), files.counting(files.read_blocks(folder))
    found: list[Source] = []
    for comparison in sweep.comparisons:
        if comparison.kind == "same" and comparison.measure == "response":
            seen = [ratios.pair_log_ratios(sweep, block, comparison)[0] for block in blocks]
            whole = [each for each in seen if len(each) > NEIGHBOURS]
            found += [whole] if len(whole) >= BLOCKS_MIN else []
    if not found:
        raise UsageError(str(folder), "no A/A pair", f"a recording of {BLOCKS_MIN} blocks or more that has one")
    return found


def independent(source: Source, shape: Shape, rng: np.random.Generator) -> Numbers:
    """Draws noise of the family *independent* (table in the module's docstring)."""
    return rng.choice(np.concatenate(list(source)), shape.whole) * _signs(rng, shape.whole)


def autocorrelated(source: Source, shape: Shape, rng: np.random.Generator) -> Numbers:
    """Draws noise of the family *autocorrelated* (table in the module's docstring)."""
    runs = np.concatenate([np.lib.stride_tricks.sliding_window_view(block, NEIGHBOURS) for block in source])
    number = -(-shape.pairs // NEIGHBOURS)
    drawn: Numbers = runs[rng.integers(0, len(runs), (shape.experiments, shape.blocks, number))]
    signed: Numbers = drawn * _signs(rng, (shape.experiments, shape.blocks, number, 1))
    return signed.reshape(shape.experiments, shape.blocks, -1)[..., : shape.pairs]


def lognormal(source: Source, shape: Shape, rng: np.random.Generator) -> Numbers:
    """Draws noise of the family *lognormal* (table in the module's docstring)."""
    return independent(source, shape, rng) * rng.lognormal(0, 0.7, shape.whole)


def outliers(source: Source, shape: Shape, rng: np.random.Generator) -> Numbers:
    """Draws noise of the family *one-sided outliers* (table in the module's docstring)."""
    paused = np.log1p(rng.exponential(1.0, shape.whole)) * (rng.random(shape.whole) < PAUSED_SHARE)
    above = rng.random(shape.whole) < (0.5 if shape.equal else PAUSED_ABOVE)
    return independent(source, shape, rng) + np.where(above, paused, -paused)


def drifting(source: Source, shape: Shape, rng: np.random.Generator) -> Numbers:
    """Draws noise of the family *drifting* (table in the module's docstring).

    The machine becomes slower between the two slices of a pair, so the later slice is longer. The order of the two
    slices decides if the ratio rises or falls.
    """
    growth = np.linspace(-0.5, 0.5, shape.blocks)[None, :, None] * _signs(rng, (shape.experiments, 1, 1))
    slowing = rng.uniform(0, 0.01, (shape.experiments, 1, 1)) * _signs(rng, shape.whole)
    scale: Numbers = np.exp2(growth)
    return independent(source, shape, rng) * scale + slowing


def block_effects(source: Source, shape: Shape, rng: np.random.Generator) -> Numbers:
    """Draws noise of the family *block effects* (table in the module's docstring)."""
    drawn = np.empty(shape.whole)
    chosen = rng.integers(0, len(source), shape.whole[:2])
    for place, block in enumerate(source):
        of_block = chosen == place
        drawn[of_block] = rng.choice(block, (int(of_block.sum()), shape.pairs))
    return drawn * _signs(rng, (*shape.whole[:2], 1))


FAMILIES: dict[str, Draw] = {
    "independent": independent,
    "autocorrelated": autocorrelated,
    "lognormal": lognormal,
    "one-sided outliers": outliers,
    "drifting": drifting,
    "block effects": block_effects,
}


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    signs: Numbers = rng.choice(np.array([-1.0, 1.0]), shape)
    return signs
