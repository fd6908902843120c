"""Progress of a sweep, on a terminal and in a file."""

import io

from experiments.measure.progress import Progress
from tests.unit.experiments.judge.synthetic_blocks import sweep

SWEEP = sweep(looks=(10, 14))


class Terminal(io.StringIO):
    """A terminal that keeps its text."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("it has no width")


def test_elsewhere_than_on_a_terminal_the_start_is_said_once() -> None:
    """A file has a line before the first block, and a line for each block with the remaining time."""
    said = io.StringIO()
    seconds = iter(range(100))
    progress = Progress(SWEEP, said, clock_s=lambda: next(seconds))
    progress.began(0)
    assert said.getvalue() == "block 1 of 10 to 14: starting\n"
    progress.within(0.5)
    progress.ended(1, "B ÷ A 1.01")
    progress.began(1)
    told = "block 1 done · 9 s left if block 10 decides it, 13 s at most · B ÷ A 1.01\n"
    assert said.getvalue() == f"block 1 of 10 to 14: starting\n{told}"


def test_a_terminal_tells_starting_from_measuring() -> None:
    """A terminal has one line, which is rewritten."""
    said = Terminal()
    progress = Progress(SWEEP, said)
    progress.began(0)
    progress.within(0.25)
    lines = said.getvalue().split("\r\x1b[K")[1:]
    assert lines == ["block 1 of 10 to 14, starting", "block 1 of 10 to 14, 25% of it"]
