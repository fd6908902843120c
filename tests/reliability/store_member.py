"""A process that trades on a store and prints the outcome of each trade. Other programs kill the process, or make its
disk fail.

``python -m tests.reliability.store_member PATH TRADES [PLANT]`` prints a line at a time, each with one write. ``ack ID
VOLUME SEQUENCE`` is an acknowledged trade, ``full ID`` or ``failed ID`` a refused trade, ``saw VOLUME`` the Lookup
after a trade. Then the store is closed and copied to ``PATH.copy``: ``copied`` or ``uncopied``, and ``end``. A store
that cannot be opened is ``refused``, exit code 2. PLANT names a bug that checks must find.

The first trades name an unknown stock. Their ids are as many as the later trades push out of the window. The last
``GROUP`` trades share a commit.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from stock_service.rpc.errors import InternalFault, Overloaded, UsageError
from stock_service.rpc.waiting import Wait, Waiting, here
from stock_service.storage import sqlite_file
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.catalog import Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side, Status, Stock

STOCKS = (Stock("A", 100, 10**9), Stock("B", 200, 10**9))

LOG_BYTES_MAX = 4 * 4096
"""Size of the log at which it is moved into the file, small enough that the move is tried, too."""

OLD, GROUP = 4, 3
"""Ids that are forgotten during the run; and trades of one group."""


def main(path: str, trades: str, plant: str = "") -> None:
    """Runs the script: trades, Lookups, and a copy of the store."""
    sqlite_file._LOG_BYTES_MAX = LOG_BYTES_MAX
    PLANTS[plant]()
    try:
        catalog = SqliteCatalog(Path(path), STOCKS, retry_window=int(trades))
    except UsageError as error:
        _say(f"refused {error}")
        sys.exit(2)
    exchange = Exchange(catalog)
    names = [str(number) for number in range(int(trades))]
    _grouped(catalog, exchange, [f"old-{number}" for number in range(OLD)], "none")
    for name in names[:-GROUP]:
        _trade(exchange, name, "A")
        _say(f"saw {exchange.lookup('A').volume}")
    _grouped(catalog, exchange, names[-GROUP:], "A")
    _say(f"saw {exchange.lookup('A').volume}")
    catalog.close()
    _copy(Path(path))
    _say("end")


def _trade(exchange: Exchange, name: str, stock: str) -> None:
    """Trades, and prints the outcome."""
    try:
        reply = exchange.trade(stock, 1, Side.BUY, name)
        if reply.status is Status.OK:
            _say(f"ack {name} {reply.volume} {reply.sequence}")
    except Overloaded:
        _say(f"full {name}")
    except InternalFault:
        _say(f"failed {name}")


def _grouped(catalog: SqliteCatalog, exchange: Exchange, names: Sequence[str], stock: str) -> None:
    """Outcomes of several trades that share a commit, as waiting trades of a server do."""
    waits = []
    for name in names:
        here.wait = Wait(lambda _: None)
        waits.append((name, here.wait))
        with suppress(Waiting):
            _trade(exchange, name, stock)
            waits.pop()  # it was refused at once
    catalog.flush(here=True)
    for name, wait in waits:
        here.wait = wait
        _trade(exchange, name, stock)
    here.wait = None


def _copy(path: Path) -> None:
    """Copies the store, as ``store backup`` does."""
    try:
        with StoreFile.opened(path) as file:
            file.load()
            file.copy_to(path.with_name(f"{path.name}.copy"))
        _say("copied")
    except UsageError:
        _say("uncopied")


def _unsynced() -> None:
    """Plants a bug: commits are not synced."""
    sqlite_file._SETTINGS = tuple(setting.replace("= FULL", "= NORMAL") for setting in sqlite_file._SETTINGS)  # type: ignore[assignment]


def _ids_apart() -> None:
    """Plants a bug: a trade and its request id are two commits."""
    commit = StoreFile.commit

    def apart(file: StoreFile, versions: Mapping[str, Version], records: Mapping[str, bytes], window: int) -> None:
        commit(file, versions, {}, window)
        commit(file, {}, records, window)

    StoreFile.commit = apart  # type: ignore[assignment,method-assign]


PLANTS = {"": lambda: None, "unsynced": _unsynced, "ids apart": _ids_apart}


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
