"""Memory that several processes share, with atomic commits: a commit changes all of its words, or no word.

A word is a signed integer of 64 bits. ``Memory.commit`` writes all changes (place and new word) into a journal. Then it
writes the length of the journal, and finally it puts the new words in their places. If a process is killed during a
commit, the next holder of the memory finishes the commit: the holder puts the words of the journal in their places once
more. Writing the length is the moment of the commit. The length is under 256, so writing the length changes a single
byte, and cannot be done by half. A killed process has done all writes before some point of its program, and no write
after this point.

``Memory.bytes`` is a view of the same memory, for data that one process writes before the memory is shared.

The lock between processes is on the first byte of the file: an open file description lock of Linux (``F_OFD_SETLKW`` in
fcntl(2)). The kernel releases the lock when the process that holds it ends, even by SIGKILL. An older POSIX lock
belongs to a process. Closing any descriptor of the file would release such a lock, and the kernel would report a false
deadlock when threads of two processes wait for each other. An open file description lock belongs to an open file, and
has neither fault.
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
"""Place of the word with the journal's length. The journal follows this word. The length is a number of integers, two
for each change.
"""

_JOURNAL_WORDS = 64

FIRST_WORD = 1 + _JOURNAL_WORDS
"""Place of the first word after the journal: other code may use the words from here on."""


_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock``: type, origin (0 for the file's start), first byte, number of bytes, process (0 for these locks)."""

_TAKE = _FLOCK.pack(F_WRLCK, os.SEEK_SET, 0, 1, 0)
_LET_GO = _FLOCK.pack(F_UNLCK, os.SEEK_SET, 0, 1, 0)


class Memory:
    """A file that several processes map into their memory. By a ``with`` statement a thread *holds* the memory: only
    one thread of all processes at a time. The holder never sees a partial commit.

    Only the holder may use the attributes and methods, except ``close``. The ``with`` statement blocks, without a
    timeout, while another thread holds the memory. A thread first acquires a lock of its own process, so at most one
    thread of each process waits in the kernel.
    """

    def __init__(self, descriptor: int) -> None:
        """Maps the file of a descriptor. The caller must close the descriptor. Raises OSError, and ValueError for an
        empty file.
        """
        self._map = mmap.mmap(descriptor, 0)
        self.bytes = memoryview(self._map)
        self.words = self.bytes.cast("q")
        # opens the file anew: a lock belongs to an open file, and each process needs its own lock
        self._file = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
        self._threads = Lock()  # acquired before the lock of the file, by the threads of this process

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
        """Changes all words or no word. ``changes`` is a flat list: the place and the new value of each word.

        Raises OverflowError for a value over 64 bits, and then changes nothing.
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
        """Finishes the commit of a process that was killed during this commit. Does nothing if every commit is
        finished.
        """
        words = self.words
        if not words[_JOURNAL]:
            return
        for place in range(_JOURNAL + 1, _JOURNAL + 1 + words[_JOURNAL], 2):
            words[words[place]] = words[place + 1]
        words[_JOURNAL] = 0

    def close(self) -> None:
        """Unmaps and closes the file in this process. Call ``close`` once, when no thread uses the memory."""
        os.close(self._file)
        self.words.release()
        self.bytes.release()
        self._map.close()
