"""A thread per task: each task has a thread of its own; refusals where the system gives no thread."""

from threading import Thread, current_thread

import pytest

from stock_service.rpc.concurrency.thread_per_task import ThreadPerTask
from stock_service.rpc.errors import Overloaded
from tests.conformance.gates import WAIT_S, execute, running


def test_every_task_has_a_thread_of_its_own() -> None:
    """No thread runs two tasks, one after the other. Each has a name and is not a daemon."""
    threads: list[Thread] = []
    with running(ThreadPerTask, 1, 0) as (executor, _):
        for _ in range(5):
            execute(executor, lambda: threads.append(current_thread()))
    assert len({id(thread) for thread in threads}) == 5
    assert {thread.name for thread in threads} == {"thread-per-task"}
    assert not any(thread.daemon for thread in threads)


def test_a_system_without_threads_is_overloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that cannot be started is Overloaded, and takes no room: the next task is run."""

    def start(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    executor = ThreadPerTask(1, 0)
    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", start)
        for _ in range(3):
            with pytest.raises(Overloaded, match="can't start new thread"):
                executor.execute(lambda: None)
    ran: list[Thread] = []
    executor.execute(lambda: ran.append(current_thread()))
    assert executor.stop(WAIT_S)
    assert len(ran) == 1
