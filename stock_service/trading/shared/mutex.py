"""A lock over processes and threads, which the kernel takes from a process that ends, however that ends.

It is the first byte of a file: an open file description lock of Linux (``F_OFD_SETLKW`` in fcntl(2)). Unlike the older
locks of POSIX these belong to an open file and not to a process. So closing another descriptor of the file does not let
it go, and no call fails because the kernel takes threads that wait for each other's processes for a deadlock.
"""

import os
import struct
from fcntl import F_OFD_SETLK, F_OFD_SETLKW, F_UNLCK, F_WRLCK, fcntl
from threading import Lock

_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock``: type, from where (0: the start), first byte, how many, and 0 where these locks have no process."""


def _flock(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 1, 0)


class Mutex:
    """One lock for all threads of all processes that have a file. Not re-entrant. Whoever makes it closes it.

    A wait is not bounded. A thread first takes a lock of its process, so that at most one thread of each waits in the
    kernel.
    """

    def __init__(self, descriptor: int) -> None:
        """Opens the file of this descriptor anew, so that the lock is this process's own. Raises OSError."""
        self._descriptor = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
        self._threads = Lock()  # guards the byte among the threads of this process
        self._take = _flock(F_WRLCK)
        self._free = _flock(F_UNLCK)

    def acquire(self) -> None:
        self._threads.acquire()
        try:
            fcntl(self._descriptor, F_OFD_SETLKW, self._take)
        except BaseException:
            self._threads.release()
            raise

    def release(self) -> None:
        try:
            fcntl(self._descriptor, F_OFD_SETLK, self._free)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Lets it go. Once."""
        os.close(self._descriptor)
