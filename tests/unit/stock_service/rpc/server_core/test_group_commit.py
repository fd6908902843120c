"""Tasks of one batch are settled once, after the last of them. Tasks that are left out count as ended."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.server_core.group_commit import GroupCommit, polling_behind
from stock_service.rpc.waiting import in_one_go
from tests.conformance.running import until

WAIT_S = 10.0


@pytest.mark.parametrize("left_out", range(4))
def test_it_settles_once_behind_the_last(left_out: int) -> None:
    """A batch is settled once after its last task, which ran or was left out."""
    for first in ("tasks", "left out"):
        done: list[str | bool] = []
        group = GroupCommit(3, done.append)
        if first == "left out":
            group.leave_out(left_out)
        for _ in range(3 - left_out):
            group.run(lambda: done.append("task"))  # noqa: B023
        if first == "tasks":
            group.leave_out(left_out)
        assert done == ["task"] * (3 - left_out) + [False]


def test_a_task_that_is_alone_settles_on_its_own_thread() -> None:
    """A task that is alone settles on its own thread, so that no other is woken. Only the reading thread has another
    thread settle, though it ran the task itself: else all others would wait for the disk."""
    settled: list[bool] = []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(GroupCommit(1, settled.append).run, lambda: None).result()
    GroupCommit(1, settled.append).run(lambda: None)
    assert settled == [True, False]


def test_a_task_that_raises_counts_as_ended() -> None:
    """A task that raises counts as ended. The executor gets the exception, and the other tasks are settled."""
    settled: list[bool] = []
    group = GroupCommit(2, settled.append)
    with pytest.raises(ZeroDivisionError):
        group.run(lambda: 1 // 0)
    assert settled == []
    group.run(lambda: None)
    assert settled == [False]


def test_threads_settle_each_batch_once() -> None:
    """Several threads settle each of many batches once."""
    settled: list[int] = []
    pool = StaticPool(4, 1000)
    for batch in range(200):
        group = GroupCommit(7, lambda _, batch=batch: settled.append(batch))  # type: ignore[misc]
        group.leave_out(7 - pool.execute_all([lambda group=group: group.run(int)] * 7))  # type: ignore[misc]
    assert pool.stop(WAIT_S)
    assert sorted(settled) == list(range(200))


@pytest.mark.parametrize("waits", [True, False])
def test_reading_waits_while_requests_go_on(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading waits while requests go on, and then looks again. If they take too long, it reads what there is."""
    monkeypatch.setattr("stock_service.rpc.server_core.group_commit.PAUSE_S", WAIT_S if waits else 0.0)
    polled: list[float | None] = []
    going, over = Event(), Event()

    def poll(timeout_s: float | None, _: int) -> list[tuple[int, int]]:
        polled.append(timeout_s)
        return [(len(polled), 1)]

    def go_on() -> None:
        with in_one_go():
            going.set()
            assert over.wait(WAIT_S)

    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(go_on)
        assert going.wait(WAIT_S)
        read = pool.submit(polling_behind(poll), 5.0, 1)
        if waits:
            until(lambda: polled == [5.0], "it has polled")
            assert not read.done()
        else:
            assert read.result(WAIT_S) == [(1, 1)]
        over.set()
        assert read.result(WAIT_S) == ([(2, 1)] if waits else [(1, 1)])
        held.result(WAIT_S)
    assert polled == ([5.0, 0] if waits else [5.0])
