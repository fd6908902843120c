"""The search for the highest rate, with simulated servers."""

from collections.abc import Callable

import pytest

from clients.load.run.search import STEP, TRIALS_MAX, Found, Trial, find_rate


def searched(
    keeps: Callable[[float], bool],
    first_hz: float = 10.0,
    high_hz: float = 1e6,
    late_over_hz: float = float("inf"),
    least_hz: float = 10.0,
) -> Found:
    """A search on a server that keeps the limit at some rates, with sends that are late over some rate."""

    def trial(rate_hz: float) -> Trial:
        late = rate_hz > late_over_hz
        return Trial(rate_hz, keeps(rate_hz) and not late, "", late)

    return find_rate(trial, least_hz, first_hz, high_hz)


@pytest.mark.parametrize(
    ("knee_hz", "first_hz"),
    [
        *((knee_hz, 10.0) for knee_hz in (10.0, 11.0, 639.9, 640.0, 641.0, 1234.5, 99_999.0, 999_999.0)),
        *((knee_hz, 600.0) for knee_hz in (38.0, 75.0, 100.0, 599.0)),
    ],
)
def test_the_knee_is_found_within_a_step(knee_hz: float, first_hz: float) -> None:
    """The search finds the knee within a step, above the first rate and below. The found rate passed twice."""
    found = searched(lambda rate_hz: rate_hz <= knee_hz, first_hz, least_hz=first_hz / 16 if first_hz > 10 else 10.0)
    assert found.rate_hz is not None
    assert found.rate_hz <= knee_hz <= found.rate_hz * STEP * 1.0001
    assert [trial.kept for trial in found.trials if trial.rate_hz == found.rate_hz] == [True, True]
    assert not found.late_sends
    assert len(found.trials) <= 26


def test_a_server_that_keeps_no_rate_has_none() -> None:
    """For a server that keeps no rate, no rate is found. Each trial has half the rate of the trial before, down to the
    least rate."""
    found = searched(lambda _: False)
    assert (found.rate_hz, len(found.trials), found.late_sends) == (None, 1, False)
    found = searched(lambda _: False, first_hz=600, least_hz=100)
    assert [trial.rate_hz for trial in found.trials] == [600, 300, 150, 100]
    assert (found.rate_hz, found.late_sends) == (None, False)


def test_a_trial_that_was_sent_late_is_repeated_once() -> None:
    """A trial with late sends is repeated once. If the second is in time its verdict counts; else the rate has failed.
    A passed trial is not repeated."""
    seen: list[float] = []

    def trial(rate_hz: float) -> Trial:
        seen.append(rate_hz)
        late = len(seen) == 1 or rate_hz > 30
        return Trial(rate_hz, not late and rate_hz <= 30, "", late)

    found = find_rate(trial, 10.0, 10.0, 1e6)
    assert seen[:5] == [10, 10, 20, 40, 40]
    assert found.rate_hz is not None
    assert 20 <= found.rate_hz <= 30
    assert [tried.rate_hz for tried in found.trials] == seen


def test_a_server_that_keeps_every_rate_has_the_highest_tried() -> None:
    """For a server that keeps every rate, the bound is found. No rate above the bound is tried."""
    found = searched(lambda _: True, first_hz=10, high_hz=100)
    assert found.rate_hz == 100
    assert [trial.rate_hz for trial in found.trials] == [10, 20, 40, 80, 100, 100]


def test_late_sends_are_told_apart_from_slow_replies() -> None:
    """If late sends limited the search, the result says so."""
    found = searched(lambda rate_hz: rate_hz <= 50_000, late_over_hz=1000)
    assert found.rate_hz is not None
    assert 1000 / STEP <= found.rate_hz <= 1000
    assert found.late_sends
    both = searched(lambda rate_hz: rate_hz <= 500, late_over_hz=1000)
    assert both.rate_hz is not None
    assert both.rate_hz <= 500
    assert not both.late_sends


def test_what_passed_once_by_luck_must_pass_again() -> None:
    """If the second trial of a rate fails, the next rate is a step lower, and must also pass twice."""
    seen: list[float] = []

    def lucky(rate_hz: float) -> bool:
        seen.append(rate_hz)
        return rate_hz <= 500 or (rate_hz <= 700 and seen.count(rate_hz) == 1)

    found = searched(lucky)
    assert found.rate_hz is not None
    assert found.rate_hz <= 500
    assert found.rate_hz * STEP**8 > 600


def test_a_search_ends_whatever_the_server_does() -> None:
    """A search is bounded for a server that keeps a limit by turns. A rate that did not pass twice is not given."""
    for late_over_hz in (float("inf"), 100.0):
        turns = iter(range(1000))
        found = searched(lambda _, turns=turns: next(turns) % 2 == 0, late_over_hz=late_over_hz)  # type: ignore[misc]
        assert len(found.trials) <= TRIALS_MAX
        if found.rate_hz is not None:
            assert found.trials[-1].kept
