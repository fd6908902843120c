"""A sweep from its first block to its judgement: the runner is told by the judge whether to go on.

What ``compare`` and ``run`` share. Nothing else joins measuring and judging.
"""

import random
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from experiments.design.sweep import Slices, Sweep, Windows
from experiments.judge.ratios import is_robbed_block
from experiments.judge.verdicts import Judgement, judge
from experiments.measure.bench import Bench
from experiments.measure.progress import Progress
from experiments.measure.runner import Asked, run_sweep
from experiments.results import files
from experiments.results.observed import Block
from stock_service.rpc.process.command_line import Parser, integer

Seen = Callable[[Judgement], str]
"""What the blocks so far show, in a few words and without a verdict."""

OBSERVERS = {Slices: "experiments.measure.slices", Windows: "experiments.measure.windows"}
"""Module that observes a block, by the turns of a sweep. Only the one that is asked for is loaded."""

SEEDS = 1_000_000
"""A seed is drawn from so many: short enough to be typed."""


def add_seed(parser: Parser) -> None:
    """The option that repeats what was drawn."""
    drawn = "draws cores, requests, and the order of starts and slices (default: drawn anew for each run, and said)"
    parser.add_argument("--seed", type=integer(0, 2**31 - 1), metavar="N", help=drawn)


def seed_for(given: int | None, begun: Path | None = None) -> int:
    """The seed that was given; else that of the sweep in a folder that was begun; else one drawn anew, which is said.

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
    """Measures until the headline comparisons are decided, or the last look; the blocks are kept in the folder.

    Blocks. Raises UsageError, ProgramFailed, a Fault of connecting, OSError; KeyboardInterrupt after Ctrl-C, with every
    whole block kept.
    """

    observe = import_module(OBSERVERS[type(sweep.turns)]).measure

    def measure(number: int, attempt: int) -> Block:
        block: Block = observe(sweep, number, attempt, on, progress.within)
        return block

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
