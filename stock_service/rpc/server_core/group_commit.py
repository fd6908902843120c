"""Group commit: the requests of a batch share one write to the disk, and wait for it without a thread.

A request that waits leaves its thread. When the wait is over, the server serves the request again: see
``rpc/waiting.py``.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from threading import get_ident

from stock_service.rpc.concurrency import Task
from stock_service.rpc.server_core.connection import Serve, ServedConnection
from stock_service.rpc.server_core.protocol import Request
from stock_service.rpc.waiting import Flush, Wait, Waiting, going_on, here

Poll = Callable[[float | None, int], list[tuple[int, int]]]
"""The function ``select.epoll.poll``."""

PAUSE_S = 0.002
"""Longest wait of the reading thread for requests that resume: time for about 200 replies."""


def serving_again(serve: Serve[Request]) -> Serve[Request]:
    """Wraps ``serve`` for requests that may wait: a request is served again after its wait. Any thread may call the
    result.
    """

    def serve_with(wait: Wait, connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        here.wait = wait
        try:
            serve(connection, request, arrived_ns)
        except Waiting:
            pass  # at the end of the wait ``go_on`` is called, which serves the request again
        finally:
            here.wait = None

    def serve_later(connection: ServedConnection[Request], request: Request, wait: Wait) -> None:
        serve_with(wait, connection, request, time.monotonic_ns())  # it has begun in time

    def serve_first(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        serve_with(Wait(partial(serve_later, connection, request)), connection, request, arrived_ns)

    return serve_first


def polling_behind(poll: Poll) -> Poll:
    """Wraps ``poll``: first waits until the requests of the last commit have replied.

    So the next requests of these clients are read together, and share the next commit.

    The epoll must be level-triggered: then an event that was found before is found again.
    """

    def poll_behind(timeout_s: float | None, most: int) -> list[tuple[int, int]]:
        events = poll(timeout_s, most)
        if going_on.locked() and going_on.acquire(timeout=PAUSE_S):
            going_on.release()
            events = poll(0, most)
        return events

    return poll_behind


class GroupCommit:
    """The tasks of one batch; the last task that ends starts the write to the disk.

    If a batch is a single task, the thread that ran the task flushes, unless it is the reading thread. This saves
    waking another thread. Otherwise another thread flushes. So a thread that still has work never waits for the disk.
    """

    def __init__(self, size: int, flush: Flush) -> None:
        """``size`` is the number of tasks. For the thread that reads."""
        self._flush = flush
        self._size = size
        self._reader = get_ident()
        self._ended = count(1)  # next() of it is atomic in CPython

    def run(self, task: Task) -> None:
        """Runs one of the tasks."""
        try:
            task()
        finally:
            if next(self._ended) == self._size:
                self._flush(self._size == 1 and get_ident() != self._reader)

    def leave_out(self, number: int) -> None:
        """Notes that ``number`` of the tasks are not run."""
        if self._size in [next(self._ended) for _ in range(number)]:
            self._flush(False)
