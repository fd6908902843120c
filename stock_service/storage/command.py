"""``python -m stock_service store check|backup|show|new-day PATH``: commands on a store file that no server has open.

If a server has the file open, the command refuses the file, since only the server knows the newest trades. ``store init
DSN`` makes a store in a PostgreSQL database.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stock_service.rpc.errors import Fault, UsageError, printable
from stock_service.rpc.process.command_line import CONNECTS, Parser, refuse
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading import catalog_file
from stock_service.trading.model import Stock, dollars

FAILED_EXIT = 1
"""Exit code if the store has a fault, or the disk has failed."""

_EXITS = {
    0: "done",
    FAILED_EXIT: "the store has a fault, or its disk failed",
    2: "bad usage, or a server has the store",
}


def check(file: StoreFile, options: Namespace) -> Sequence[str]:
    """Checks every page of a store by SQLite, and the checksum of every row. Returns the faults."""
    faults = file.faults()
    if faults:
        return [f"{options.path}: {fault}" for fault in faults]
    try:
        loaded = file.load()
    except UsageError as error:
        return [str(error)]
    print(f"sound: {len(loaded.versions)} stocks, {len(loaded.records)} request ids, last commit {loaded.sequence}")
    return ()


def backup(file: StoreFile, options: Namespace) -> Sequence[str]:
    """Copies a sound store to a new file. Raises UsageError for a store with a fault."""
    file.load()
    file.copy_to(options.to)
    print(f"{options.path} is copied to {options.to}")
    return ()


def show(file: StoreFile, _: Namespace) -> Sequence[str]:
    """Prints each stock of a store."""
    for stock, sequence in file.load().versions.values():
        amounts = f"volume {stock.volume} of {stock.volume_limit}"
        print(f"{printable(stock.name)} {dollars(stock.price_cents)} {amounts} sequence {sequence}")
    return ()


def new_day(file: StoreFile, _: Namespace) -> Sequence[str]:
    """Sets the volume of each stock of a store to 0. Each changed stock gets a commit number. Prices and request ids do
    not change. Prints the number of changed stocks.
    """
    loaded = file.load()
    traded = [stock for stock, _ in loaded.versions.values() if stock.volume]
    fresh = {
        stock.name: (Stock(stock.name, stock.price_cents, stock.volume_limit), sequence)
        for sequence, stock in enumerate(traded, start=loaded.sequence + 1)
    }
    file.commit(fresh, {}, 0)
    print(f"a new day: set to 0 the volumes of {len(fresh)} of {len(loaded.versions)} stocks")
    return ()


COMMANDS: Mapping[str, Callable[[StoreFile, Namespace], Sequence[str]]] = {
    "check": check,
    "backup": backup,
    "show": show,
    "new-day": new_day,
}
"""Functions of the commands on an open file, by the command's name. Each function returns the faults that it has found,
one line for each fault.
"""


def init(dsn: str, catalog: Path | None) -> None:
    """Makes a store in a PostgreSQL database, with the stocks of ``--catalog`` or the default stocks. Raises
    UsageError.
    """
    try:
        from stock_service.storage import postgres_session  # imported only here, since it needs the extra postgres
    except ImportError as error:
        raise UsageError("init", None, "with its library: uv sync --extra postgres") from error
    stocks = catalog_file.DEFAULT_STOCKS if catalog is None else catalog_file.load(catalog)
    postgres_session.make(dsn, stocks)
    print(f"a store of {len(stocks)} stocks is made in {postgres_session.shown(dsn)}")


def main(program: str, arguments: Sequence[str]) -> int:
    """Runs a command on a store, and prints the command's result or the store's faults. Returns the exit code. Blocks.

    After bad usage, ends the program with ``refuse``.
    """
    description = "Looks after the file of a store, while no server has it open; or makes a store in a PostgreSQL."
    parser = Parser(program, description, _EXITS)
    choices = (*COMMANDS, "init")
    add = parser.add_argument
    add("command", choices=choices, metavar="|".join(choices), help="check, copy or show it, set volumes to 0; make it")
    add("path", metavar="PATH", help="the file; for init the DSN of a PostgreSQL, as libpq takes it")
    add("to", type=Path, metavar="TO", nargs="?", help="where backup puts the copy")
    add("--catalog", type=Path, metavar="FILE", help="the stocks of init, in TOML, instead of the default ones")
    options = parser.parse_args(arguments)
    try:
        if options.catalog is not None and options.command != "init":
            raise UsageError("--catalog", str(options.catalog), "with init alone")
        if (options.to is None) is (options.command == "backup"):
            raise UsageError("TO", options.to and "…", "the file to make, with backup alone; quotes around a DSN")
        if options.command == "init":
            init(options.path, options.catalog)
            return 0
        if CONNECTS.search(options.path):  # the argument may have a password, so the error does not show it
            raise UsageError("PATH", None, "a file; a DSN with init alone, in quotes")
        options.path = Path(options.path)
        with StoreFile.opened(options.path) as file:
            faults = COMMANDS[options.command](file, options)
    except UsageError as error:
        refuse(program, error)
    except Fault as error:
        faults = [str(error)]
    for fault in faults:
        print(printable(fault))
    return FAILED_EXIT if faults else 0
