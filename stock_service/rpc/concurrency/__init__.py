"""Executors. An executor decides which thread runs a task, and knows nothing about stocks or sockets."""

from collections.abc import Callable

from stock_service.rpc.concurrency.executor import Executor, Reader, Task
from stock_service.rpc.concurrency.leader_followers import LeaderFollowers
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.concurrency.thread_per_task import ThreadPerTask
from stock_service.rpc.concurrency.thread_pool import ThreadPool

__all__ = ["EXECUTORS", "Executor", "Reader", "Task"]

EXECUTORS: dict[str, Callable[[int, int], Executor]] = {
    "static-pool": StaticPool,
    "leader-followers": LeaderFollowers,
    "thread-pool": ThreadPool,
    "thread-per-task": ThreadPerTask,
}
"""Constructor of every executor, by the executor's name on the command line (``--executor``)."""
