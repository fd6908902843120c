"""Names, locks and copies of a store's file and of its write-ahead log, and checks that both still have their names.

A copy has no log. A copy is a backup, or ``PATH.saved``. A server makes ``PATH.saved`` when somebody has moved, deleted
or replaced the file that the server has open. Then the file at PATH may be another file than the served file. So this
project opens no store at PATH while ``PATH.saved`` exists: the operator must choose one of the two files, and move the
unwanted file away.
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
"""Value of ``application_id`` in a closed store: the text ``Stoc``. SQLite has this field so that programs can
recognise their files.
"""

OPEN_ID = 0x53746F4F
"""Value of ``application_id`` in a store that a server has open, or had open when it was killed: the text ``StoO``.
Such a store needs its log.
"""

_MAGIC = b"SQLite format 3\0"

_HEAD_BYTES, _ID_AT = 72, 68
"""Offsets, in a SQLite file, of the end and of the start of the field ``application_id``."""


def unusable(path: Path, allowed: str) -> UsageError:
    """Makes the error that refuses a store file. ``allowed`` describes a usable file."""
    return UsageError("store file", str(path), allowed)


def unsound(path: Path, what: str) -> UsageError:
    """Makes the error that refuses a damaged store. ``what`` describes the damage."""
    return unusable(path, f"a sound store, but {what}; restore a backup, without a log")


def real(path: Path) -> Path:
    """Returns the path of the file itself if ``path`` is a symbolic link. The log and a new file are in the folder of
    the file, and not in the folder of the link.
    """
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def check_log(path: Path, log: Path, file: int) -> None:
    """Raises UsageError if the log of a killed server is missing or damaged, since SQLite would open the store without
    the commits of this log. ``file`` is a descriptor of the store.
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
    """Returns True if the file itself has ``OPEN_ID``. A mark that is only in the log does not count."""
    return os.pread(file, 4, _ID_AT) == OPEN_ID.to_bytes(4, "big")


def keep_log(path: Path, log: Path, file: int) -> None:
    """Makes an empty log beside a closed file that still has ``OPEN_ID``, if SQLite has moved the log into the file,
    and removed the log. The next start would refuse such a file without a log.
    """
    with suppress(OSError):
        if _is_marked(file) and os.path.samestat(os.stat(path), os.fstat(file)):
            log.touch(0o600)


def locked(path: Path, file: Path, flags: int) -> int:
    """Opens ``file`` with ``flags``, and locks it. Returns the descriptor that holds the lock. ``path`` is the store's
    path, which an error names.

    Raises UsageError if another process holds the lock, or the file cannot be opened.
    """
    try:
        lock = os.open(file, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(path, f"a file that can be opened ({error.strerror})") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(file)):  # a starting server has renamed the file
            raise BlockingIOError
    except OSError as error:
        os.close(lock)
        raise unusable(path, "a file that no other process has open: stop the server that serves it") from error
    return lock


def sync_folder(folder: Path) -> None:
    """Writes the directory entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_room(path: Path, new: Path, lock: int) -> None:
    """Empties the file ``new``. A server that was killed at its start may have left this file. ``lock`` is a descriptor
    of ``new``. Raises UsageError if the file may belong to another program, or if a log of ``path`` exists.
    """
    log = log_of(path)
    if log.exists():  # SQLite would move this log into the new file
        raise unusable(path, f"one that is there, since its log is: put it back, or move {log.name} away")
    if not _is_left(os.pread(lock, _HEAD_BYTES, 0)):
        raise unusable(path, f"a name such that {new.name} is free: move that away")
    os.truncate(lock, 0)
    for left in (f"{new}-wal", f"{new}-journal"):
        Path(left).unlink(missing_ok=True)


def _is_left(head: bytes) -> bool:
    """Returns True if a server that was killed at its start may have left a file with the header ``head``. Such a
    header is empty, or is SQLite's header without another program's id.
    """
    if not head.strip(b"\0"):
        return True
    return head.startswith(_MAGIC) and head[_ID_AT:] in (bytes(4), CLOSED_ID.to_bytes(4, "big"))


def misplaced(own: Mapping[Path, os.stat_result]) -> str:
    """Returns a text on the first file that was moved, deleted or replaced; an empty text if all files still have their
    names. ``own`` has, by name, the status of each file at the time when this process opened the file.
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
    """Opens a SQLite connection to a file. Any thread may use the connection, one thread at a time."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def copy_to(connection: sqlite3.Connection, path: Path) -> None:
    """Copies the content of a connection's file to a new file. Raises sqlite3.Error, and OSError, also if ``path``
    exists.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        target = connected(path)
        try:
            connection.backup(target)  # SQLite syncs the file
            target.execute(f"PRAGMA application_id = {CLOSED_ID}")
        finally:
            target.close()
    except BaseException:
        os.unlink(path)  # removes the partial copy
        raise
    sync_folder(path.parent)


def saved(connection: sqlite3.Connection, path: Path) -> str:
    """Copies the content of a connection's file to ``PATH.saved``, unless ``PATH.saved`` exists. Returns a text with
    advice on the saved file, or on the failure.
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
    if os.path.exists(to):  # ``Path.exists`` would raise for a name that no file can have
        what = f"one without {to.name}, which has all of a server whose file or log was deleted, moved or replaced"
        raise unusable(path, f"{what}: put that there, without a log, or move it away")


def said(error: OSError | sqlite3.Error) -> object:
    """Returns the reason of an error, for a message."""
    return getattr(error, "strerror", None) or error


def _saved_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.saved")
