"""Sessions with the PostgreSQL database of a store: tables, checks at the start, and the statements of a group commit.

A group of changes is one READ COMMITTED transaction. The transaction has three round trips, and acquires its locks in a
fixed order:

1. ``lock`` locks the row of the table ``state``. The replica that holds this lock has its *turn* among all replicas.
2. ``stocks`` locks the rows of the stocks in the order of their names, and reads the ids that other replicas wrote.
3. ``commit`` writes all changes, and commits.

A statement sees all commits that ended before the statement began. So the statements of a turn see all earlier groups.

A session has the remembered request ids in memory, like the catalog in a file. The session reads new ids by their
numbers, as one range of the primary key. Ids get their numbers in a turn. So if a statement sees an id, it also sees
all ids with smaller numbers. A new session reads all ids again, since another primary may have lost some ids.

All trades of a stock change one row. With SERIALIZABLE transactions, PostgreSQL would abort all but one of several
concurrent trades; with a lock, the trades wait. A Lookup must use SELECT and not NOTIFY, since the notice of an
acknowledged trade may come after the Lookup.

If a session pauses for ``PAUSE_MAX`` within its turn, the primary ends the session, because other replicas wait for
their turns. The reason of such a pause may be a stopped process or a cut network.

A DSN is a connection string of libpq. A DSN may have a password, so no message shows a DSN. If libpq cannot read a DSN,
libpq's error quotes the DSN, so no message shows this error either.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

import psycopg
from psycopg import conninfo
from psycopg.pq import TransactionStatus

from stock_service.rpc.errors import UsageError, printable
from stock_service.trading.catalog import Version
from stock_service.trading.model import Stock
from stock_service.trading.once import Remembered

_Rows = Iterable[tuple[Any, ...]]

_Connection = psycopg.Connection[tuple[Any, ...]]

FORMAT = 1
"""Format of the stores that this program makes and uses."""

PAUSE_MAX = "2s"
"""Longest pause of a replica between two statements within its turn. After a longer pause PostgreSQL ends the session.
"""

LOCK_WAIT_MAX = "5s"
"""Longest wait of a statement for locks of other sessions. Must be longer than ``PAUSE_MAX``."""

BEHIND_MAX = 1000
"""Largest number of ids that a session reads within a turn. A session that lacks more ids reads them before its turn,
in 1 to 300 ms.
"""

_DEFAULTS = {
    "application_name": "stock_service",
    "connect_timeout": "2",
    "keepalives_idle": "5",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
"""Settings of a connection, unless the DSN has other values. With these values a session notices a cut network in 8 s.
"""

_SHOWN = {"host": r"@?[^@=]*", "port": r"[\d,]*", "dbname": r"(?!postgres\w*:)[^@=]*", "user": r"[^=]*"}
"""Settings of a connection that messages may show, and patterns of the allowed values. A DSN with any other value is
refused, since such a value may contain a part of a password.
"""

_PRIMARY = {"target_session_attrs": "read-write", "client_encoding": "utf8"}
"""Settings of every connection; they replace the settings of the DSN. With these settings libpq connects to no standby
server, which may lack the last commits.
"""

_SAFE = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
}
"""Settings of PostgreSQL, and their safe values. With other values a crash may lose a commit, or leave half-written
pages.
"""

_TABLES = """
CREATE SCHEMA stock_service
CREATE TABLE state (one integer PRIMARY KEY CHECK (one = 1), format integer NOT NULL, sequence bigint NOT NULL,
    first_request bigint NOT NULL, last_request bigint NOT NULL) WITH (fillfactor = 10)
CREATE TABLE stocks (number integer NOT NULL, name text COLLATE "C" PRIMARY KEY, price_cents bigint NOT NULL,
    volume_limit bigint NOT NULL, volume bigint NOT NULL, sequence bigint NOT NULL) WITH (fillfactor = 50)
CREATE TABLE requests (number bigint PRIMARY KEY, key bytea NOT NULL, record bytea NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0.05)
"""
"""Tables of a new store. Tables whose rows change have free space in each page. So a changed row stays in its page, and
PostgreSQL changes no index.
"""

_LOCK = """
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT sequence, first_request, last_request FROM stock_service.state WHERE one = 1 FOR UPDATE
"""

_READ = """
SELECT name, price_cents, volume_limit, volume, sequence FROM stock_service.stocks WHERE name = ANY(%s) ORDER BY name
"""

REQUESTS = """
SELECT number, key, record FROM stock_service.requests WHERE number > %s AND number <= %s ORDER BY number
"""
"""Statement that reads a range of request ids. Never prepare this statement: PostgreSQL would keep a plan from the time
when the table was small, and this plan reads the whole table.
"""

_READ_LOCKED = f"{_READ} FOR UPDATE; {REQUESTS}"
"""Statements that lock and read stocks, and read new request ids. A session sends both statements as one message, like
``_LOCK``, and not in a psycopg pipeline: after a pipeline, PostgreSQL 15 does not notice a pause (``PAUSE_MAX``).
"""

_FORGET = "DELETE FROM stock_service.requests WHERE number >= %s AND number < %s"
"""Statement that removes the oldest request ids. Never prepare this statement, for the same reason as ``REQUESTS``.
Because of the lower bound PostgreSQL does not visit rows that were removed before.
"""

_WRITE_STOCKS = """
UPDATE stock_service.stocks AS stock SET price_cents = new.price_cents, volume = new.volume, sequence = new.sequence
FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) AS new (name, price_cents, volume, sequence)
WHERE stock.name = new.name
"""

_WRITE_REQUESTS = """
INSERT INTO stock_service.requests SELECT %s::bigint + at, key, record
FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS new (key, record, at)
"""

_WRITE_STATE = "UPDATE stock_service.state SET sequence = %s, first_request = %s, last_request = %s WHERE one = 1"


class _State(NamedTuple):
    """The row of the table ``state``: number of the last commit, and numbers of the first and the last request id."""

    sequence: int
    first_request: int
    last_request: int


class Session:
    """One connection to the primary, made by ``opened``. Not thread-safe. The caller of ``opened`` must close the
    session.

    Every method blocks, and may raise psycopg.Error. After an error ``undone`` tells whether the session can still be
    used.
    """

    def __init__(self, connection: _Connection, window: int) -> None:
        self._connection = connection
        self._window = window
        self._last_read = 0  # number of the last id in ``remembered``
        self._state = _State(0, 1, 0)
        self.remembered = Remembered(window)
        """Records of request ids. After a call of ``stocks`` in a turn, no record is missing."""
        self.in_doubt = False
        """True if a commit was begun, and its outcome is not known yet."""

    @classmethod
    def opened(cls, dsn: str, window: int) -> Self:
        """Opens a session. Raises UsageError for a database or a store that cannot be used, and psycopg.Error if no
        primary can be reached.
        """
        session = cls(_connected(dsn), window)
        try:
            session._check(dsn)
            return session
        except BaseException:
            session.close()
            raise

    @property
    def sequence(self) -> int:
        """Number of the last commit. Valid only in a turn."""
        return self._state.sequence

    def all_stocks(self) -> dict[str, Version]:
        """Reads every stock, in the catalog's order."""
        rows = self._connection.execute(
            "SELECT name, price_cents, volume_limit, volume, sequence FROM stock_service.stocks ORDER BY number"
        )
        return _versions(rows)

    def read(self, names: Iterable[str]) -> dict[str, Version]:
        """Reads stocks by their names. Sees all commits that ended before this call."""
        return _versions(self._connection.execute(_READ, (list(set(names)),)))

    def catch_up(self) -> None:
        """Reads the request ids that other replicas wrote. Call this outside a turn."""
        ((last,),) = self._connection.execute("SELECT last_request FROM stock_service.state")
        self._keep(self._connection.execute(REQUESTS, (self._last_read, last), prepare=False), last)

    def lock(self) -> None:
        """Begins a turn: locks the row of ``state``. Waits for the turns of all replicas that asked for the lock
        earlier. No other replica can begin a turn before ``commit`` or ``undone``.
        """
        while True:
            rows = self._connection.execute(_LOCK, prepare=False)
            rows.nextset()
            self._state = _State(*rows.fetchone())  # type: ignore[misc]  # the one row of state
            if self._state.last_request - self._last_read <= BEHIND_MAX:
                return
            self._connection.execute("ROLLBACK", prepare=False)  # preparing this would drop all prepared statements
            self.catch_up()

    def stocks(self, names: Iterable[str]) -> dict[str, Version]:
        """Locks stocks, and returns them by name. Also reads new request ids, so that ``remembered`` has all ids. Call
        this only in a turn.
        """
        rows = psycopg.ClientCursor(self._connection)
        rows.execute(_READ_LOCKED, (list(set(names)), self._last_read, self._state.last_request))
        stocks = _versions(rows.fetchall())
        rows.nextset()
        self._keep(rows, self._state.last_request)
        return stocks

    def commit(self, versions: Mapping[str, Version], records: Mapping[str, bytes], sequence: int) -> None:
        """Writes stocks and new records of request ids, removes the oldest ids beyond the window, commits, and ends the
        turn.
        """
        before, execute = self._state, self._connection.execute
        last = before.last_request + len(records)
        first = max(before.first_request, last - self._window + 1)
        if not versions and not records:
            execute("ROLLBACK", prepare=False)
            return
        self.in_doubt = True
        with self._connection.pipeline():
            if versions:
                execute(_WRITE_STOCKS, _columns(versions.values()))
            if records:
                keys = [key.encode() for key in records]
                execute(_WRITE_REQUESTS, (before.last_request, keys, list(records.values())))
            if first > before.first_request:
                execute(_FORGET, (before.first_request, first), prepare=False)
            execute(_WRITE_STATE, (sequence, first, last))
            execute("COMMIT")
        self.in_doubt = False
        for key, record in records.items():
            self.remembered.keep(key, record)
        self._last_read = last

    def undone(self) -> bool:
        """Rolls the turn back after an error. Returns True if the connection can still be used, and the turn had no
        effect.
        """
        if self._connection.closed:
            return False
        if self.in_doubt and self._connection.info.transaction_status is not TransactionStatus.INERROR:
            return False
        try:
            self._connection.rollback()
        except psycopg.Error:
            return False
        self.in_doubt = False
        return True

    def close(self) -> None:
        """Closes the connection. May be called again."""
        with suppress(psycopg.Error):
            self._connection.close()

    def _keep(self, rows: _Rows, last: int) -> None:
        """Adds the request ids of ``rows`` to ``remembered``, the oldest id first. ``last`` becomes the number of the
        last id that was read.
        """
        for _, key, record in rows:
            self.remembered.keep(key.decode(), record)
        self._last_read = last

    def _check(self, dsn: str) -> None:
        """Raises UsageError for a PostgreSQL server or a store that cannot be used."""
        for setting, allowed in _SAFE.items():
            ((found,),) = self._connection.execute("SELECT current_setting(%s)", (setting,))
            if found not in allowed:
                raise unusable(dsn, f"a PostgreSQL with {setting} = on; this one has {found}, and may lose trades")
        try:
            ((found,),) = self._connection.execute("SELECT format FROM stock_service.state")
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise unusable(dsn, "a store: make it by python -m stock_service store init DSN") from error
        if found != FORMAT:
            raise unusable(dsn, f"a store of format {FORMAT}; this one has {found}: another version made it")


def make(dsn: str, stocks: Sequence[Stock]) -> None:
    """Makes the schema ``stock_service`` with these stocks. Raises UsageError, also if the schema exists."""
    try:
        with _connected(dsn) as connection:
            connection.execute("BEGIN")
            connection.execute(_TABLES)
            connection.execute("INSERT INTO stock_service.state VALUES (1, %s, 0, 1, 0)", (FORMAT,))
            connection.cursor().executemany(
                "INSERT INTO stock_service.stocks VALUES (%s, %s, %s, %s, %s, 0)",
                [(number, s.name, s.price_cents, s.volume_limit, s.volume) for number, s in enumerate(stocks)],
            )
            connection.execute("COMMIT")
            connection.execute("ANALYZE stock_service.stocks")
    except psycopg.errors.DuplicateSchema as error:
        raise unusable(dsn, "a database without a schema stock_service: there is one") from error
    except psycopg.Error as error:
        raise unusable(dsn, f"a PostgreSQL that makes a schema ({said(error)})") from error


def shown(dsn: str) -> str:
    """Returns a text that names the database of a DSN, without the password."""
    try:
        parts = _parts(dsn)
    except psycopg.Error:
        return "PostgreSQL"
    chosen = (f"{key}={parts[key]}" for key in _SHOWN if key in parts)
    return " ".join(("PostgreSQL", *chosen))


def unusable(dsn: str, allowed: str) -> UsageError:
    """Makes the error that refuses a store. ``allowed`` describes a usable store."""
    return UsageError("store", shown(dsn), allowed)


def said(error: Exception) -> str:
    """Returns the first line of an error's text, or the name of its class."""
    return printable(str(error).strip().partition("\n")[0]) or type(error).__name__


def _parts(dsn: str) -> dict[str, Any]:
    """Parses a DSN to its settings. Raises psycopg.Error if libpq cannot read the DSN. Raises it also if libpq would
    take a part of a password for the name of a host or database, since messages show such names.
    """
    place = dsn.partition("://")[2].partition("?")[0]
    parts = conninfo.conninfo_to_dict(dsn)
    are_whole = (re.fullmatch(allowed, str(parts.get(key, ""))) for key, allowed in _SHOWN.items())
    if place.count("@") > 1 or "@" in place.partition("/")[2] or not all(are_whole):
        raise psycopg.ProgrammingError
    return parts


def _connected(dsn: str) -> _Connection:
    """Connects to the primary. Raises UsageError for an unreadable DSN. Raises psycopg.Error if no primary can be
    reached.
    """
    try:
        parts = _DEFAULTS | _parts(dsn) | _PRIMARY
    except psycopg.Error:
        allowed = "a connection string of libpq: 'host=… dbname=…' or postgresql://…; there %40 and %2F are @ and /"
        raise UsageError("store", "a DSN that cannot be read", allowed) from None
    connection = psycopg.connect(autocommit=True, prepare_threshold=0, **parts)
    try:
        settings = {
            "idle_in_transaction_session_timeout": PAUSE_MAX,
            "lock_timeout": LOCK_WAIT_MAX,
            "tcp_user_timeout": "5s",
            "search_path": "pg_catalog",
        }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    except BaseException:
        connection.close()
        raise
    return connection


def _versions(rows: _Rows) -> dict[str, Version]:
    """Converts rows of the table ``stocks`` to versions by name."""
    return {name: (Stock(name, price, limit, volume), sequence) for name, price, limit, volume, sequence in rows}


def _columns(versions: Iterable[Version]) -> tuple[list[Any], ...]:
    """Converts versions to four columns (names, prices, volumes, commit numbers), sorted by name."""
    rows = sorted((stock.name, stock.price_cents, stock.volume, sequence) for stock, sequence in versions)
    return tuple(map(list, zip(*rows, strict=True)))
