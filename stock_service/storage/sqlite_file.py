"""The file of a store, in SQLite: stocks and the remembered request ids. A group of changes is one transaction.

    stocks      one row for each stock
    requests    one row for each request id; the rows are numbered from the oldest id on, without gaps
    state       one row: which rows the other tables have, the number of the last commit, and the XOR of the stocks'
                checksums

Rules:

1. Only one process has the file open. The process holds ``flock`` on the file and on its write-ahead log, so a second
   server cannot serve another file under this file's name. SQLite's own exclusive lock keeps out other programs, such
   as ``sqlite3``. ``commit`` returns only after a check that both files are still in their place.
2. The file has one connection, which one thread at a time uses. The log is a WAL, and ``synchronous`` is FULL: so
   ``commit`` returns once the group is on the disk. With a second connection SQLite before 3.51.3 can lose commits when
   the log starts anew.
3. A new file is written under the name ``PATH.new``, and then renamed. So a file with the store's name is always whole.
4. Every row has a checksum, and ``state`` tells which rows exist. So ``load`` finds a missing, outdated or changed row.
   SQLite silently drops all commits that follow damage in a log. ``sqlite_log.py`` finds such damage before SQLite
   reads the log, except damage to the last commit.
5. Before the first commit is acknowledged, the file itself is marked as open, by its ``application_id``. ``close``
   clears the mark, once the log is in the file. A marked file without a log may have lost commits, and is refused.
6. ``user_version`` is the format. A file of another format is refused.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self
from zlib import crc32

from stock_service.rpc.errors import InternalFault, Overloaded, UsageError
from stock_service.storage.sqlite_place import (
    CLOSED_ID,
    OPEN_ID,
    check_log,
    check_saved,
    connected,
    copy_to,
    keep_log,
    locked,
    log_of,
    make_room,
    misplaced,
    real,
    said,
    saved,
    sync_folder,
    unsound,
    unusable,
)
from stock_service.trading.catalog import Version
from stock_service.trading.model import Stock

Connect = Callable[[Path], sqlite3.Connection]
"""Function that opens a SQLite connection to a file. On this connection each statement outside BEGIN and COMMIT must be
a transaction of its own.
"""

FORMAT = 1
"""Value of ``user_version`` in the files that this program makes and reads."""

_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 0",  # since SQLite's automatic checkpoint does not report its failure
    "PRAGMA secure_delete = OFF",
)

_LOG_BYTES_MAX = 1 << 20
"""Size in bytes above which the log must be moved into the file. 85 commits of one trade each make a log of this size.
The log's last group can exceed this size.
"""

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
"""Tables of a new file."""


class _State(NamedTuple):
    """The one row of the table ``state``, without the row's checksum. ``stocks`` is the number of stocks,
    ``stocks_checksum`` the XOR of their rows' checksums, and ``sequence`` the number of the last commit.
    """

    one: int = 1
    stocks: int = 0
    stocks_checksum: int = 0
    sequence: int = 0
    first_request: int = 1
    last_request: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """Content of a store file. ``versions`` has the version of each stock, by name, in the catalog's order. ``records``
    has the records of request ids, by key, the oldest first. ``sequence`` is the number of the last commit.
    """

    versions: dict[str, Version]
    records: dict[str, bytes]
    sequence: int


class StoreFile:
    """An open store file, made by ``opened``. Not thread-safe. The caller of ``opened`` must close the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, locks: ExitStack, named: Path | None = None) -> None:
        """``named`` is the name that the caller gave; this name may be a symbolic link to ``path``. ``named`` is None
        for a new file.
        """
        self._path = path
        self._locks = locks  # releases ``flock`` on file and log
        self._connection = connection
        self._in_place = {name: os.stat(name) for name in (named or path, log_of(path))}
        self._is_new = named is None  # a new file is named ``PATH.new`` until it is whole, and needs no mark
        self._marked = connection.execute("PRAGMA application_id").fetchone() == (OPEN_ID,)
        self._marks = (
            not self._is_new
        )  # True: the next commit marks the file itself; until then only its log may have the mark
        self._state = _State()
        self._rows: dict[str, tuple[int, int]] = {}  # number and checksum of each stock's row, by the stock's name
        self._log_bytes = 0
        self._log_bytes_max = _LOG_BYTES_MAX

    @classmethod
    def opened(cls, path: Path, connect: Connect = connected) -> Self:
        """Opens an existing file. Raises UsageError if the file is missing, open in another process, no store, damaged,
        or of another format.
        """
        named, path = path, real(path)
        log = log_of(path)
        with ExitStack() as locks:
            left = log.exists()
            lock = locked(path, path, os.O_RDWR)
            locks.callback(os.close, lock)
            check_saved(path)
            if left:
                locks.callback(os.close, locked(path, log, os.O_RDWR))
            check_log(path, log, lock)
            locks.callback(keep_log, path, log, lock)
            connection = _ready(path, connect, new=False)
            try:
                if not left:  # SQLite has just made the log
                    locks.callback(os.close, locked(path, log, os.O_RDWR))
                return cls(path, connection, locks.pop_all(), named)
            except BaseException:
                connection.close()
                raise

    @classmethod
    def create(cls, path: Path, stocks: Iterable[Stock], connect: Connect = connected) -> None:
        """Makes a file with these stocks, unless the file exists. Only the owner of the new file can read it. Raises
        UsageError.
        """
        path = real(path)
        check_saved(path)
        new = path.with_name(f"{path.name}.new")
        lock = locked(path, new, os.O_RDWR | os.O_CREAT)
        try:
            if not path.exists():  # another server may have made the file before this server had the lock
                make_room(path, new, lock)
                filled = cls(new, _ready(new, connect, new=True), ExitStack())
                with filled:
                    filled.commit({stock.name: (stock, 0) for stock in stocks}, {}, 0)
                    filled.checkpoint()
                os.rename(new, path)  # after SQLite has closed the file, and removed its log
                sync_folder(path.parent)
        except (OSError, InternalFault, Overloaded) as error:
            raise unusable(path, f"a place where a file can be made ({error})") from error
        finally:
            os.close(lock)

    def load(self) -> Loaded:
        """Reads the whole content of the file. Raises UsageError for a missing, outdated or changed row."""
        tables: dict[str, list[tuple[Any, ...]]] = {}
        try:
            for table in ("state", "stocks", "requests"):
                tables[table] = self._connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise unsound(self._path, f"SQLite says: {error}") from error
        for table, rows in tables.items():
            for row in rows:
                if _checksum(row[:-1]) != row[-1]:
                    raise unsound(self._path, f"row {row[0]} of {table} is not as it was written")
        if len(tables["state"]) != 1:
            raise unsound(self._path, "the row of state is missing")
        state = self._state = _State(*tables["state"][0][:-1])
        versions: dict[str, Version] = {}
        for number, name, price_cents, volume_limit, volume, sequence, checksum in tables["stocks"]:
            versions[name] = (Stock(name, price_cents, volume_limit, volume), sequence)
            self._rows[name] = (number, checksum)
        checksums = (checksum for _, checksum in self._rows.values())
        if len(versions) != state.stocks or reduce(xor, checksums, 0) != state.stocks_checksum:
            raise unsound(self._path, "a stock is missing, or is an older one")
        requests = tables["requests"]
        if [row[0] for row in requests] != list(range(state.first_request, state.last_request + 1)):
            raise unsound(self._path, "a request id is missing")
        return Loaded(versions, {row[1]: row[2] for row in requests}, state.sequence)

    def commit(self, versions: Mapping[str, Version], records: Mapping[str, bytes], window: int) -> None:
        """Writes stocks and new records of request ids in one transaction. Removes the oldest ids beyond ``window``.

        Returns once the commit is on the disk. Raises Overloaded if the disk is full: then nothing was written. Raises
        InternalFault if the file was moved, deleted or replaced, and for any other failure. After InternalFault, only a
        new start, which reads the file again, shows whether the commit was written.
        """
        before = self._state
        stocks, number, checksum, sequence = [], before.stocks, before.stocks_checksum, before.sequence
        for stock, commit in versions.values():
            own_number, own_checksum = self._rows.get(stock.name, (number + 1, 0))
            row = _summed(own_number, stock.name, stock.price_cents, stock.volume_limit, stock.volume, commit)
            stocks.append(row)
            number, checksum = max(number, own_number), checksum ^ own_checksum ^ row[-1]
            sequence = max(sequence, commit)
        requests = [_summed(at, *record) for at, record in enumerate(records.items(), start=before.last_request + 1)]
        last = before.last_request + len(requests)
        first = max(before.first_request, last - window + 1) if requests else before.first_request
        state = _State(1, number, checksum, sequence, first, last)
        execute = self._connection.execute
        try:
            if self._marks:
                self._mark(OPEN_ID)
                self._marks = False
            execute("BEGIN IMMEDIATE")
            self._connection.executemany("REPLACE INTO stocks VALUES (?, ?, ?, ?, ?, ?, ?)", stocks)
            self._connection.executemany("INSERT INTO requests VALUES (?, ?, ?, ?)", requests)
            if first > before.first_request:
                execute("DELETE FROM requests WHERE number < ?", (first,))
            execute("REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?)", _summed(*state))
            execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)
        if what := self.misplaced():
            raise InternalFault(what)
        self._state = state
        for row in stocks:
            self._rows[row[1]] = (row[0], row[-1])
        self._log_bytes = os.stat(log_of(self._path)).st_size

    def misplaced(self) -> str:
        """Returns an empty text if the file and its log still have their names.

        Otherwise the file or its log was moved, deleted or replaced. Then copies the content of the opened file to
        ``PATH.saved``, unless this was done before, and returns a text with advice.
        """
        what = misplaced(self._in_place)
        return what and f"{what}; {saved(self._connection, self._path)}"

    def untidy(self) -> bool:
        """Returns True if the log has grown by more than ``_LOG_BYTES_MAX``. Then the caller should call
        ``checkpoint``.
        """
        return self._log_bytes > self._log_bytes_max

    def checkpoint(self) -> None:
        """Moves the log into the file, and writes the file to the disk.

        Raises Overloaded if the disk is full. Then the log stays whole, and ``untidy`` returns True only after the log
        has grown by another ``_LOG_BYTES_MAX``. Raises InternalFault for any other failure.
        """
        self._log_bytes_max = self._log_bytes + _LOG_BYTES_MAX
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            kind = Overloaded if _is_full(error) else InternalFault
            raise kind(f"the log of the store could not be moved into its file ({error})") from error
        self._log_bytes, self._log_bytes_max = 0, _LOG_BYTES_MAX  # the next commit begins a new log

    def faults(self) -> list[str]:
        """Returns the faults that SQLite finds in the file's pages, one line for each fault. Reads the whole file."""
        try:
            said = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
        except sqlite3.Error as error:
            return [f"SQLite says: {error}"]
        return [] if said == ["ok"] else said

    def copy_to(self, path: Path) -> None:
        """Copies the content to a new file. Raises UsageError if the new file exists, or cannot be made."""
        try:
            copy_to(self._connection, path)
        except (OSError, sqlite3.Error) as error:
            raise UsageError("TO", str(path), f"a new file that can be made ({said(error)})") from error

    def close(self, remove: bool = False) -> None:
        """Moves the log into the file, and closes the file. With ``remove``, deletes file and log instead. Afterwards
        another process may open the file. May be called again.
        """
        in_place = not misplaced(self._in_place)
        remove = remove and in_place
        if self._marked and in_place:
            with suppress(sqlite3.Error):  # after an error the log stays
                self._mark(CLOSED_ID)
        self._connection.close()  # moves the log into the file, if the file is in its place and the disk allows
        if remove:
            with suppress(OSError):  # after an error a sound file stays
                os.unlink(self._path)
        self._locks.close()  # only now: closing any descriptor of the file releases SQLite's own locks
        self._in_place = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mark(self, application_id: int) -> None:
        """Marks the file as open or closed, in the file itself and not only in its log. Raises sqlite3.Error."""
        self._connection.execute(f"PRAGMA application_id = {application_id}")
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._marked = application_id == OPEN_ID

    def _give_up(self, error: sqlite3.Error) -> NoReturn:
        """Rolls a failed transaction back. Raises Overloaded if the disk is full, and the transaction had no effect.
        Otherwise raises InternalFault.
        """
        full = _is_full(error)
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:  # the content of the file is unknown now
            full = False
        if full:
            raise Overloaded(f"the disk of the store {self._path} is full: nothing was done") from error
        raise InternalFault(
            f"the store {self._path} failed ({error}): whether this was done shows after a restart"
        ) from error


def _is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL  # sqlite3's own errors have no code


def _ready(path: Path, connect: Connect, *, new: bool) -> sqlite3.Connection:
    """Opens a connection to a file, and checks its format. Makes the tables of a ``new`` file. Raises UsageError."""
    with ExitStack() as failed:
        try:
            connection = connect(path)
            failed.callback(connection.close)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            ((found,),) = connection.execute("PRAGMA application_id")
            ((version,),) = connection.execute("PRAGMA user_version")
            if found not in ((0,) if new else (CLOSED_ID, OPEN_ID)):
                raise unusable(path, "a store of this service; this file is something else")
            if version != (0 if new else FORMAT):
                raise unusable(path, f"a store of format {FORMAT}; this one has {version}: a newer program made it")
            for setting in (
                *_SETTINGS,
                f"PRAGMA journal_size_limit = {_LOG_BYTES_MAX}",
            ):  # limits the size of a log that begins anew
                connection.execute(setting)
            if new:
                connection.execute("BEGIN IMMEDIATE")
                for statement in (*_TABLES, f"PRAGMA application_id = {CLOSED_ID}", f"PRAGMA user_version = {FORMAT}"):
                    connection.execute(statement)
                connection.execute("COMMIT")
        except (sqlite3.Error, UnicodeError) as error:  # the text of a UnicodeError quotes damaged bytes
            raise unusable(path, f"a sound store; SQLite says: {error}") from error
        failed.pop_all()
    return connection


def _checksum(values: Sequence[object]) -> int:
    return crc32(ascii(tuple(values)).encode())


def _summed(*values: object) -> tuple[Any, ...]:
    """Makes a row of a table: the values, followed by their checksum."""
    return *values, _checksum(values)
