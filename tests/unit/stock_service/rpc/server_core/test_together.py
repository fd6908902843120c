"""Tasks of one batch are settled once, after the last of them; those that are left out count as ended."""

from collections.abc import Callable

import pytest

from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.errors import Fault, Overloaded, Unavailable
from stock_service.rpc.server_core.together import Together, WaitingTasks

WAIT_S = 10.0


class Here:
    """An executor that calls a task at once, or refuses it."""

    room, waiting = 1, 0

    def __init__(self, refusal: Fault | None = None) -> None:
        self._refusal = refusal

    def execute(self, task: Callable[[], object]) -> None:
        if self._refusal is not None:
            raise self._refusal
        task()

    def execute_all(self, tasks: object) -> int:
        raise NotImplementedError

    def submit(self, task: object) -> object:
        raise NotImplementedError

    def stop(self, grace_s: float) -> bool:
        return True


@pytest.mark.parametrize("left_out", range(4))
def test_it_settles_once_behind_the_last(left_out: int) -> None:
    """Whether the last to end is a task that ran or one that was left out."""
    for first in ("tasks", "left out"):
        done: list[str] = []
        together = Together([lambda: done.append("task")] * 3, lambda: done.append("settled"), Here())  # noqa: B023
        if first == "left out":
            together.leave_out(left_out)
        for task in together.tasks[: 3 - left_out]:
            task()
        if first == "tasks":
            together.leave_out(left_out)
        assert done == ["task"] * (3 - left_out) + ["settled"]


def test_a_task_that_is_alone_settles_on_its_own_thread() -> None:
    """So that no other need be woken."""
    settled: list[None] = []
    together = Together([lambda: None], lambda: settled.append(None), Here(Overloaded("full")))
    together.tasks[0]()
    assert settled == [None]


def test_a_task_that_raises_counts_as_ended() -> None:
    """What it raises is its executor's to see; the others are settled all the same."""
    settled: list[None] = []
    together = Together([lambda: 1 // 0, lambda: None], lambda: settled.append(None), Here())
    with pytest.raises(ZeroDivisionError):
        together.tasks[0]()
    assert settled == []
    together.tasks[1]()
    assert settled == [None]


@pytest.mark.parametrize("refusal", [Overloaded("full"), Unavailable("stopping")])
def test_an_executor_without_room_settles_here(refusal: Fault) -> None:
    """On the thread that ended the last task: else what waits would wait for the next batch."""
    settled: list[None] = []
    together = Together([lambda: None] * 2, lambda: settled.append(None), Here(refusal))
    together.tasks[0]()
    assert settled == []
    together.leave_out(1)
    assert settled == [None]


def test_threads_settle_each_batch_once() -> None:
    """With several threads at a batch, over many batches."""
    settled: list[int] = []
    pool = StaticPool(4, 1000)
    for batch in range(200):
        together = Together([lambda: None] * 7, lambda batch=batch: settled.append(batch), pool)  # type: ignore[misc]
        together.leave_out(7 - pool.execute_all(together.tasks))
    assert pool.stop(WAIT_S)
    assert sorted(settled) == list(range(200))


def test_a_batch_that_finds_no_room_settles_nothing() -> None:
    """None of it was begun; and the thread that gives it away reads all connections."""
    settled: list[str] = []

    class Full(Here):
        def execute_all(self, tasks: object) -> int:
            return 0

    tasks: WaitingTasks[object] = WaitingTasks(lambda *_: None, lambda: settled.append(""), Full(Overloaded("full")))
    assert tasks.execute_all([list, list]) == 0
    assert settled == []
