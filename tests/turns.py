"""Tests that need a free core get it: while one runs, no other test of this checkout does.

Tests run in several processes (xdist), on as many cores or fewer. What asks how late a program was, or whether it kept
a rate, would ask how busy the others are. So every test holds a lock on a file: shared, or exclusive if it is marked
``alone``. A second lock is the door to the first. Who wants to be alone holds it while others end, and none begins.

The locks are the system's (``flock``), on files that are there anyway: they end with the process that holds them.
"""

import fcntl
import os
from pathlib import Path

DOOR = Path(__file__).resolve()
ROOM = DOOR.with_name("conftest.py")


class Turns:
    """Part of one process, whose tests run one after the other."""

    def __init__(self, door: Path = DOOR, room: Path = ROOM) -> None:
        self._door = os.open(door, os.O_RDONLY | os.O_CLOEXEC)
        self._room = os.open(room, os.O_RDONLY | os.O_CLOEXEC)
        self._alone = False

    def take(self, alone: bool) -> None:
        """Blocks until a test may begin. Who is alone already stays so."""
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
