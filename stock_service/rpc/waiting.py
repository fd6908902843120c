"""A request that waits for something, such as a disk, without a thread.

A server that can do so puts a ``Wait`` into ``here`` before it calls a handler. What has to wait notes that in it, has
its ``go_on`` called when it is over, and raises ``Waiting``, which leaves the handler. Then the server calls the
handler again, with the same ``Wait``: it comes to the same place, finds that the wait is over, and goes on. So a
handler must do nothing before that which may not be done twice; and it may wait once.

Where a server puts nothing there, what has to wait blocks.

What waits is done once the server says that it has begun what it had: it calls the service's ``Flush``.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Waiting(BaseException):
    """The request waits: nothing is to be replied now. No Exception, so that no handler takes it for an error."""


Flush = Callable[[bool], object]
"""Has done what requests wait for. With True this thread does it, and blocks; with False another does. Any thread."""


class Wait:
    """One request's. ``on`` is what it waits for, of whoever put it there: None before and until that."""

    __slots__ = ("go_on", "on")

    def __init__(self, go_on: "Callable[[Wait], object]") -> None:
        """``go_on`` is called once, when the wait is over, by any thread. It must not raise."""
        self.go_on = go_on
        self.on: object | None = None


class _Here(threading.local):
    """What a thread's handler may use."""

    wait: Wait | None = None


here = _Here()
"""The ``Wait`` of the request that this thread answers."""

going_on = threading.Lock()
"""Held while a group of requests goes on: see ``in_one_go``."""


@contextmanager
def in_one_go() -> Iterator[None]:
    """Within it a group of requests goes on; a thread that reads requests may wait meanwhile for ``going_on``.

    It is for speed alone: each reply would else bring that thread one more request, and the two would take the
    interpreter from each other every time. Of two groups at a time one is not waited for. Any thread; never blocks.
    """
    held = going_on.acquire(blocking=False)
    try:
        yield
    finally:
        if held:
            going_on.release()
