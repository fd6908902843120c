"""The progress of a sweep: one line that is rewritten on a terminal, a line now and then anywhere else.

The time remaining is the seconds that the runs left are measured for, and for each of them what a run took beyond that
so far, on average.
"""

import time
from collections.abc import Callable, Sequence
from typing import TextIO

from experiments.design import Run, mix_text

PLAIN_EVERY_S = 10.0
"""Between two lines where they cannot be rewritten."""

OVERHEAD_GUESS_S = 0.6
"""What a run takes beyond its phases, before the first has ended: starting and stopping a server and its clients."""


class Progress:
    """Says how far a sweep is, on a stream. One thread's."""

    def __init__(self, stream: TextIO, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock_s = clock_s
        self._rewrites = stream.isatty()
        self._left_s: list[float] = []
        self._done = 0
        self._overhead_s = 0.0
        self._run_began_s = self._said_s = clock_s()

    def began(self, runs: Sequence[Run]) -> None:
        """The runs that are left to do."""
        self._left_s = [_measured_s(run) for run in runs]
        self._run_began_s = self._clock_s()
        self._tell(f"{len(runs)} runs, about {_duration(self.remaining_s())}", force=True)

    def ended(self, run: Run) -> None:
        """One of them has ended, the first of those left."""
        now_s = self._clock_s()
        self._overhead_s += max(0.0, now_s - self._run_began_s - self._left_s.pop(0))
        self._done += 1
        self._run_began_s = now_s
        of = self._done + len(self._left_s)
        last = not self._left_s
        remaining = "done" if last else f"{_duration(self.remaining_s())} left"
        self._tell(f"run {self._done} of {of}, {remaining} · block {run.block}: {describe(run)}", force=last)

    def again(self, run: Run, steal_share: float) -> None:
        """The run under way is done again, since this share of the cores' time was stolen from it."""
        self.say(f"run {self._done + 1} again: {steal_share:.1%} stolen · block {run.block}: {describe(run)}")

    def say(self, text: str) -> None:
        """Something else, on a line of its own."""
        self._stream.write(f"\r\x1b[K{text}\n" if self._rewrites else f"{text}\n")
        self._stream.flush()

    def resumed(self) -> None:
        """What was done since the last run, such as drawing, is no run's time."""
        self._run_began_s = self._clock_s()

    def remaining_s(self) -> float:
        """Seconds until the runs that are left are done, by what runs took so far."""
        overhead_s = self._overhead_s / self._done if self._done else OVERHEAD_GUESS_S
        return sum(self._left_s) + overhead_s * len(self._left_s)

    def close(self) -> None:
        """Ends the line, so that what is printed next has one of its own. May be repeated."""
        if self._rewrites and self._done:
            self._stream.write("\n")
            self._stream.flush()
            self._rewrites = False

    def _tell(self, text: str, force: bool) -> None:
        now_s = self._clock_s()
        if self._rewrites:
            self._stream.write(f"\r\x1b[K{text}")
        elif force or now_s - self._said_s >= PLAIN_EVERY_S:
            self._stream.write(f"{text}\n")
            self._said_s = now_s
        self._stream.flush()


def describe(run: Run) -> str:
    """A run in a few words."""
    setting = run.setting
    clients = "1 client" if setting.clients == 1 else f"{setting.clients} clients"
    rate = "" if setting.rate_hz is None else f", {setting.rate_hz:g}/s"
    return f"{setting.part}, {setting.transport}, {mix_text(setting.mix)}, {clients}{rate}"


def _measured_s(run: Run) -> float:
    return run.setting.warm_up_s + run.setting.duration_s


def _duration(seconds: float) -> str:
    """``75`` → ``1 min 15 s``; hours without seconds."""
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"
