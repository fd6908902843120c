"""A thread per task: each task has a thread of its own."""

from threading import Thread, current_thread

from stock_service.rpc.concurrency.thread_per_task import ThreadPerTask
from tests.conformance.gates import execute, running


def test_every_task_has_a_thread_of_its_own() -> None:
    """No thread runs two tasks, one after the other. Each has a name and is not a daemon."""
    threads: list[Thread] = []
    with running(ThreadPerTask, 1, 0) as (executor, _):
        for _ in range(5):
            execute(executor, lambda: threads.append(current_thread()))
    assert len({id(thread) for thread in threads}) == 5
    assert {thread.name for thread in threads} == {"thread-per-task"}
    assert not any(thread.daemon for thread in threads)
