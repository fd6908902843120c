"""Requests that wait for an event, such as a write to the disk, and use no thread during the wait.

The protocol between server, handler and catalog:

1. The server sets ``here.wait`` to a new ``Wait``, and calls the handler.
2. A catalog that must wait sets ``Wait.on``, arranges a call of ``Wait.go_on`` at the end of the wait, and raises
   ``Waiting``, which leaves the handler.
3. Once the server has begun all requests that it has read, the server calls the service's ``Flush``. This function
   starts the work that the requests wait for.
4. After ``go_on`` the server calls the handler again, with the same ``Wait``. The handler repeats its steps up to the
   wait, finds that the wait is over, and continues.

So a handler's steps before the wait must be safe to do twice, and a handler may wait only once. If ``here.wait`` is
None, a catalog that must wait blocks the thread.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Waiting(BaseException):
    """Exception that leaves the handler of a request that must wait. Waiting is a BaseException, so that handlers which
    catch ``Exception`` do not catch Waiting.
    """


Flush = Callable[[bool], object]
"""Function that starts the work that requests wait for. With the argument True, the calling thread does the work, and
blocks. With False, another thread does the work. Thread-safe.
"""


class Wait:
    """Wait of one request. Before the wait, ``on`` is None. Afterwards, ``on`` is the change or the Lookup that the
    request waits for.
    """

    __slots__ = ("go_on", "on")

    def __init__(self, go_on: "Callable[[Wait], object]") -> None:
        """``go_on`` is called once, by any thread, when the wait is over. ``go_on`` must not raise."""
        self.go_on = go_on
        self.on: object | None = None


class _Here(threading.local):
    """Variables of the current thread."""

    wait: Wait | None = None


here = _Here()
"""Variables of the current thread: ``here.wait`` is the ``Wait`` of the request that the thread answers, or None."""

going_on = threading.Lock()
"""Lock that is held while a group of requests resumes; see ``in_one_go``."""


@contextmanager
def in_one_go() -> Iterator[None]:
    """Holds ``going_on`` while a group of requests resumes, so that a reading thread can wait for the whole group.

    The reading thread waits only to save time. Otherwise, each reply would bring a new request to the reading thread.
    At each new request, the reading thread and the resuming thread would take the GIL from each other. If two groups
    resume at the same time, the reading thread waits for only one group. ``in_one_go`` never blocks. Thread-safe.
    """
    held = going_on.acquire(blocking=False)
    try:
        yield
    finally:
        if held:
            going_on.release()
