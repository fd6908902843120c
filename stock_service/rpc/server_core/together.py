"""Requests that may wait without a thread, begun together and then settled together: see ``rpc/waiting.py``."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from threading import get_ident
from typing import Generic

from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.server_core.served_connection import ServedConnection
from stock_service.rpc.waiting import Settle, Wait, Waiting, going_on, here

Task = Callable[[], object]

ExecuteAll = Callable[[Sequence[Task]], int]
"""``Executor.execute_all``."""

Poll = Callable[[float | None, int], list[tuple[int, int]]]
"""``select.epoll.poll``."""

PAUSE_S = 0.002
"""How long reading waits at most for requests that go on: time for about 200 replies."""

Serve = Callable[[ServedConnection[Request], Request, int], None]
"""Answers a request and sends the reply."""


class WaitingTasks(Generic[Request]):
    """How a server's tasks are run whose requests may wait. Any thread may use it."""

    def __init__(self, serve: Serve[Request], settle: Settle, execute_all: ExecuteAll) -> None:
        """``settle`` is the service's."""
        self._serve = serve
        self._settle = settle
        self._execute_all = execute_all

    def serve(self, connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        """Serves a request; one that has to wait is served again when that is over."""
        self._serve_with(Wait(partial(self._serve_later, connection, request)), connection, request, arrived_ns)

    def execute_all(self, tasks: Sequence[Task]) -> int:
        """Has them run, and settles behind the last; see ``Executor.execute_all``."""
        together = Together(len(tasks), self._settle)
        accepted = self._execute_all([partial(together.run, task) for task in tasks])
        together.leave_out(len(tasks) - accepted)
        return accepted

    def _serve_later(self, connection: ServedConnection[Request], request: Request, wait: Wait) -> None:
        self._serve_with(wait, connection, request, time.monotonic_ns())  # it was begun in time

    def _serve_with(self, wait: Wait, connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        here.wait = wait
        try:
            self._serve(connection, request, arrived_ns)
        except Waiting:
            pass  # whoever it waits for has it served again
        finally:
            here.wait = None


def serving_or_waiting(
    serve: Serve[Request], settle: Settle, execute_all: ExecuteAll
) -> tuple[Serve[Request], ExecuteAll]:
    """What is to serve a request that may wait, and to execute a batch of such; see ``WaitingTasks``."""
    tasks = WaitingTasks(serve, settle, execute_all)
    return tasks.serve, tasks.execute_all


def polling_behind(poll: Poll) -> Poll:
    """The same poll, which first lets those requests reply that go on just then; all that comes of it is read at once.

    For an epoll that is level-triggered: what was found before is found again.
    """

    def poll_behind(timeout_s: float | None, most: int) -> list[tuple[int, int]]:
        events = poll(timeout_s, most)
        if going_on.locked() and going_on.acquire(timeout=PAUSE_S):
            going_on.release()
            events = poll(0, most)
        return events

    return poll_behind


class Together:
    """Tasks of one batch; the last of them that ends settles.

    One that is alone settles on the executor's thread that ran it, which saves waking another. Else another does it: no
    thread that has more to do waits for the disk, and least of all the one that reads.
    """

    def __init__(self, size: int, settle: Settle) -> None:
        """``size`` is the number of tasks. For the thread that reads."""
        self._settle = settle
        self._size = size
        self._reader = get_ident()
        self._ended = count(1)  # next() of it is atomic in CPython

    def run(self, task: Task) -> None:
        """Runs one of the tasks."""
        try:
            task()
        finally:
            if next(self._ended) == self._size:
                self._settle(self._size == 1 and get_ident() != self._reader)

    def leave_out(self, number: int) -> None:
        """Says that so many of the tasks are not run."""
        if self._size in [next(self._ended) for _ in range(number)]:
            self._settle(False)
