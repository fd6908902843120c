"""Judgement of a load by its length: answers and memory."""

from tests.reliability import steady
from tests.reliability.promises import excused


def test_a_run_of_minutes_allows_no_failure() -> None:
    """A run of minutes allows no failure, and no run without requests. A run of seconds allows one failure in a
    thousand."""
    tried = [(20.0, 0), (20.0, 1), (steady.SOAK_S, 1), (2.0, 1), (2.0, 11)]
    rows = [steady.answers("sockets", 10_000, failed, duration_s) for duration_s, failed in tried]
    assert [row.passed for row in rows] == [True, False, False, True, False]
    assert not steady.answers("sockets", 0, 0, 20.0).passed


def test_a_run_of_seconds_says_that_it_does_not_judge_the_memory() -> None:
    """A run of seconds does not judge the growth of memory. A longer run judges what a request leaves behind."""
    (row,) = steady.grown("sockets", (900.0, 901.0), 10_000, 2.0)
    assert row.states
    assert row.figure == "not judged: 2 s are too short"
    slope_of_8_bytes = 8 * 400_000 / 2**20 / 25 * 60
    assert [row.passed for row in steady.grown("sockets", (slope_of_8_bytes,) * 2, 400_000, 20.0)] == [False, False]


def test_only_a_load_too_short_for_a_slope_is_excused_from_it() -> None:
    """A soak is judged by its slope, and no load is excused from it."""
    slopes, lengths_s = ((5.0, 6.0), (11.0, 12.0)), (20.0, steady.SOAK_S)
    rows = [steady.grown("sockets", slope, 400_000, length_s)[0] for slope in slopes for length_s in lengths_s]
    assert [row.passed for row in rows] == [False] * 4
    assert [excused(row) for row in rows] == [True, False, False, False]
