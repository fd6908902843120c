"""A sweep from its first block to its judgement: the runner is told by the judge whether to go on.

What ``compare`` and ``run`` share. Nothing else joins measuring and judging.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.design.sweep import Slices, Sweep
from experiments.judge.ratios import is_robbed_block
from experiments.judge.verdicts import Judgement, judge
from experiments.measure import block, windows
from experiments.measure.bench import Bench
from experiments.measure.progress import Progress
from experiments.measure.runner import Asked, run_sweep
from experiments.results import files
from experiments.results.observed import Block

Seen = Callable[[Judgement], str]
"""What the blocks so far show, in a few words and without a verdict."""


def measured(sweep: Sweep, on: Bench, folder: Path, progress: Progress, seen: Seen, resume: bool = False) -> Judgement:
    """Measures until the headline comparisons are decided, or the last look; the blocks are kept in the folder.

    Blocks. Raises UsageError, ProgramFailed, a Fault of connecting, OSError; KeyboardInterrupt after Ctrl-C, with every
    whole block kept.
    """

    def measure(number: int, attempt: int) -> Block:
        how = block.measure if isinstance(sweep.turns, Slices) else windows.measure
        return how(sweep, number, attempt, on, progress.within)

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


def kept(folder: Path) -> Judgement:
    """What a folder holds, judged by the limits that it states. Raises UsageError."""
    return judge(files.read_sweep(folder), files.counting(files.read_blocks(folder)))
