"""``execute_all`` for executors that gain nothing from seeing a batch whole."""

from collections.abc import Callable, Sequence

from stock_service.rpc.concurrency.static_pool import Task
from stock_service.rpc.errors import Overloaded, Unavailable


def execute_each(execute: Callable[[Task], None], tasks: Sequence[Task]) -> int:
    """Executes tasks one by one; gives how many were accepted before the first that found no room."""
    for number, task in enumerate(tasks):
        try:
            execute(task)
        except Overloaded:
            return number
        except Unavailable:
            if number:
                return number  # the first of them run already
            raise
    return len(tasks)
