"""A request that waits for something, such as a disk, without a thread.

A server that supports this puts a ``Wait`` into ``here`` before it calls a handler. A catalog that must wait notes the
wait in the ``Wait``, arranges a call of ``go_on`` at the end of the wait, and raises ``Waiting``, which leaves the
handler. After ``go_on`` the server calls the handler again, with the same ``Wait``. The handler comes to the same
place, finds that the wait is over, and continues. So the steps of a handler before its wait must be safe to do twice,
and a handler may wait only once.

If a server puts no ``Wait`` into ``here``, a catalog that must wait blocks.

The work that requests wait for begins once the server has begun all requests that it has read: the server then calls
the service's ``Flush``.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Waiting(BaseException):
    """The request waits, and gets no reply now. A BaseException, so that no handler takes it for an error."""


Flush = Callable[[bool], object]
"""Function that starts the work that requests wait for. With True the calling thread does the work, and blocks; with
False another thread does it. Any thread may call it."""


class Wait:
    """Wait of one request. The code that waits sets ``on`` to the thing that the request waits for; before that, ``on``
    is None.
    """

    __slots__ = ("go_on", "on")

    def __init__(self, go_on: "Callable[[Wait], object]") -> None:
        """``go_on`` is called once, when the wait is over, by any thread. It must not raise."""
        self.go_on = go_on
        self.on: object | None = None


class _Here(threading.local):
    """State of the current thread for its handler."""

    wait: Wait | None = None


here = _Here()
"""The ``Wait`` of the request that this thread answers."""

going_on = threading.Lock()
"""Held while a group of requests goes on: see ``in_one_go``."""


@contextmanager
def in_one_go() -> Iterator[None]:
    """Holds ``going_on`` while a group of requests goes on, so that a thread that reads requests may wait for the end.

    This is only for speed. Without it each reply would bring one more request to the reading thread, and the two
    threads would take the interpreter from each other each time. If two groups go on at a time, the reading thread
    waits for only one group. Any thread may use it; never blocks.
    """
    held = going_on.acquire(blocking=False)
    try:
        yield
    finally:
        if held:
            going_on.release()
