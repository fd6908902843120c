"""Memory that processes share: a commit changes all of its words, or no word.

A word is a signed integer of 64 bits. ``Memory.commit`` writes all new words into a journal, then their number, and
then puts the words in their places. If a process is killed meanwhile, the next holder of the memory finishes the
commit: it puts the words of the journal in their places once more. Storing the number is the moment of the commit. The
number is under 256, so storing it changes a single byte, which cannot be torn. A killed process has done all stores
before some point of its program, and no store after this point.

``bytes`` is a view of the same memory, for data that is written before the memory is shared.

The lock over processes is on the first byte of the file: an open file description lock of Linux (``F_OFD_SETLKW`` in
fcntl(2)). The kernel releases the lock of a process that ends in any way. Unlike the older locks of POSIX it belongs to
an open file and not to a process. So closing another descriptor of the file does not release it. Also, the kernel does
not report a false deadlock when threads wait for each other's processes.
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
"""The word with the number of integers in the journal, two for each change. The integers follow it."""

_JOURNAL_WORDS = 64

FIRST_WORD = 1 + _JOURNAL_WORDS
"""The first word that the memory's user may use."""


_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock``: type, origin (0: the start), first byte, number of bytes, process (0: these locks have none)."""

_TAKE = _FLOCK.pack(F_WRLCK, os.SEEK_SET, 0, 1, 0)
_LET_GO = _FLOCK.pack(F_UNLCK, os.SEEK_SET, 0, 1, 0)


class Memory:
    """A file that several processes map into their memory. One thread of all processes at a time holds the memory
    (``with``), and never finds a partial commit.

    Only the holder may use the attributes and methods, except ``with`` and ``close``. Entering blocks while another
    thread holds the memory, without a timeout. A thread first takes a lock of its process, so that at most one thread
    of each process waits in the kernel.
    """

    def __init__(self, descriptor: int) -> None:
        """Maps the file of a descriptor, which the caller still closes. Raises OSError; ValueError for an empty
        file."""
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
        """Changes all words or no word. ``changes`` has the place and the new value of each word, one after the other.

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
        """Puts in place the words of a commit whose process was killed, if there is one."""
        words = self.words
        if not words[_JOURNAL]:
            return
        for place in range(_JOURNAL + 1, _JOURNAL + 1 + words[_JOURNAL], 2):
            words[words[place]] = words[place + 1]
        words[_JOURNAL] = 0

    def close(self) -> None:
        """Unmaps the file in this process, and releases the lock. Call this once, when no thread uses the memory."""
        os.close(self._file)
        self.words.release()
        self.bytes.release()
        self._map.close()
