"""The standard library's pool, bounded, and a thread per task: threads come as they are needed, up to a number."""

from threading import Thread, current_thread

import pytest

from stock_service.rpc.concurrency.thread_per_task import ThreadPerTask
from stock_service.rpc.concurrency.thread_pool import ThreadPool
from stock_service.rpc.errors import Overloaded
from tests.conformance.gates import MakeExecutor, execute, occupy, running


def test_there_are_no_more_threads_than_workers() -> None:
    """However many tasks come; the threads have the pool's name."""
    threads: set[Thread] = set()
    with running(ThreadPool, 2, 50) as (pool, _):
        for _ in range(50):
            execute(pool, lambda: threads.add(current_thread()))
    assert 1 <= len(threads) <= 2
    assert all(thread.name.startswith("thread-pool_") for thread in threads)


def start_none(_: Thread) -> None:
    """The start of a thread where the system gives none."""
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("kind", [ThreadPool, ThreadPerTask])
def test_no_thread_to_be_had_is_overload(kind: MakeExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task for which the system gives no thread is refused and never runs. It takes no room: a later task runs."""
    refused: list[int] = []
    with running(kind, 1, 0) as (executor, gate):
        with monkeypatch.context() as patched:
            patched.setattr(Thread, "start", start_none)
            for _ in range(3):
                with pytest.raises(Overloaded, match="no further thread: can't start new thread"):
                    executor.execute(lambda: refused.append(1))
        executor.execute(gate.stand)
        gate.wait_for(1)
    assert refused == []


def test_a_task_that_got_no_thread_of_its_own_is_run_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library queues a task before it looks for a thread: where there is one, the task is accepted, once."""
    ran: list[int] = []
    with running(ThreadPool, 2, 0) as (pool, gate):
        occupy(pool, gate, 1)
        with monkeypatch.context() as patched:
            patched.setattr(Thread, "start", start_none)
            pool.execute(lambda: ran.append(1))
    assert ran == [1]


def test_every_task_has_a_thread_of_its_own() -> None:
    """No thread runs two tasks, one after the other. Each has a name and is not a daemon."""
    threads: list[Thread] = []
    with running(ThreadPerTask, 1, 0) as (executor, _):
        for _ in range(5):
            execute(executor, lambda: threads.append(current_thread()))
    assert len({id(thread) for thread in threads}) == 5
    assert {thread.name for thread in threads} == {"thread-per-task"}
    assert not any(thread.daemon for thread in threads)
