"""Turns of tests: while a test with the mark ``alone`` runs, no other test of this checkout runs.

Tests run in several processes (xdist), on as many cores or fewer. A test of lateness or of a kept rate would measure
how busy the other tests are. So every test holds a lock on a file: shared, or exclusive if the test is marked
``alone``. A second lock must be taken before the first. A test that wants to be alone holds the second lock while
earlier tests end, so that no new test begins. The locks are the system's (``flock``), on existing files: a lock ends
with the process that holds it.
"""

import fcntl
import os
from pathlib import Path

DOOR = Path(__file__).resolve()
ROOM = DOOR.with_name("conftest.py")


class Turns:
    """The locks of one process, whose tests run one after another."""

    def __init__(self, door: Path = DOOR, room: Path = ROOM) -> None:
        self._door = os.open(door, os.O_RDONLY | os.O_CLOEXEC)
        self._room = os.open(room, os.O_RDONLY | os.O_CLOEXEC)
        self._alone = False

    def take(self, alone: bool) -> None:
        """Blocks until a test may begin. A process that is alone already stays alone."""
        if self._alone:
            return
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        self._alone = alone

    def end(self) -> None:
        """Lets other tests begin."""
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._alone = False
