"""Real-time priority: who may have it."""

import os

import pytest

from clients.load import priority


def test_to_look_whether_it_is_allowed_changes_nothing() -> None:
    """The thread that looked is scheduled as before."""
    before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    assert priority.allowed() in (True, False)
    assert (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) == before


def test_who_has_no_right_to_it_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel refuses, and where it knows no such call."""

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refused)
    assert not priority.allowed()
    monkeypatch.delattr(os, "sched_setscheduler")
    assert not priority.allowed()
