"""Locks over processes and threads, which the kernel takes from a process that ends, however that ends.

A lock is a byte of a file: an open file description lock of Linux (``F_OFD_SETLKW`` in fcntl(2)). The byte need not be
there. Unlike the older locks of POSIX these belong to an open file and not to a process. So closing another descriptor
of the file lets none of them go. Nor does the kernel take threads that wait for each other's processes for a deadlock,
and fail their calls.
"""

import os
import struct
from fcntl import F_OFD_SETLK, F_OFD_SETLKW, F_RDLCK, F_UNLCK, F_WRLCK, fcntl
from threading import Lock
from types import TracebackType

_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock``: type, from where (0: the start), first byte, how many, and 0 where these locks have no process."""

_MUTEX = 0
"""The byte of the mutex. All others are numbers that are held."""


def _flock(kind: int, byte: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0)


class Mutex:
    """One lock for all threads of all processes. To be held with ``with``; not re-entrant; a wait is not bounded.

    A thread first takes a lock of its process, so that at most one thread of each waits in the kernel.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._threads = Lock()  # guards the byte among the threads of this process
        self._take = _flock(F_WRLCK, _MUTEX)
        self._free = _flock(F_UNLCK, _MUTEX)

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            fcntl(self._descriptor, F_OFD_SETLKW, self._take)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            fcntl(self._descriptor, F_OFD_SETLK, self._free)
        finally:
            self._threads.release()


class Locks:
    """The locks of one file as one process has them. Any thread may use them; whoever made it closes it."""

    def __init__(self, descriptor: int) -> None:
        """Opens the file of this descriptor anew, so that the locks are this process's own. Raises OSError."""
        file = f"/proc/self/fd/{descriptor}"
        self._holding = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        self._waiting = os.open(file, os.O_RDWR | os.O_CLOEXEC)  # apart, so that no wait changes what is held
        self.mutex = Mutex(self._holding)

    def hold(self, number: int) -> None:
        """Holds a number, from 1 to 2^63 - 1, that nobody has held before. Does not block."""
        fcntl(self._holding, F_OFD_SETLK, _flock(F_WRLCK, number))

    def let_go(self, number: int) -> None:
        """Lets a number go that this process holds."""
        fcntl(self._holding, F_OFD_SETLK, _flock(F_UNLCK, number))

    def wait(self, number: int) -> None:
        """Blocks until nobody holds a number any more, without a bound; another thread of this process may hold it."""
        fcntl(self._waiting, F_OFD_SETLKW, _flock(F_RDLCK, number))
        fcntl(self._waiting, F_OFD_SETLK, _flock(F_UNLCK, number))

    def close(self) -> None:
        """Lets all go. Once."""
        os.close(self._holding)
        os.close(self._waiting)
