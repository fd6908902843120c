"""Where a store stands: its file and its log by their names, and that both are this process's own.

    PATH          the file of SQLite
    PATH-wal      its log, while it is open, and after a crash
    PATH.saved    what a server saved whose file or log was deleted or replaced; nothing opens PATH until it is moved

A process holds ``flock`` on the file and on the log. So a copy that is put in the file's place under a server is no
second store on that server's log. What was locked is known by device and inode: ``changed`` compares them with what has
the names.

The file's own head says that it is open (``OPEN_ID``): its log then has commits that it lacks. A file that says so and
has no log has lost them. That head is read before SQLite opens the file, which makes a new log.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite_log import damage, is_written

CLOSED_ID, OPEN_ID = 0x53746F63, 0x53746F6F
"""``Stoc`` and ``Stoo``, application ids of SQLite: a file of ours that is whole by itself, and one that has a log."""

HEAD = slice(68, 72)
"""Where SQLite has the application id in its file."""


class Place:
    """The file and the log of a store that is open, each by its name. Whoever makes it closes it."""

    def __init__(self, path: Path, log_lost: bool = False) -> None:
        """Locks both. Raises UsageError where that cannot be, or the file alone is not the store.

        ``log_lost`` says that a log which is missing is to be done without.
        """
        self.path = real(path)
        self.log = log_of(self.path)
        self.log_bytes = 0
        """As ``changed`` found it."""
        self._locks: list[int] = []
        self._inodes: dict[Path, tuple[int, int]] = {}
        try:
            self._lock(self.path)
            refuse_beside_saved(self.path)
            if os.path.exists(self.log):
                self._lock(self.log)
            self._check_log(log_lost)
        except BaseException:
            self.close()
            raise

    def lock_log(self) -> None:
        """Locks the log that SQLite has made, where there was none. Raises UsageError."""
        if self.log not in self._inodes:
            self._lock(self.log)

    def changed(self) -> str | None:
        """What became of the file or the log, where another file has its name, or none; None: both are there."""
        for file, inode in self._inodes.items():
            try:
                found = os.stat(file)
            except OSError as error:
                return f"{file} was deleted or moved ({error.strerror})"
            if (found.st_dev, found.st_ino) != inode:
                return f"{file} was replaced by another file"
        self.log_bytes = found.st_size  # the log is the last
        return None

    @contextmanager
    def keeping_log(self) -> Iterator[None]:
        """Has the log there again once SQLite has closed the file and removed it: the file says that it is open."""
        kept = self.log.with_name(f"{self.log.name}.kept")
        with suppress(OSError):
            kept.unlink(missing_ok=True)
            os.link(self.log, kept)
        yield
        with suppress(OSError):
            if os.path.exists(self.log):
                kept.unlink()
            else:
                kept.rename(self.log)

    def close(self) -> None:
        """Lets others open both. Only after SQLite has closed them: this lets SQLite's own locks go."""
        while self._locks:
            os.close(self._locks.pop())

    def _lock(self, file: Path) -> None:
        self._locks.append(locked(self.path, file, os.O_RDWR))
        found = os.fstat(self._locks[-1])
        self._inodes[file] = (found.st_dev, found.st_ino)

    def _check_log(self, log_lost: bool) -> None:
        """Raises UsageError where the log that a killed server left is missing, or is damaged: before SQLite makes a
        new one, or takes up a part of it."""
        path, log = str(self.path), self.log.name
        try:
            is_open = os.pread(self._locks[0], HEAD.stop, 0)[HEAD] == OPEN_ID.to_bytes(4, "big")
            missing, damaged = is_open and not is_written(self.log), damage(self.log)
        except OSError as error:
            raise UsageError("store file", path, f"a log that can be read, {log} ({error.strerror})") from error
        if missing and not log_lost:
            what = f"one with its log {log}: a server had this file open, and that is missing or empty"
            todo = "put it back, restore a backup, or go on without by: python -m stock_service store accept-loss"
            raise UsageError("store file", path, f"{what}. The last acknowledged trades may be lost; {todo} {path}")
        if damaged is not None:
            what = f"a sound store, but {damaged} of its log {log} is damaged, with commits behind it"
            raise UsageError("store file", path, f"{what}; restore a backup, without a log")


def real(path: Path) -> Path:
    """The file itself, where a link names it: beside that SQLite has its log, and a start its new file."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def log_of(path: Path) -> Path:
    """A store's log."""
    return path.with_name(f"{path.name}-wal")


def saved_of(path: Path) -> Path:
    """Where a server saves a store whose file was changed under it."""
    return path.with_name(f"{path.name}.saved")


def refuse_beside_saved(path: Path) -> None:
    """Raises UsageError where a server saved what the file at this path lacks."""
    saved = saved_of(path)
    if os.path.exists(saved):  # Path's own raises for a name that no file can have
        what = f"one without {saved.name}, which has all that a server had when its file or log was changed under it"
        todo = f"put that in place of {path.name}, without a log, or move it away"
        raise UsageError("store file", str(path), f"{what}: {todo}")


def locked(path: Path, file: Path, flags: int) -> int:
    """A descriptor that holds the lock of a store's file, of its log, or of what is to be the file.

    Raises UsageError where another process holds it, or it cannot be opened.
    """
    try:
        lock = os.open(file, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError("store file", str(path), f"a file that can be opened ({error.strerror})") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(file)):  # renamed meanwhile, by a server that starts
            raise BlockingIOError
    except OSError as error:
        os.close(lock)
        allowed = "a file that no other process has open: stop the server that serves it"
        raise UsageError("store file", str(path), allowed) from error
    return lock


def sync_folder(folder: Path) -> None:
    """Has the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
