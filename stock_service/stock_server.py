"""Server process of the stock service: makes the catalog, and then serves requests by ``rpc/process/serving.py``.

The main programs ``grpc_server``, ``socket_server`` and ``serve --transport NAME`` call this module with the name of a
transport.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, Protocol, runtime_checkable

from stock_service.rpc.errors import UsageError
from stock_service.rpc.health import Health
from stock_service.rpc.metrics import Metrics
from stock_service.rpc.process import family, serving
from stock_service.rpc.process.command_line import Parser, refuse, seconds
from stock_service.rpc.process.listener_handover import ANSWER_S, HandOver, take_over
from stock_service.rpc.process.secured import security_of
from stock_service.rpc.server_core.listening import listen
from stock_service.rpc.service import Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import ServeOptions, load
from stock_service.storage.sqlite import CLOSE_S, SqliteCatalog
from stock_service.trading import catalog_file
from stock_service.trading.catalog import Catalog, MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS, Locking, Sampled, stamped
from stock_service.trading.model import Stock
from stock_service.trading.service import stock_service

STORES = {
    "memory": "gone when the server ends",
    "sqlite:PATH": "in a file, each trade on the disk before its reply",
    "postgres:DSN": "in a PostgreSQL that several servers share, likewise",
}
"""Allowed forms of ``--store``. The text of each form says where the stocks are stored, and how durable they are."""

_SQLITE = "sqlite:"


@dataclass(frozen=True, slots=True)
class _Primary:
    """Value of ``--store`` for a PostgreSQL database: a connection string (DSN). ``repr`` does not show the DSN, which
    may have a password.
    """

    dsn: str = field(repr=False)


@runtime_checkable
class _StoredCatalog(Catalog, Protocol):
    """A catalog whose stocks survive a restart of the server, since the stocks are in a file or a database."""

    @property
    def place(self) -> object:
        """Path of the file with the stocks, or a text that names the database. Messages show this value."""

    on_sick: Callable[[], object]
    """Function that the catalog calls when the result of ``sick`` may have changed. Any thread may call the function,
    so the function must not block.
    """

    def flush(self, here: bool) -> None:
        """Starts the commit for which requests wait. If ``here`` is True, the calling thread itself may commit
        (``rpc.waiting.Flush``).
        """

    def sick(self) -> bool:
        """Returns True if the catalog refuses changes now, because its disk or its database has failed."""

    def close(self, served: bool = True) -> bool:
        """Finishes waiting changes, and closes the catalog. ``served`` is False if the server never began to serve.
        Returns True if all changes are on the disk.
        """


_DEFAULT_LOCKING = "mutex"

_OVER_S = 5.0
"""Longest time, in seconds, that a previous server's process needs to end after its requests have ended, and after its
store's last commit.
"""


def main(
    program: str, transport: str, arguments: Sequence[str], add_own: Callable[[Parser], object] = lambda _: None
) -> NoReturn:
    """Parses the command line, serves the stock service on a transport until a signal comes, and ends the process.

    ``add_own`` adds the program's own options, so that the help shows them. The program must read the values of its
    own options before this call.
    """
    description = f"The stock service on {load(transport).LABEL}. Prints 'ready HOST:PORT' once it serves."
    parser = Parser(program, description, serving.EXITS)
    add_own(parser)
    serving.add_server_options(parser, transport)
    add_stock_options(parser, transport)
    serve_stocks(program, transport, parser.parse_args(arguments))


def add_stock_options(parser: argparse.ArgumentParser, transport: str | None) -> None:
    """Adds ``--catalog``, ``--store``, ``--locking`` and the options of a hand-over to a command line.

    The file name of the default store contains ``transport``. If ``transport`` is None, the help text is about all
    transports, and the file name contains the word ``TRANSPORT``.
    """
    add = parser.add_argument
    add("--catalog", type=Path, metavar="FILE", help="stocks in TOML (default: GameStart, FishCo, BoarCo, MenhirCo)")
    default = f"{_SQLITE}./stock_service-{transport or 'TRANSPORT'}.sqlite3"
    add("--store", type=_store, default=default, metavar="|".join(STORES), help="where stocks are kept")
    add("--locking", choices=LOCKINGS, help=f"which lock a request holds, in memory (default: {_DEFAULT_LOCKING})")
    help_text = "a Unix socket on which the next server, started with the same command, takes port and store over"
    add("--hand-over", type=Path, metavar="PATH", help=help_text)
    help_text = "seconds that the next server may take to open the store and serve; then this one serves on"
    add("--hand-over-s", type=seconds(0.05, 3600), default=ANSWER_S, help=help_text)


def serve_stocks(
    program: str,
    transport: str,
    options: argparse.Namespace,
    wrapped: Callable[[Service], Service] = lambda service: service,
) -> NoReturn:
    """Serves the stock service until a signal comes, and ends the process.

    ``wrapped`` gets the stock service, and returns the service that the server serves: by default the stock service
    itself.
    """
    kind = _kind(options)
    try:
        _check(transport, options, kind)
        if family.begins(options):
            memory = _allotted(options) if kind == "shared" else serving.NO_MEMORY
            serving.leave(family.run(program, options, memory))
        timeline, metrics = serving.timeline_for(options), serving.metrics_for(options)
        hand_over = None if options.hand_over is None else _taken_over(transport, options)
        catalog = CATALOGS[kind](options, timeline, metrics)
    except UsageError as error:
        refuse(program, error)
    service = stock_service(Exchange(catalog))
    if hand_over is not None and isinstance(catalog, SqliteCatalog):
        hand_over.has(catalog)
    if not isinstance(catalog, _StoredCatalog):
        serving.leave(serving.run(program, transport, wrapped(service), options, timeline, "", metrics))
    note = f"stocks are kept in {catalog.place}"
    began = False
    try:
        health = Health(service.name, catalog.sick)
        catalog.on_sick = health.changed
        service = wrapped(replace(service, flush=catalog.flush, health=health))
        code = serving.run(program, transport, service, options, timeline, note, metrics, hand_over)
        began = True
    finally:
        closed = catalog.close(began)  # after a refused start, removes a new file
    if not closed:
        print(f"{program}: the last changes were not on the disk within {CLOSE_S:g} s", file=sys.stderr)
    serving.leave(code if closed and not catalog.sick() else serving.FAILED_EXIT)


def _taken_over(transport: str, options: argparse.Namespace) -> HandOver:
    """Checks all options and files except the port and the store. Then takes over the listening socket of the previous
    server. If no previous server runs, opens the port.

    Blocks until the previous server has closed its store. Raises UsageError, also for an unusable port.
    """
    serving.prepare(options)
    security_of(transport, options)
    _stocks(options)
    where = f"--host {options.host} --port {options.port}"
    serves = f"--transport {transport} {where} --store {_SQLITE}{options.store.absolute()}"
    end_s = max(options.grace_s, serving.ENDING_S) + CLOSE_S + _OVER_S
    try:
        own = ServeOptions(host=options.host, port=options.port)
        return take_over(options.hand_over, serves, end_s, options.hand_over_s, lambda: listen(own))
    except (OSError, UnicodeError) as error:
        raise serving.Unbound(error, options.host, options.port) from error


def _check(transport: str, options: argparse.Namespace, kind: str) -> None:
    """Raises UsageError for an option that the transport or the kind of catalog does not support."""
    if options.hand_over is not None and not load(transport).TAKES_LISTENER:
        allowed = f"none on {transport}, which opens its port by itself"
        raise UsageError("--hand-over", str(options.hand_over), allowed)
    if options.hand_over is not None and kind != "sqlite":
        allowed = "beside --store sqlite:PATH: memory ends with its server, and other stores take several"
        raise UsageError("--hand-over", str(options.hand_over), allowed)
    if kind == "sqlite" and options.processes > 1:
        allowed = "1 with a store in a file, which is one process's; more with --store memory or postgres:DSN"
        raise UsageError("--processes", options.processes, allowed)
    if kind in ("sqlite", "postgres") and options.locking is not None:
        raise UsageError("--locking", options.locking, "with --store memory alone: a store has one writer at a time")
    if kind == "shared" and options.locking not in (None, _DEFAULT_LOCKING):
        raise UsageError("--locking", options.locking, "mutex with several --processes: they have one lock")


def _in_memory(options: argparse.Namespace, timeline: Timeline | None, metrics: Metrics | None) -> Catalog:
    """Makes a catalog in this process's memory.

    A timeline records how long requests wait for the catalog's locks. If the server has metrics and no timeline, the
    metrics record these waits.
    """

    def locking(names: Iterable[str]) -> Locking:
        chosen = LOCKINGS[options.locking or _DEFAULT_LOCKING](names)
        if timeline is not None:
            return stamped(chosen, timeline)
        return chosen if metrics is None else Sampled(chosen, metrics.waited_for_lock_s)

    return MemoryCatalog(_stocks(options) or catalog_file.DEFAULT_STOCKS, locking)


def _shared(options: argparse.Namespace, _: Timeline | None, __: Metrics | None) -> Catalog:
    """Makes the catalog of a child process, in the shared memory that the parent process has made. Raises
    UsageError."""
    from stock_service.trading.shared.catalog import SharedCatalog  # imported only by a server of several processes
    from stock_service.trading.shared.memory import Memory

    try:
        return SharedCatalog(Memory(options.member))
    except (OSError, ValueError) as error:
        raise UsageError("--member", options.member, "what the parent of several processes tells them") from error


def _on_disk(options: argparse.Namespace, _: Timeline | None, __: Metrics | None) -> Catalog:
    return SqliteCatalog(options.store, catalog_file.DEFAULT_STOCKS, _stocks(options))


def _in_postgres(options: argparse.Namespace, _: Timeline | None, __: Metrics | None) -> Catalog:
    try:
        from stock_service.storage.postgres import (
            PostgresCatalog,
        )  # imported only here, since this module needs an extra
    except ImportError as error:
        raise UsageError("--store", "postgres:…", "with its library: uv sync --extra postgres") from error

    serving.prepare(options)  # sets up the log first: the catalog reports a lost database there
    return PostgresCatalog(options.store.dsn, _stocks(options))


CATALOGS: Mapping[str, Callable[[argparse.Namespace, Timeline | None, Metrics | None], Catalog]] = {
    "memory": _in_memory,
    "shared": _shared,
    "sqlite": _on_disk,
    "postgres": _in_postgres,
}
"""Functions that make the catalog of a server process, by the kind of catalog. A function raises UsageError if the
catalog cannot be used.
"""


def _allotted(options: argparse.Namespace) -> int:
    """Allocates the memory of a catalog that several processes share. Returns the memory's file descriptor. Raises
    UsageError if the machine has not enough memory.
    """
    from stock_service.trading.shared.catalog import allot  # imported only by a server of several processes

    stocks = _stocks(options) or catalog_file.DEFAULT_STOCKS
    try:
        return allot(stocks)
    except OSError as error:
        allowed = f"as many as there is memory for, of a catalog of {len(stocks)} stocks ({error.strerror})"
        raise UsageError("--processes", options.processes, allowed) from error


def _stocks(options: argparse.Namespace) -> tuple[Stock, ...] | None:
    """Reads the stocks from the file of ``--catalog``. Returns None without this option. Raises UsageError for a file
    that cannot be used.
    """
    return None if options.catalog is None else catalog_file.load(options.catalog)


def _kind(options: argparse.Namespace) -> str:
    """Returns the kind of catalog for these options, a key of ``CATALOGS``."""
    if options.store is None:
        return "memory" if options.processes == 1 else "shared"
    return "postgres" if isinstance(options.store, _Primary) else "sqlite"


def _store(text: str) -> Path | _Primary | None:
    """Option type of ``--store``: a file, a PostgreSQL database, or None for memory."""
    if text == "memory":
        return None
    kind, _, place = text.partition(":")
    if place and kind == "postgres":
        return _Primary(text if place.startswith("//") else place)  # postgres://… is a DSN itself
    if place and kind == "sqlite":
        return Path(place)
    word = re.match(r"\w*:?", text)[0]  # type: ignore[index]  # the rest may have a password
    got = text if word == text else f"{word}…"
    raise argparse.ArgumentTypeError(f"got {got!r}, allowed: {', '.join(STORES)}")
