"""Real-time priority, and the test for the right to it."""

import os

import pytest

from clients.load.run import priority

linux = pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="this system has no such priority")


@linux
def test_to_look_whether_it_is_allowed_changes_nothing() -> None:
    """After the test for the right, the thread is scheduled as before."""
    before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    priority.allowed()
    assert (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) == before


@linux
@pytest.mark.skipif(not priority.allowed(), reason="no right to real-time priority here: run as root")
def test_a_signal_while_it_looks_leaves_the_thread_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a Ctrl-C during the test, the thread is scheduled as before."""
    take = priority.take_real_time

    def take_and_hear() -> None:
        take()
        raise KeyboardInterrupt

    monkeypatch.setattr(priority, "take_real_time", take_and_hear)
    with pytest.raises(KeyboardInterrupt):
        priority.allowed()
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@linux
def test_who_has_no_right_to_it_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real-time priority is not allowed if the kernel refuses, or if the system has no such call."""

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refused)
    assert not priority.allowed()
    monkeypatch.delattr(os, "sched_setscheduler")
    assert not priority.allowed()
