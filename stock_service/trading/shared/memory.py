"""Memory that processes share, and change as a whole: of several words all are changed, or none.

A word is a signed integer of 64 bits. ``Memory.commit`` notes all new words in a journal, then how many they are, and
then puts them in their places. Whoever next has the memory to itself finishes what a killed process has begun. It finds
how many words the journal has, and puts them in their places once more. Storing that number is the moment of the
commit. It is under 256, so it changes a single byte, which nothing can tear. A killed process has stored all that came
before in its program and nothing that came after.

``bytes`` are the same memory, for what is written before anybody shares it.

The lock over processes is on the first byte of the file: an open file description lock of Linux (``F_OFD_SETLKW`` in
fcntl(2)). The kernel takes the lock from a process that ends, however that ends. Unlike the older locks of POSIX it
belongs to an open file and not to a process. So closing another descriptor of the file does not let it go, and no call
fails because the kernel takes threads that wait for each other's processes for a deadlock.
"""

import mmap
import os
import struct
from array import array
from collections.abc import Sequence
from fcntl import F_OFD_SETLK, F_OFD_SETLKW, F_UNLCK, F_WRLCK, fcntl
from threading import Lock
from types import TracebackType

WORD_BYTES = 8

_JOURNAL = 0
"""The word that says how many numbers the journal has, of which each change takes two. They come behind it."""

_JOURNAL_WORDS = 64

FIRST_WORD = 1 + _JOURNAL_WORDS
"""The first word that is its user's."""


_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock``: type, from where (0: the start), first byte, how many, and 0 where these locks have no process."""

_TAKE = _FLOCK.pack(F_WRLCK, os.SEEK_SET, 0, 1, 0)
_LET_GO = _FLOCK.pack(F_UNLCK, os.SEEK_SET, 0, 1, 0)


class Memory:
    """A file that processes map. ``with`` it a thread has it to itself, among all threads of all processes, and whole.

    Everything but ``with`` and ``close`` is for who has it so. To enter blocks while another has it, without a bound.
    A thread first takes a lock of its process, so that at most one thread of each waits in the kernel.
    """

    def __init__(self, descriptor: int) -> None:
        """Maps the file of a descriptor, which stays the caller's. Raises OSError, or ValueError where it is empty."""
        self._map = mmap.mmap(descriptor, 0)
        self.bytes = memoryview(self._map)
        self.words = self.bytes.cast("q")
        # opened anew, so that the lock is this process's own
        self._file = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
        self._threads = Lock()  # guards the lock of the file among the threads of this process

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            fcntl(self._file, F_OFD_SETLKW, _TAKE)
            self._finish()
        except BaseException:
            self._let_go()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._let_go()

    def _let_go(self) -> None:
        try:
            fcntl(self._file, F_OFD_SETLK, _LET_GO)
        finally:
            self._threads.release()

    def commit(self, changes: Sequence[int]) -> None:
        """Changes words, all or none: ``changes`` are the place and the new value of each, in a row.

        Raises OverflowError, and changes nothing, where a value has over 64 bits.
        """
        new = array("q", changes)
        assert len(new) <= _JOURNAL_WORDS, f"{len(new)} numbers, room: {_JOURNAL_WORDS}"
        words = self.words
        words[_JOURNAL + 1 : _JOURNAL + 1 + len(new)] = memoryview(new)
        words[_JOURNAL] = len(new)
        for place in range(0, len(new), 2):
            words[new[place]] = new[place + 1]
        words[_JOURNAL] = 0

    def _finish(self) -> None:
        """Puts in place what a process had committed that was killed then, if there is any."""
        words = self.words
        if not words[_JOURNAL]:
            return
        for place in range(_JOURNAL + 1, _JOURNAL + 1 + words[_JOURNAL], 2):
            words[words[place]] = words[place + 1]
        words[_JOURNAL] = 0

    def close(self) -> None:
        """Unmaps it here, and lets the lock go. Once, when no thread uses it any more."""
        os.close(self._file)
        self.words.release()
        self.bytes.release()
        self._map.close()
