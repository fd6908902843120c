"""Requests that wait for an event, such as a write to the disk, without a thread.

A server that supports this puts a ``Wait`` into ``here`` before it calls a handler. A catalog that must wait notes the
wait in the ``Wait``, arranges a call of ``go_on`` at the end of the wait, and raises ``Waiting``, which leaves the
handler. After ``go_on`` the server calls the handler again, with the same ``Wait``. The handler repeats its steps up to
the wait, finds that the wait is over, and continues. So the steps before the wait must be safe to do twice, and a
handler may wait only once.

If a server puts no ``Wait`` into ``here``, a catalog that must wait blocks.

Once the server has begun all requests that it has read, the server calls the service's ``Flush``, which starts the work
that requests wait for.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Waiting(BaseException):
    """Raised for a request that waits and gets no reply now. A BaseException, so that no handler catches it as an
    error.
    """


Flush = Callable[[bool], object]
"""Function that starts the work that requests wait for. With True the calling thread does the work, and blocks; with
False another thread does it. Any thread may call it."""


class Wait:
    """Wait of one request. A catalog that must wait sets ``on`` to the change or Lookup that the request waits for;
    before, ``on`` is None.
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
"""Lock that is held while a group of requests resumes: see ``in_one_go``."""


@contextmanager
def in_one_go() -> Iterator[None]:
    """Holds ``going_on`` while a group of requests resumes, so that a reading thread can wait until the whole group has
    resumed.

    This is only for speed. Otherwise each reply would bring a new request to the reading thread, and the two threads
    would take the GIL from each other each time. If two groups resume at a time, the reading thread waits for only one
    group. Any thread may use it; never blocks.
    """
    held = going_on.acquire(blocking=False)
    try:
        yield
    finally:
        if held:
            going_on.release()
