"""Place of a store's file, log and copies: names, locks, and checks that the files are still in their place.

Copies need no log. They are backups, or ``PATH.saved``, which a server makes when its file is moved, deleted or
replaced. The file with the store's name is then another file than the served file. So no program opens it while
``PATH.saved`` exists: the operator must choose one of the two files, and move the other file away.
"""

import fcntl
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite_log import damage

CLOSED_ID = 0x53746F63
"""``Stoc``, the ``application_id`` of a store that is closed. SQLite has this field to tell one program's files from
others."""

OPEN_ID = 0x53746F4F
"""``StoO``, the ``application_id`` of the store of a server that runs, or was killed: it needs its log."""

_MAGIC = b"SQLite format 3\0"

_HEAD_BYTES, _ID_AT = 72, 68
"""Bytes of a SQLite file up to the end of its ``application_id``, and the place of this field."""


def unusable(path: Path, allowed: str) -> UsageError:
    """The error that refuses a store, with its path."""
    return UsageError("store file", str(path), allowed)


def unsound(path: Path, what: str) -> UsageError:
    """The error that refuses a damaged store."""
    return unusable(path, f"a sound store, but {what}; restore a backup, without a log")


def real(path: Path) -> Path:
    """Path of the file itself, if ``path`` is a link: the log and a new file are in the folder of the file, not of the
    link.
    """
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def check_log(path: Path, log: Path, file: int) -> None:
    """Raises UsageError if the log of a killed server is missing or damaged: SQLite would open the store without the
    lost commits.
    """
    marked = _is_marked(file)
    if marked and not log.exists():
        what = f"a store that was closed, or has its log; {log.name} is gone, and with it maybe the newest trades"
        advice = f"put it back, or restore a backup; to go on without them make it anew: touch {log}"
        raise unusable(path, f"{what}: {advice}")
    try:
        damaged = damage(log, marked)
    except OSError as error:
        raise unusable(path, f"a log that can be read, {log.name} ({error.strerror})") from error
    if damaged is not None:
        raise unsound(path, f"{damaged} of its log {log.name} is damaged, with commits behind it")


def _is_marked(file: int) -> bool:
    """True if the file itself, and not only its log, has the open mark."""
    return os.pread(file, 4, _ID_AT) == OPEN_ID.to_bytes(4, "big")


def keep_log(path: Path, log: Path, file: int) -> None:
    """Makes an empty log if SQLite has moved the log into the file, but the file's open mark could not be cleared."""
    with suppress(OSError):
        if _is_marked(file) and os.path.samestat(os.stat(path), os.fstat(file)):
            log.touch(0o600)


def locked(path: Path, file: Path, flags: int) -> int:
    """Locks a file, or a new file that will get the name ``path``; returns the descriptor that holds the lock.

    Raises UsageError if another process holds the lock, or the file cannot be opened.
    """
    try:
        lock = os.open(file, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(path, f"a file that can be opened ({error.strerror})") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(file)):  # renamed meanwhile, by a server that starts
            raise BlockingIOError
    except OSError as error:
        os.close(lock)
        raise unusable(path, "a file that no other process has open: stop the server that serves it") from error
    return lock


def sync_folder(folder: Path) -> None:
    """Writes the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_room(path: Path, new: Path, lock: int) -> None:
    """Empties the new file that a killed start left. Raises UsageError if the file may belong to another program."""
    log = log_of(path)
    if log.exists():  # SQLite would put it into the new file
        raise unusable(path, f"one that is there, since its log is: put it back, or move {log.name} away")
    if not _is_left(os.pread(lock, _HEAD_BYTES, 0)):
        raise unusable(path, f"a name such that {new.name} is free: move that away")
    os.truncate(lock, 0)
    for left in (f"{new}-wal", f"{new}-journal"):
        Path(left).unlink(missing_ok=True)


def _is_left(head: bytes) -> bool:
    """True for the head of a file that a killed start left: empty, or a head of SQLite without another program's id."""
    if not head.strip(b"\0"):
        return True
    return head.startswith(_MAGIC) and head[_ID_AT:] in (bytes(4), CLOSED_ID.to_bytes(4, "big"))


def misplaced(own: Mapping[Path, os.stat_result]) -> str:
    """Text on the first file that is no longer under its name; empty if all files are. ``own`` has the files as
    opened.
    """
    for name, opened in own.items():
        try:
            if os.path.samestat(os.stat(name), opened):
                continue
            became = "another file is in its place"
        except FileNotFoundError:
            became = "it was deleted or moved away"
        except OSError as error:
            became = f"it is not to be reached ({error.strerror})"
        said = f"{name} is not the file any more that this server opened: {became}"
        return f"{said}; no change is acknowledged from now on"
    return ""


def connected(path: Path) -> sqlite3.Connection:
    """A connection to a file, used by one thread at a time."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def copy_to(connection: sqlite3.Connection, path: Path) -> None:
    """Copies the file of a connection to a new file. Raises OSError, also if the new file exists, or sqlite3.Error."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        target = connected(path)
        try:
            connection.backup(target)  # SQLite syncs the file
            target.execute(f"PRAGMA application_id = {CLOSED_ID}")
        finally:
            target.close()
    except BaseException:
        os.unlink(path)  # of a copy that is not whole
        raise
    sync_folder(path.parent)


def saved(connection: sqlite3.Connection, path: Path) -> str:
    """Saves the content of a file, unless it was saved before. Returns text on the saved file, or on the failure, with
    advice.
    """
    to = _saved_of(path)
    try:
        if not os.path.exists(to):
            copy_to(connection, to)
    except (OSError, sqlite3.Error) as error:
        return f"what it had cannot be saved in {to} ({said(error)}): make that possible and stop the server"
    return f"stop the server, and put {to} there, which has all that it acknowledged, without a log"


def check_saved(path: Path) -> None:
    """Raises UsageError if ``PATH.saved`` exists: the file at PATH may lack commits that the saved file has."""
    to = _saved_of(path)
    if os.path.exists(to):  # Path's own raises for a name that no file can have
        what = f"one without {to.name}, which has all of a server whose file or log was deleted, moved or replaced"
        raise unusable(path, f"{what}: put that there, without a log, or move it away")


def said(error: OSError | sqlite3.Error) -> object:
    """The text of an error that is for people."""
    return getattr(error, "strerror", None) or error


def _saved_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.saved")
