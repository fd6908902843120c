"""What wakes the thread that sleeps in epoll, from any other thread: an eventfd."""

import os
from threading import Lock


class Waker:
    """See the module. Whoever made it closes it, once nobody sleeps any more; a late ``wake`` then does nothing."""

    def __init__(self) -> None:
        self._lock = Lock()  # guards fd
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """What epoll is to watch; -1: closed."""

    def wake(self) -> None:
        """Wakes it. Any thread."""
        with self._lock:
            if self.fd >= 0:  # a task that was given up may end after the server has
                os.eventfd_write(self.fd, 1)

    def woken(self) -> None:
        """It is awake: what was said until now is heard."""
        os.eventfd_read(self.fd)

    def close(self) -> None:
        """Frees the descriptor. May be repeated."""
        with self._lock:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1
