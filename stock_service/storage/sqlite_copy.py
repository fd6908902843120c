"""Copies of a store's file, which need no log: backups, and ``PATH.saved``, of one that was changed under its server.

What has the file's name then is not what was served. So nothing opens it while ``PATH.saved`` is there: whoever looks
after the store says which of the two it is, by moving one.
"""

import os
import sqlite3
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite_place import CLOSED_ID, sync_folder


def connected(path: Path) -> sqlite3.Connection:
    """A connection to a file, used by one thread at a time."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def copy_to(connection: sqlite3.Connection, path: Path) -> None:
    """Copies the file of a connection to one that is not there yet. Raises OSError or sqlite3.Error."""
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
    """Saves what this file had, unless that was done; says where, or why it cannot be, and what to do."""
    to = _saved_of(path)
    try:
        if not os.path.exists(to):
            copy_to(connection, to)
    except (OSError, sqlite3.Error) as error:
        return f"what it had cannot be saved in {to} ({said(error)}): make that possible and stop the server"
    return f"stop the server, and put {to} there, which has all that it acknowledged, without a log"


def check_saved(path: Path) -> None:
    """Raises UsageError where a server saved what the file of this name may lack."""
    to = _saved_of(path)
    if os.path.exists(to):  # Path's own raises for a name that no file can have
        what = f"one without {to.name}, which has all of a server whose file or log was deleted, moved or replaced"
        raise UsageError("store file", str(path), f"{what}: put that there, without a log, or move it away")


def said(error: OSError | sqlite3.Error) -> object:
    """What of an error is for people."""
    return getattr(error, "strerror", None) or error


def _saved_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.saved")
