"""A process that trades on a store and says what became of each trade; others kill it, or have its disk fail.

``python -m tests.reliability.store_member PATH TRADES [PLANT]`` says a line at a time, each as one write. ``ack ID
VOLUME SEQUENCE`` is a trade that was acknowledged, ``full ID`` or ``failed ID`` one that was refused, ``saw VOLUME``
the Lookup behind it, and then ``end``. A store that cannot be opened is ``refused``, exit code 2. PLANT names a bug
that checks must find.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from stock_service.rpc.errors import InternalFault, Overloaded, UsageError
from stock_service.storage import sqlite_file
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.catalog import Version
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side, Stock

STOCKS = (Stock("A", 100, 10**9), Stock("B", 200, 10**9))

ROWS_MAX = 6
"""After so many rows the log is moved into the file: often, so that this is tried too."""


def main(path: str, trades: str, plant: str = "") -> None:
    """Trades."""
    sqlite_file._LOGGED_ROWS_MAX = ROWS_MAX
    PLANTS[plant]()
    try:
        catalog = SqliteCatalog(Path(path), STOCKS)
    except UsageError as error:
        _say(f"refused {error}")
        sys.exit(2)
    exchange = Exchange(catalog)
    for number in range(int(trades)):
        name = str(number)
        try:
            reply = exchange.trade("A", 1, Side.BUY, name)
            _say(f"ack {name} {reply.volume} {reply.sequence}")
        except Overloaded:
            _say(f"full {name}")
        except InternalFault:
            _say(f"failed {name}")
        _say(f"saw {exchange.lookup('A').volume}")
    catalog.close()
    _say("end")


def _unsynced() -> None:
    """Commits are not waited for."""
    sqlite_file._SETTINGS = tuple(setting.replace("= FULL", "= NORMAL") for setting in sqlite_file._SETTINGS)  # type: ignore[assignment]


def _ids_apart() -> None:
    """The trade is committed first, then that it was."""
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
