"""Executors: what decides which thread runs a task. They know nothing of stocks or sockets."""

from collections.abc import Callable, Sequence
from typing import Protocol

from stock_service.rpc.concurrency.static_pool import StaticPool, Task
from stock_service.rpc.concurrency.thread_per_task import ThreadPerTask
from stock_service.rpc.concurrency.thread_pool import ThreadPool


class Executor(Protocol):
    """Made from (workers, queue_limit); whoever made it stops it. Every method may be called from any thread."""

    @property
    def waiting(self) -> int:
        """Tasks that were accepted and wait for a thread, nearly."""

    @property
    def room(self) -> int:
        """Tasks that would be accepted now, nearly."""

    def execute(self, task: Task) -> None:
        """Has some thread call ``task``. Never blocks; raises Overloaded when full, Unavailable once stopping."""

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Has threads call ``tasks``; gives how many, from the first, were accepted: for the rest there was no room.

        May block while the tasks are computing, never while one waits for something. Raises Unavailable once stopping.
        """

    def stop(self, grace_s: float) -> bool:
        """Runs what was accepted; says whether it and every thread ended within ``grace_s``. May be repeated."""


EXECUTORS: dict[str, Callable[[int, int], Executor]] = {
    "static-pool": StaticPool,
    "thread-pool": ThreadPool,
    "thread-per-task": ThreadPerTask,
}
"""Every executor by the name that ``--executor`` takes."""
