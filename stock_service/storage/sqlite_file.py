"""The file of a store: stocks and remembered request ids in SQLite, one transaction a batch of changes.

    stocks      one row a stock
    requests    one row a remembered id, numbered from the oldest on without gaps
    state       one row: how many rows the others have, the last commit's number, and the sum of the stocks' checksums

Rules:

1. One process has the file and its log open: ``sqlite_place.py``. SQLite's own exclusive lock keeps out other programs,
   such as ``sqlite3``. ``commit`` returns only where both still have their names: else nobody would find what it wrote.
2. One connection, used by one thread at a time. Its log is a WAL, and ``synchronous`` is FULL: ``commit`` returns once
   the batch is on the disk. With a second connection SQLite before 3.51.3 can lose commits when the log starts anew.
3. A new file is filled under the name ``PATH.new`` and then renamed: what has the file's name is always a whole store.
4. Every row has a checksum, and ``state`` says what rows there are: loading finds a row that is gone, old or changed.
   What SQLite would leave out of a damaged log in silence, ``sqlite_log.py`` finds before, but for the last commit.
5. ``user_version`` is the format. An older one is upgraded when it is opened, a newer one is refused.
6. The file itself says that it is open, by SQLite's application id: on the disk before the first commit, until the log
   has been moved into the file at the end. So a start sees that a log is missing. A crash leaves file and log.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self
from zlib import crc32

from stock_service.rpc.errors import InternalFault, Overloaded, UsageError
from stock_service.storage import sqlite_format
from stock_service.storage.sqlite_format import UPGRADES, Connect, Upgrade, connected, is_left, ready
from stock_service.storage.sqlite_place import (
    CLOSED_ID,
    HEAD,
    OPEN_ID,
    Place,
    locked,
    log_of,
    real,
    refuse_beside_saved,
    saved_of,
    sync_folder,
)
from stock_service.trading.catalog import Version
from stock_service.trading.model import Stock


@dataclass(slots=True)
class _State:
    """The row of ``state``, without its checksum."""

    one: int = 1
    stocks: int = 0
    stocks_checksum: int = 0
    sequence: int = 0
    first_request: int = 1
    last_request: int = 0

    def row(self) -> tuple[int, ...]:
        return self.one, self.stocks, self.stocks_checksum, self.sequence, self.first_request, self.last_request


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds: versions in their order, the records of request ids by key, oldest first, the last commit."""

    versions: dict[str, Version]
    records: dict[str, bytes]
    sequence: int


class StoreFile:
    """An open file, from ``opened``. For one thread at a time. Whoever opens it closes it."""

    def __init__(self, path: Path, place: Place | None, connection: sqlite3.Connection) -> None:
        self._path = path
        self._place = place  # None: it is closed, or is no store yet
        self._connection = connection
        self._state = _State()
        self._rows: dict[str, tuple[int, int]] = {}  # a stock's row: its number and checksum
        self._says_open = place is None  # whether the file does, or need not
        self._log_bytes_max = sqlite_format.LOG_BYTES_MAX

    @classmethod
    def opened(
        cls, path: Path, connect: Connect = connected, upgrades: Sequence[Upgrade] = UPGRADES, log_lost: bool = False
    ) -> Self:
        """A file that is there. Raises UsageError: it is missing, served, no store, damaged, or of a newer format.

        So it does where the log of a file is missing that was not closed, unless ``log_lost`` says that it is lost.
        """
        place = Place(path, log_lost)
        try:
            connection = ready(place.path, connect, upgrades, new=False)
            try:
                place.lock_log()
            except BaseException:
                connection.close()
                raise
            return cls(place.path, place, connection)
        except BaseException:
            place.close()
            raise

    @classmethod
    def create(cls, path: Path, stocks: Iterable[Stock], connect: Connect = connected) -> None:
        """Makes a file of these stocks, readable by its owner alone, where there is none. Raises UsageError."""
        path = real(path)
        refuse_beside_saved(path)
        new = path.with_name(f"{path.name}.new")
        lock = locked(path, new, os.O_RDWR | os.O_CREAT)
        try:
            if not path.exists():  # which another start may have made before this one had the lock
                log = log_of(path)
                if log.exists():  # SQLite would put it into the new file
                    allowed = f"one that is there, since its log is: put it back, or move {log.name} away"
                    raise UsageError("store file", str(path), allowed)
                if not is_left(os.pread(lock, HEAD.stop, 0)):
                    raise UsageError("store file", str(path), f"a name such that {new.name} is free: move that away")
                os.truncate(lock, 0)
                for left in (f"{new}-wal", f"{new}-journal"):
                    Path(left).unlink(missing_ok=True)
                filled = cls(new, None, ready(new, connect, UPGRADES, new=True))
                with filled:
                    filled.commit({stock.name: (stock, 0) for stock in stocks}, {}, 0)
                    filled.checkpoint()
                os.rename(new, path)  # once SQLite has closed it, which else leaves its log behind
                sync_folder(path.parent)
        except (OSError, InternalFault, Overloaded) as error:
            raise UsageError("store file", str(path), f"a place where a file can be made ({error})") from error
        finally:
            os.close(lock)

    def load(self) -> Loaded:
        """All that the file holds. Raises UsageError, naming the row, where that is not what was written."""
        tables: dict[str, list[tuple[Any, ...]]] = {}
        try:
            for table in ("state", "stocks", "requests"):
                tables[table] = self._connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise self._damaged(f"SQLite says: {error}") from error
        for table, rows in tables.items():
            for row in rows:
                if _checksum(row[:-1]) != row[-1]:
                    raise self._damaged(f"row {row[0]} of {table} is not as it was written")
        if len(tables["state"]) != 1:
            raise self._damaged("the row of state is missing")
        state = self._state = _State(*tables["state"][0][:-1])
        versions: dict[str, Version] = {}
        for number, name, price_cents, volume_limit, volume, sequence, checksum in tables["stocks"]:
            versions[name] = (Stock(name, price_cents, volume_limit, volume), sequence)
            self._rows[name] = (number, checksum)
        checksums = (checksum for _, checksum in self._rows.values())
        if len(versions) != state.stocks or reduce(xor, checksums, 0) != state.stocks_checksum:
            raise self._damaged("a stock is missing, or is an older one")
        requests = tables["requests"]
        if [row[0] for row in requests] != list(range(state.first_request, state.last_request + 1)):
            raise self._damaged("a request id is missing")
        return Loaded(versions, {row[1]: row[2] for row in requests}, state.sequence)

    def commit(self, versions: Mapping[str, Version], records: Mapping[str, bytes], window: int) -> None:
        """Writes stocks, and the records of request ids, of which the last ``window`` stay; all or nothing.

        Returns once it is on the disk. Raises Overloaded where that is full: nothing was written. Raises InternalFault
        for any other failure: whether it was written shows when the file is opened again; and as ``check_place`` does.
        """
        state = _State(*self._state.row())
        stocks = [self._stock_row(state, *version) for version in versions.values()]
        first = state.last_request + 1
        requests = [_summed(number, *record) for number, record in enumerate(records.items(), start=first)]
        state.last_request += len(requests)
        forgotten = max(0, state.last_request - window + 1 - state.first_request) if requests else 0
        state.first_request += forgotten
        execute = self._connection.execute
        try:
            if not self._says_open:
                execute(f"PRAGMA application_id = {OPEN_ID}")
                execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self._says_open = True
            execute("BEGIN IMMEDIATE")
            self._connection.executemany("REPLACE INTO stocks VALUES (?, ?, ?, ?, ?, ?, ?)", stocks)
            self._connection.executemany("INSERT INTO requests VALUES (?, ?, ?, ?)", requests)
            if forgotten:
                execute("DELETE FROM requests WHERE number < ?", (state.first_request,))
            execute("REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?)", _summed(*state.row()))
            execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)
        self.check_place()
        self._state = state
        for row in stocks:
            self._rows[row[1]] = (row[0], row[-1])

    def check_place(self) -> None:
        """Raises InternalFault where the file or its log was deleted or replaced, once a copy of them is saved."""
        changed = None if self._place is None else self._place.changed()
        if changed is None:
            return
        saved = saved_of(self._path)
        try:
            if not saved.exists():
                self._copy_to(saved)
            what = f"all it had is in {saved}: stop the server, and put that in place of {self._path}, without a log"
        except (OSError, sqlite3.Error) as error:
            what = f"all it had could not be saved in {saved} ({_said(error)}): stopping the server tries again"
        raise InternalFault(f"the store failed: {changed}; {what}")

    def untidy(self) -> bool:
        """Whether the log has become so long that it should be moved into the file, by ``checkpoint``."""
        return self._place is not None and self._place.log_bytes > self._log_bytes_max

    def checkpoint(self) -> None:
        """Moves the log into the file; both are on the disk then.

        Raises Overloaded where the disk is full: the log stays, is whole, and grows by as much again before the next
        try. Raises InternalFault for any other failure.
        """
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._log_bytes_max = sqlite_format.LOG_BYTES_MAX
        except sqlite3.Error as error:
            self._log_bytes_max += sqlite_format.LOG_BYTES_MAX
            kind = Overloaded if _is_full(error) else InternalFault
            raise kind(f"the log of the store could not be moved into its file ({error})") from error

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file's pages, a line each. Reads the whole file."""
        try:
            said = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check")]
        except sqlite3.Error as error:
            return [f"SQLite says: {error}"]
        return [] if said == ["ok"] else said

    def copy_to(self, path: Path) -> None:
        """Makes another file of the same content. Raises UsageError where there is one, or none can be made."""
        try:
            self._copy_to(path)
        except (OSError, sqlite3.Error) as error:
            raise UsageError("TO", str(path), f"a new file that can be made ({_said(error)})") from error

    def close(self, remove: bool = False) -> None:
        """Moves the log into the file, and lets others open it; or removes both. May be repeated."""
        place, self._place = self._place, None
        if place is None:
            self._connection.close()
            return
        try:
            remove = remove and place.changed() is None
            with nullcontext() if self._says_closed() else place.keeping_log():
                self._connection.close()  # whose log stays where it cannot be moved: the next who opens does it
            if remove:
                with suppress(OSError):  # then a sound file is left
                    os.unlink(self._path)
        finally:
            place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _copy_to(self, path: Path) -> None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            target = connected(path)
            try:
                self._connection.backup(target)  # SQLite syncs the file
                target.execute(f"PRAGMA application_id = {CLOSED_ID}")  # it has no log
            finally:
                target.close()
        except BaseException:
            os.unlink(path)  # of a copy that is not whole
            raise
        sync_folder(path.parent)

    def _says_closed(self) -> bool:
        """Whether the file says that it is closed, once its log is in it. Has it say so."""
        try:
            if self._connection.execute("PRAGMA application_id").fetchall() == [(OPEN_ID,)]:
                self._connection.execute(f"PRAGMA application_id = {CLOSED_ID}")
            return True
        except sqlite3.Error:  # a failed disk
            return False

    def _stock_row(self, state: _State, stock: Stock, sequence: int) -> tuple[Any, ...]:
        """A stock's row, which ``state`` then counts."""
        number, before = self._rows.get(stock.name, (0, 0))
        if not number:
            number = state.stocks = state.stocks + 1
        row = _summed(number, stock.name, stock.price_cents, stock.volume_limit, stock.volume, sequence)
        state.stocks_checksum ^= before ^ row[-1]
        state.sequence = max(state.sequence, sequence)
        return row

    def _give_up(self, error: sqlite3.Error) -> NoReturn:
        """Undoes a transaction that failed, and says what became of it."""
        full = _is_full(error)
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:  # then nobody knows what stands there
            full = False
        if full:
            raise Overloaded(f"the disk of the store {self._path} is full: nothing was done") from error
        raise InternalFault(
            f"the store {self._path} failed ({error}): whether its last changes were done shows after a restart"
        ) from error

    def _damaged(self, what: str) -> UsageError:
        return UsageError("store file", str(self._path), f"a sound store, but {what}; restore a backup, without a log")


def _said(error: OSError | sqlite3.Error) -> object:
    return getattr(error, "strerror", None) or error


def _is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL  # the module's own have no code


def _checksum(values: Sequence[object]) -> int:
    return crc32(ascii(tuple(values)).encode())


def _summed(*values: object) -> tuple[Any, ...]:
    """A row with its checksum."""
    return *values, _checksum(values)
