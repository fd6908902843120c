"""Group commit: the requests of a batch share one write to the disk, and use no thread while they wait for this write.

A method that must wait for the write raises ``Waiting``, and so frees its thread. After the write, the server calls the
method again, and the method returns the reply (``rpc/waiting.py``).
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
"""Function with the interface of ``select.epoll.poll``: takes a timeout in seconds (None: no timeout) and the largest
number of events. Returns descriptors, each with its events.
"""

PAUSE_S = 0.002
"""Longest time, in seconds, that the reading thread waits for the replies of the last commit. About 200 replies take
this time.
"""


def serving_again(serve: Serve[Request]) -> Serve[Request]:
    """Wraps ``serve`` for requests that may wait for a commit. The result serves such a request once more after the
    wait. The result is thread-safe.
    """

    def serve_with(wait: Wait, connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        here.wait = wait
        try:
            serve(connection, request, arrived_ns)
        except Waiting:
            pass  # at the end of the wait, ``Wait.go_on`` serves the request again
        finally:
            here.wait = None

    def serve_later(connection: ServedConnection[Request], request: Request, wait: Wait) -> None:
        serve_with(wait, connection, request, time.monotonic_ns())  # a new arrival time: the request began in time

    def serve_first(connection: ServedConnection[Request], request: Request, arrived_ns: int) -> None:
        serve_with(Wait(partial(serve_later, connection, request)), connection, request, arrived_ns)

    return serve_first


def polling_behind(poll: Poll) -> Poll:
    """Wraps ``poll``. The result also waits, for ``PAUSE_S`` at most, until the requests of the last commit have sent
    their replies.

    Clients that got these replies soon send their next requests. So the server reads all these requests together, and
    the requests share the next commit.

    The result polls twice, and drops the events of the first poll. The epoll must be level-triggered: then the second
    poll reports these events again.
    """

    def poll_behind(timeout_s: float | None, most: int) -> list[tuple[int, int]]:
        events = poll(timeout_s, most)
        if going_on.locked() and going_on.acquire(timeout=PAUSE_S):
            going_on.release()
            events = poll(0, most)
        return events

    return poll_behind


class GroupCommit:
    """Counter of one batch's tasks. The task that ends last starts the write to the disk.

    Usually the catalog's own thread writes, so no thread of the executor waits for the disk. But if a batch is a single
    task, the thread that ran the task also writes, and need not wake another thread. The reading thread never writes.
    """

    def __init__(self, size: int, flush: Flush) -> None:
        """``size`` is the number of tasks. Only the reading thread may call the constructor."""
        self._flush = flush
        self._size = size
        self._reader = get_ident()
        self._ended = count(1)  # next(_ended) is atomic in CPython

    def run(self, task: Task) -> None:
        """Runs one task of the batch. Then starts the write if all other tasks of the batch have ended. Thread-safe."""
        try:
            task()
        finally:
            if next(self._ended) == self._size:
                self._flush(self._size == 1 and get_ident() != self._reader)

    def leave_out(self, number: int) -> None:
        """Counts ``number`` tasks as ended, because the executor has not accepted these tasks. Starts the write if no
        other task is left.
        """
        if self._size in [next(self._ended) for _ in range(number)]:
            self._flush(False)
