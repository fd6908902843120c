"""Memory that processes share, and change as a whole: of several words all are changed, or none.

A word is a signed integer of 64 bits. ``Memory.commit`` notes all new words in a journal, then how many they are, and
then puts them in their places. Whoever next has the memory to itself finishes what a killed process has begun. It finds
how many words the journal has, and puts them in their places once more. Storing that number is the moment of the
commit. It is under 256, so it changes a single byte, which nothing can tear. A killed process has stored all that came
before in its program and nothing that came after.

``bytes`` are the same memory, for what is written before anybody shares it.
"""

import mmap
from array import array
from collections.abc import Sequence
from types import TracebackType

from stock_service.trading.shared.mutex import Mutex

WORD_BYTES = 8

_JOURNAL = 0
"""The word that says how many numbers the journal has, of which each change takes two. They come behind it."""

_JOURNAL_WORDS = 64

FIRST_WORD = 1 + _JOURNAL_WORDS
"""The first word that is its user's."""


class Memory:
    """A file that processes map. ``with`` it a thread has it to itself, among all threads of all processes, and whole.

    Everything but ``with`` and ``close`` is for who has it so. To enter blocks while another has it, without a bound.
    """

    def __init__(self, descriptor: int) -> None:
        """Maps the file of a descriptor, which stays the caller's. Raises OSError, or ValueError where it is empty."""
        self._map = mmap.mmap(descriptor, 0)
        self.bytes = memoryview(self._map)
        self.words = self.bytes.cast("q")
        self._mutex = Mutex(descriptor)

    def __enter__(self) -> None:
        self._mutex.acquire()
        try:
            self._finish()
        except BaseException:
            self._mutex.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._mutex.release()

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
        self._mutex.close()
        self.words.release()
        self.bytes.release()
        self._map.close()
