"""Tests with the mark ``alone`` wait for other tests, and other tests wait for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.turns import Turns

WAIT_S = 10.0
NOT_YET_S = 0.05
"""Time within which a task without a wait would have begun."""


@pytest.fixture
def processes(tmp_path: Path) -> list[Turns]:
    """Three processes of one run, as the system's locks see them."""
    door, room = tmp_path / "door", tmp_path / "room"
    door.touch()
    room.touch()
    return [Turns(door, room) for _ in range(3)]


@contextmanager
def taking(turns: Turns, alone: bool) -> Iterator[Event]:
    """A test that wants to begin. The event is set when the test has begun. The test ends with the block."""
    begun = Event()

    def test() -> None:
        turns.take(alone)
        begun.set()

    thread = Thread(target=test, name="a-test")
    thread.start()
    try:
        yield begun
    finally:
        thread.join(WAIT_S)
        turns.end()


def test_ordinary_tests_run_side_by_side(processes: list[Turns]) -> None:
    """Any number of ordinary tests run side by side."""
    for each in processes:
        each.take(False)
    for each in processes:
        each.end()


def test_who_is_alone_waits_for_others_and_holds_them_up(processes: list[Turns]) -> None:
    """A later test waits for a waiting test that is alone, even while an earlier test runs."""
    first, alone, later = processes
    first.take(False)
    with taking(alone, True) as alone_begun:
        assert not alone_begun.wait(NOT_YET_S)
        with taking(later, False) as later_begun:
            assert not later_begun.wait(NOT_YET_S)
            first.end()
            assert alone_begun.wait(WAIT_S)
            assert not later_begun.wait(NOT_YET_S)
            alone.end()
            assert later_begun.wait(WAIT_S)


def test_several_that_are_alone_follow_each_other(processes: list[Turns]) -> None:
    """Several tests of one process that are alone follow each other, without other tests in between."""
    alone, other, _ = processes
    alone.take(True)
    with taking(other, False) as begun:
        alone.take(True)
        assert not begun.wait(NOT_YET_S)
        alone.end()
        assert begun.wait(WAIT_S)
