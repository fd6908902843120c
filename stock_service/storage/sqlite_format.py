"""What a store's file is for SQLite: its tables, its settings, its format, and how one is opened."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from stock_service.rpc.errors import UsageError
from stock_service.storage.sqlite_place import CLOSED_ID, HEAD, OPEN_ID

Connect = Callable[[Path], sqlite3.Connection]
"""Connects to a file; statements outside BEGIN and COMMIT stand alone."""

Upgrade = Callable[[sqlite3.Connection], object]
"""Makes a file of one format one of the next, within a transaction."""

_SQLITE_MAGIC = b"SQLite format 3\0"

LOG_BYTES_MAX = 1 << 20
"""Of the log, until it is moved into the file: little on a small disk, and 85 trades that each have a commit."""

SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 0",  # SQLite's own ignores that it failed
    "PRAGMA secure_delete = OFF",
)

_TABLES = (
    "CREATE TABLE stocks (number INTEGER PRIMARY KEY, name TEXT NOT NULL, price_cents INTEGER NOT NULL, "
    "volume_limit INTEGER NOT NULL, volume INTEGER NOT NULL, sequence INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL) STRICT",
    "CREATE TABLE requests (number INTEGER PRIMARY KEY, request_id TEXT NOT NULL, record BLOB NOT NULL, "
    "checksum INTEGER NOT NULL) STRICT",
    "CREATE TABLE state (one INTEGER PRIMARY KEY, stocks INTEGER NOT NULL, stocks_checksum INTEGER NOT NULL, "
    "sequence INTEGER NOT NULL, first_request INTEGER NOT NULL, last_request INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL) STRICT",
)


def connected(path: Path) -> sqlite3.Connection:
    """A connection to a file that one thread at a time uses."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


UPGRADES: Sequence[Upgrade] = (_make_tables,)
"""From each format to the next; the first makes an empty file one of format 1."""


def ready(path: Path, connect: Connect, upgrades: Sequence[Upgrade], *, new: bool) -> sqlite3.Connection:
    """A connection to a file of the newest format. Raises UsageError."""
    try:
        connection = connect(path)
    except sqlite3.Error as error:
        raise UsageError("store file", str(path), f"a file that SQLite opens ({error})") from error
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        ((found,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        if found not in ((0,) if new else (CLOSED_ID, OPEN_ID)):
            raise UsageError("store file", str(path), "a store of this service; this file is something else")
        if version > len(upgrades):
            allowed = f"a store of format {len(upgrades)} or older; this one has {version}: a newer program made it"
            raise UsageError("store file", str(path), allowed)
        for setting in SETTINGS:
            connection.execute(setting)
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_MAX}")  # to which a log that begins anew is cut
        if version < len(upgrades):
            connection.execute("BEGIN IMMEDIATE")
            for upgrade in upgrades[version:]:
                upgrade(connection)
            if new:
                connection.execute(f"PRAGMA application_id = {CLOSED_ID}")
            connection.execute(f"PRAGMA user_version = {len(upgrades)}")
            connection.execute("COMMIT")
        return connection
    except (sqlite3.Error, UnicodeError) as error:  # the latter where its words quote what is damaged
        connection.close()
        raise UsageError("store file", str(path), f"a sound store; SQLite says: {error}") from error
    except BaseException:
        connection.close()
        raise


def is_left(head: bytes) -> bool:
    """Whether a file that begins so is what a killed start left: empty, or of SQLite and no other program's."""
    if not head.strip(b"\0"):
        return True
    return head.startswith(_SQLITE_MAGIC) and head[HEAD] in (bytes(4), CLOSED_ID.to_bytes(4, "big"))
