"""Progress: the time remaining for the whole sweep, on a terminal and elsewhere."""

import io

from experiments.design import Run, Setting
from experiments.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def runs(*measured_s: float) -> list[Run]:
    """Runs of so many seconds of measuring each."""
    return [Run(f"001-{n}", 1, n, n, Setting("idle", 0.0, seconds)) for n, seconds in enumerate(measured_s, start=1)]


def test_the_time_remaining_is_what_is_left_to_measure_and_what_runs_took_beyond() -> None:
    """Two runs took 1.5 s beyond the second that they measured; a long run and a short one are left."""
    clock, planned = Clock(), runs(1, 1, 60, 1)
    progress = Progress(io.StringIO(), clock)
    progress.began(planned)
    for run in planned[:2]:
        clock.now_s += 2.5
        progress.ended(run)
    assert progress.remaining_s() == 61 + 2 * 1.5


def test_drawing_between_blocks_is_no_runs_time() -> None:
    """Three seconds of figures after the first run do not lengthen the forecast."""
    clock, planned = Clock(), runs(1, 1, 1)
    progress = Progress(io.StringIO(), clock)
    progress.began(planned)
    clock.now_s += 1.5
    progress.ended(planned[0])
    clock.now_s += 3
    progress.resumed()
    clock.now_s += 1.5
    progress.ended(planned[1])
    assert progress.remaining_s() == 1.5


def test_a_run_that_is_done_again_is_named_with_what_was_stolen() -> None:
    """On a line of its own; its time is that of the run."""
    clock, planned, stream = Clock(), runs(1, 1), io.StringIO()
    progress = Progress(stream, clock)
    progress.began(planned)
    clock.now_s += 1.5
    progress.again(planned[0], 0.0314)
    clock.now_s += 1.5
    progress.ended(planned[0])
    assert "run 1 again: 3.1% stolen · block 1: idle" in stream.getvalue()
    assert progress.remaining_s() == 1 + 2


def test_a_terminal_has_one_line_that_is_rewritten() -> None:
    """Every run rewrites it; the line ends once, when the sweep does."""
    clock, planned, stream = Clock(), runs(1, 1), Terminal()
    progress = Progress(stream, clock)
    progress.began(planned)
    for run in planned:
        clock.now_s += 90
        progress.ended(run)
    progress.close()
    progress.close()
    progress.say("figures")
    assert stream.getvalue().count("\n") == 2
    assert "\r\x1b[Krun 1 of 2, 1 min 30 s left" in stream.getvalue()
    assert "run 2 of 2, done" in stream.getvalue()


def test_elsewhere_there_is_a_plain_line_now_and_then() -> None:
    """The first, one in ten seconds, and the last."""
    clock, planned, stream = Clock(), runs(*[1] * 30), io.StringIO()
    progress = Progress(stream, clock)
    progress.began(planned)
    for run in planned:
        clock.now_s += 2
        progress.ended(run)
    progress.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "30 runs, about 48 s"
    assert [line.split(",")[0] for line in lines[1:]] == [f"run {n} of 30" for n in (5, 10, 15, 20, 25, 30)]
    assert "\x1b" not in stream.getvalue()
