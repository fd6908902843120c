"""Progress of a sweep on standard error. A terminal shows one rewritten line. A file gets a line for each block.

The first line is printed before the first server starts, since all servers need seconds to start.

A look is a number of blocks after which the sweep is judged. The remaining time is the number of remaining blocks times
the mean duration of the finished blocks. Two remaining times are shown: until the next look, after which the sweep may
end, and until the last look. No remaining time is shown before the end of the first block.
"""

import os
import time
from collections.abc import Callable
from typing import TextIO

from experiments.design.sweep import Sweep


class Progress:
    """Display of a sweep's progress. For one thread."""

    def __init__(
        self, sweep: Sweep, stream: TextIO, after_s: float = 0.0, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepares the display. ``after_s`` is the estimated time of the measurements after the sweep, in seconds. The
        shown remaining time includes ``after_s``."""
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
        """Shows the start of a block. ``done`` is the number of finished blocks."""
        self._done, self._began_s = done, self._clock_s()
        if self._rewrites:
            self._write(f"{self._place()}, starting{self._left(0.0)}{self._seen}")
        elif not self._measured:
            self.say(f"{self._place()}: starting")

    def within(self, share: float) -> None:
        """Shows the finished share of the present block, from 0 to 1, on a terminal. A file gets no line."""
        if self._rewrites:
            self._write(f"{self._place()}, {share:.0%} of it{self._left(share)}{self._seen}")

    def ended(self, done: int, seen: str) -> None:
        """Shows the end of a block. ``seen`` is a short text about the result of the blocks so far."""
        self._spent_s += self._clock_s() - self._began_s
        self._measured += 1
        self._done, self._seen = done, f" · {seen}" if seen else ""
        if not self._rewrites:
            left = "" if done in self._sweep.looks else self._left(0.0)
            self._stream.write(f"block {done} done{left}{self._seen}\n")
            self._stream.flush()

    def say(self, text: str) -> None:
        """Prints a text on its own line. Later progress does not overwrite this line."""
        self._stream.write(f"\r\x1b[K{text}\n" if self._rewrites else f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Clears the line of progress on a terminal. Does nothing for a file."""
        if self._rewrites:
            self._write("")

    def _place(self) -> str:
        first, last = self._sweep.looks[0], self._sweep.looks[-1]
        of = f"{last}" if first == last else f"{first} to {last}"
        return f"block {self._done + 1} of {of}"

    def _left(self, share: float) -> str:
        """Text of the remaining times: until the next look, and until the last look. Empty before the end of the first
        block."""
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
    """Text of a duration, in seconds or in minutes: ``45 s`` or ``2:05 min``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return 80
