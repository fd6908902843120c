"""Stores for tests: connections that stop, fail or hurry at a statement, and the file that a crash would leave."""

import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Semaphore

from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import Connect, StoreFile
from stock_service.trading.model import Stock

WAIT_S = 10.0
"""Longest time for an expected event; only reached if something hangs."""

STOCKS = (Stock("GameStart", 1599, 10), Stock("FishCo", 4250, 1_000_000))

Hook = Callable[[sqlite3.Connection, str], None]
"""Function that is called before each statement of a transaction, in the writing thread."""


class _Hooked(sqlite3.Connection):
    """A connection that calls a hook first."""

    hook: Hook | None = None

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        if self.hook is not None:
            self.hook(self, sql)
        return super().execute(sql, parameters)  # type: ignore[arg-type]  # as sqlite3 declares it, in names of its own


class _Unsynced(sqlite3.Connection):
    """A connection that does not wait for the disk. A killed process leaves the same file."""

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        return super().execute(sql.replace("= FULL", "= OFF"), parameters)  # type: ignore[arg-type]


def connected(path: Path, kind: type[sqlite3.Connection]) -> sqlite3.Connection:
    """A connection of this class, with the settings of a store."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, factory=kind)


def hooked(hook: Hook) -> Connect:
    """Connections with a hook."""

    def connect(path: Path) -> sqlite3.Connection:
        connection = connected(path, _Hooked)
        assert isinstance(connection, _Hooked)
        connection.hook = hook
        return connection

    return connect


class Gate:
    """While ``shut``, holds up the writing thread before each COMMIT, until ``let``. ``hook`` is for ``hooked``."""

    def __init__(self) -> None:
        self.shut = False
        self.commits = 0
        """Number of COMMITs that came while the gate was shut."""
        self._come, self._go = Semaphore(0), Semaphore(0)

    def hook(self, _: sqlite3.Connection, statement: str) -> None:
        """Holds up a COMMIT."""
        if self.shut and statement == "COMMIT":
            self.commits += 1
            self._come.release()
            assert self._go.acquire(timeout=WAIT_S)

    def reached(self, seconds: float = WAIT_S) -> bool:
        """Tell whether the writing thread comes to a COMMIT in time."""
        return self._come.acquire(timeout=seconds)

    def let(self, count: int = 1) -> None:
        """Lets a number of COMMITs be."""
        self._go.release(count)


def unsynced(path: Path) -> sqlite3.Connection:
    """A connection that does not wait for the disk."""
    return connected(path, _Unsynced)


def catalog_on(path: Path, connect: Connect, retry_window: int = 100) -> SqliteCatalog:
    """A catalog of ``STOCKS`` on a file, with connections of this kind."""
    return SqliteCatalog(path, STOCKS, retry_window=retry_window, open_file=partial(StoreFile.opened, connect=connect))


def crashed(path: Path, to: Path) -> Path:
    """A copy of the file and its log, in a new folder, as a kill would leave them now."""
    to.mkdir()
    for part in (path, path.with_name(f"{path.name}-wal")):
        if part.exists():
            shutil.copy(part, to / part.name)
    return to / path.name
