"""Progress of a sweep, on standard error: on a terminal one line that is rewritten, elsewhere a line for each block.

The first line comes before the first server starts, which takes seconds, or longer on a busy machine.

The time left is that of the blocks to come, each as long as the mean block so far: one time if the next look decides,
one at most. Before the first block has ended no time is shown.
"""

import os
import time
from collections.abc import Callable
from typing import TextIO

from experiments.design.sweep import Sweep


class Progress:
    """Shows how far a sweep is. For one thread."""

    def __init__(
        self, sweep: Sweep, stream: TextIO, after_s: float = 0.0, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """``after_s``: duration of the measurements after the sweep."""
        self._sweep = sweep
        self._stream = stream
        self._after_s = after_s
        self._clock_s = clock_s
        self._rewrites = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._done = self._measured = 0
        self._spent_s = 0.0
        self._began_s = clock_s()
        self._seen = ""

    def began(self, done: int) -> None:
        """Notes that a block begins, and the number of blocks done."""
        self._done, self._began_s = done, self._clock_s()
        if self._rewrites:
            self._write(f"{self._place()}, starting servers{self._left(0.0)}{self._seen}")
        elif not self._measured:
            self.say(f"{self._place()}: starting servers")

    def within(self, share: float) -> None:
        """Notes the share of the block that is done."""
        if self._rewrites:
            self._write(f"{self._place()}, {share:.0%} of it{self._left(share)}{self._seen}")

    def ended(self, done: int, seen: str) -> None:
        """Notes that a block has ended. ``seen``: the result of the blocks so far, in a few words."""
        self._spent_s += self._clock_s() - self._began_s
        self._measured += 1
        self._done, self._seen = done, f" · {seen}" if seen else ""
        if not self._rewrites:
            left = "" if done in self._sweep.looks else self._left(0.0)
            self._stream.write(f"block {done} done{left}{self._seen}\n")
            self._stream.flush()

    def say(self, text: str) -> None:
        """Prints other words, on a line of their own."""
        self._stream.write(f"\r\x1b[K{text}\n" if self._rewrites else f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Takes the rewritten line away."""
        if self._rewrites:
            self._write("")

    def _place(self) -> str:
        first, last = self._sweep.looks[0], self._sweep.looks[-1]
        of = f"{last}" if first == last else f"{first} to {last}"
        return f"block {self._done + 1} of {of}"

    def _left(self, share: float) -> str:
        """Words for the time left, if the next look decides and at most."""
        if not self._measured:
            return ""
        each_s = self._spent_s / self._measured
        looks = [look for look in self._sweep.looks if look > self._done]
        if not looks:
            return ""
        next_s, last_s = ((look - self._done - share) * each_s + self._after_s for look in (looks[0], looks[-1]))
        if len(looks) == 1:
            return f" · {duration(max(0.0, next_s))} left"
        return f" · {duration(max(0.0, next_s))} left if block {looks[0]} decides it, {duration(last_s)} at most"

    def _write(self, text: str) -> None:
        wide = _columns(self._stream)
        self._stream.write(f"\r\x1b[K{text[: wide - 1]}")
        self._stream.flush()


def duration(seconds: float) -> str:
    """``45 s`` or ``2:05 min``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return 80
