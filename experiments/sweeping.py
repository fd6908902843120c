"""A sweep from its first block to its judgement. After each look the judge decides whether further blocks are measured.

A sweep is a measurement in blocks. A look is a number of blocks after which the sweep is judged. The commands
``compare`` and ``run`` use this module. No other module calls both the measurement and the judge.
"""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.design.sweep import Sweep
from experiments.judge.ratios import is_robbed_block
from experiments.judge.verdicts import Judgement, judge
from experiments.measure.bench import Bench
from experiments.measure.progress import Progress
from experiments.measure.runner import Asked, measure_block, run_sweep
from experiments.results import files
from experiments.results.observed import Block
from stock_service.rpc.process.command_line import Parser, integer

Seen = Callable[[Judgement], str]
"""Function that describes the result of the blocks so far in a few words, without a verdict."""

SEEDS = 1_000_000
"""Number of seeds from which a seed is drawn. The number is small, so a drawn seed is easy to type."""


def add_seed(parser: Parser) -> None:
    """Adds the option ``--seed``, which repeats the random draws of an earlier run."""
    drawn = "draws cores, requests, and the order of starts and slices (default: a new seed each run, printed)"
    parser.add_argument("--seed", type=integer(0, 2**31 - 1), metavar="N", help=drawn)


def seed_for(given: int | None, begun: Path | None = None) -> int:
    """Returns the seed ``given``. If ``given`` is None, returns the seed of a sweep in the folder ``begun``. If there
    is no such sweep, draws a new random seed, and prints the seed.

    Raises UsageError for a folder that cannot be read.
    """
    if given is not None:
        return given
    if begun is not None and (swept := sorted(begun.rglob(files.SWEEP_FILE))):
        return files.read_sweep(swept[0].parent).seed
    seed = random.SystemRandom().randrange(SEEDS)
    print(f"Seed {seed}: `--seed {seed}` draws the same cores and the same order again.", file=sys.stderr, flush=True)
    return seed


def measured(sweep: Sweep, on: Bench, folder: Path, progress: Progress, seen: Seen, resume: bool = False) -> Judgement:
    """Measures until the headline comparisons are decided at a look, or until the last look. Blocks for minutes.

    Writes each whole block into the folder. A written block stays in the folder after an error or Ctrl-C. With
    ``resume``, continues the sweep in the folder. Raises UsageError, ProgramFailed, a Fault of connecting, OSError, and
    KeyboardInterrupt after Ctrl-C.
    """

    def measure(number: int, attempt: int) -> Block:
        return measure_block(sweep, number, attempt, on, progress.within)

    def ended(done: Sequence[Block]) -> None:
        progress.ended(len(done), seen(judge(sweep, done)))

    asked = Asked(
        goes_on=lambda done: not judge(sweep, done).decided,
        is_robbed=lambda each: is_robbed_block(sweep.limits, each),
        began=progress.began,
        ended=ended,
        again=lambda each: progress.say(f"block {each.number} is run again: most of its rounds lost time to others"),
    )
    try:
        return judge(sweep, run_sweep(sweep, folder, resume, measure, asked))
    finally:
        progress.clear()
