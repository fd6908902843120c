"""The trials of a search for a rate: where it begins, what a trial must show, and what is said of it in the end."""

from datetime import UTC, datetime

import pytest

from clients.load import command
from clients.load.output import Measured
from clients.load.result import LoadResult
from clients.load.search import Found, Trial
from clients.load.thresholds import parse
from tests.unit.clients.reports import OPEN, open_run

LATE = (
    "requests were sent late: the client may be too slow (give it --clients, or --cpus of its own), "
    "or the server had no room for more calls (--connections-per-client)"
)


def judged(result: LoadResult) -> Trial:
    """What a trial shows, of which no more is asked than a p99 of a minute."""
    return command._judged(1000.0, Measured(OPEN, result, None, datetime.now(UTC)), [parse("p99>60s")])


def test_a_search_begins_where_a_percentile_can_be_told() -> None:
    """In a trial of 2 s, at 600/s for a p99, and at 6,000/s where a p99.9 must be kept too."""
    limits = [parse("p99>1ms")]
    assert command.lowest_rate_hz(limits, 2.0) == pytest.approx(600)
    assert command.lowest_rate_hz([*limits, parse("p99.9>1ms")], 2.0) == pytest.approx(6000)
    assert command.lowest_rate_hz(limits, 1000.0) == 10


def test_a_trial_that_kept_its_limits_and_kept_up_passes() -> None:
    """With replies that took a while, nearly all of which came in the window."""
    trial = judged(open_run(times_us=(15_000,)))
    assert (trial.kept, trial.late_sends, trial.said) == (True, False, "p99 15.0 ms, kept")


def test_a_trial_that_fell_behind_fails_whatever_its_percentiles_are() -> None:
    """Replies that take 0.1 s of a window of 2 s: a twentieth is missing at its end."""
    trial = judged(open_run(times_us=(100_000,)))
    assert (trial.kept, trial.late_sends) == (False, False)
    assert trial.said == "p99 100 ms, 1,900 replies in time, of 2,000 due"


def test_a_trial_whose_sends_were_late_fails_and_says_so() -> None:
    """Whoever it was that made them late."""
    trial = judged(open_run(times_us=(900,), late_us=600))
    assert (trial.kept, trial.late_sends, trial.said) == (False, True, "p99 900 µs, kept, sent late")


@pytest.mark.parametrize(
    ("rate_hz", "late", "said"),
    [
        (5000.0, False, "highest rate with a p99 of at most 20 ms: 5000/s, within 5 %"),
        (5000.0, True, f"highest rate with a p99 of at most 20 ms: 5000/s, within 5 %; above it {LATE}"),
        (None, False, "no rate from 600/s on was shown to keep a p99 of 20 ms"),
        (None, True, f"no rate from 600/s on was shown to keep a p99 of 20 ms; there {LATE}"),
    ],
)
def test_a_search_says_what_may_have_been_the_limit(rate_hz: float | None, late: bool, said: str) -> None:
    """Where sends were late it may be the client, or what the server takes at a time: both are named."""
    assert command._conclusion(Found(rate_hz, (), late), 600.0, 20.0) == said
