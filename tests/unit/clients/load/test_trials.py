"""Trials of a search for a rate: the first rate, the criteria of a trial, and the result in words."""

from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clients.load import command
from clients.load.output import Measured
from clients.load.record.result import LoadResult
from clients.load.run.search import Found, Trial
from clients.load.thresholds import parse
from tests.unit.clients.load.reports import OPEN, bad_arrivals, open_run

LATE = (
    "requests were sent late: try more --clients, separate --cpus or a quieter machine; "
    "if the server accepted no more calls, more --connections-per-client"
)

KEPT = "a p99 of at most 20 ms"

NONE = f"no rate was shown to have {KEPT} in 3 trials, from 300/s to 1,200/s"


def judged(result: LoadResult) -> Trial:
    """Judgement of a trial, with a p99 of one minute as the only limit."""
    return command._judged(1000.0, Measured(OPEN, result, None, datetime.now(UTC)), [parse("p99>60s")])


def test_a_search_begins_where_a_percentile_can_be_told() -> None:
    """In a trial of 2 s a search begins at 600/s for a p99, and at 6,000/s for a p99.9."""
    limits = [parse("p99>1ms")]
    assert command.first_rate_hz(limits, 2.0) == pytest.approx(600)
    assert command.first_rate_hz([*limits, parse("p99.9>1ms")], 2.0) == pytest.approx(6000)
    assert command.first_rate_hz(limits, 1000.0) == 10


OFF = {"arrivals": (bad_arrivals(),)}


@pytest.mark.parametrize(
    ("result", "kept", "late", "said"),
    [
        (open_run(times_us=(15_000,)), True, False, "p99 15.0 ms, kept"),
        (open_run(times_us=(100_000,)), False, False, "p99 100 ms, 1,900 replies in time, of 2,000 due"),
        (open_run(times_us=(900,), late_us=600), False, True, "p99 900 µs, kept, sent late"),
        (replace(open_run(), **OFF), True, True, "p99 200 µs, kept, sent off its schedule"),  # type: ignore[arg-type]
        (
            replace(open_run(times_us=(100_000,)), **OFF),  # type: ignore[arg-type]
            False,
            True,
            "p99 100 ms, 1,900 replies in time, of 2,000 due, sent off its schedule",
        ),
        (open_run(count=200), False, False, "p99 –, p99>60s: cannot be told from 200 replies: 1,000 are needed"),
    ],
    ids=["kept", "fell behind", "sent late", "kept off its schedule", "failed off its schedule", "too few replies"],
)
def test_a_trial_passes_that_kept_its_limits_and_kept_up(result: LoadResult, kept: bool, late: bool, said: str) -> None:
    """A trial passes if it kept its limits, kept up with the due requests, and sent in time. A trial off its schedule
    says so. Too few replies show no percentile."""
    trial = judged(result)
    assert (trial.kept, trial.late_sends, trial.said) == (kept, late, said)


@pytest.mark.parametrize(
    ("p99_ms", "said"), [(2.0, "p99 > 2 ms"), (0.001, "p99 > 0.001 ms"), (60_000, "p99 > 60000 ms")]
)
def test_a_limit_is_said_as_it_was_given(p99_ms: float, said: str) -> None:
    """A limit is shown in milliseconds as it was given, without further zeros."""
    limit = command._limits(Namespace(p99_ms=p99_ms, fail_if=None))[0]
    assert limit.text == said
    assert limit.value == pytest.approx(p99_ms * 1000)


@pytest.mark.parametrize(
    ("rate_hz", "late", "said"),
    [
        (5000.0, False, f"highest rate with {KEPT}: 5000/s, within 5 %"),
        (5000.0, True, f"at least 5000/s, limited by the client, with {KEPT}; at higher rates {LATE}"),
        (1e6, False, f"at least 1000000/s, the highest rate that is tried, with {KEPT}"),
        (None, False, f"{NONE}; {command.UNKEPT_WHY}"),
        (None, True, f"limited by the client: {NONE}; {LATE}"),
    ],
)
def test_a_search_says_what_may_have_been_the_limit(rate_hz: float | None, late: bool, said: str) -> None:
    """After late sends the client was the limit, and the found rate is called a lower bound."""
    trials = tuple(Trial(tried_hz, False, "") for tried_hz in (1200.0, 600.0, 300.0))
    assert command._conclusion(Found(rate_hz, trials, late), 20.0) == said
