"""``python -m stock_service store check|backup|show|new-day PATH``: what is done with a store that nobody serves.

One that a server has open is refused by name: its newest trades are that server's alone to know.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stock_service.rpc.errors import Fault, UsageError, printable
from stock_service.rpc.process.command_line import Parser, refuse
from stock_service.storage.sqlite_file import StoreFile
from stock_service.trading.catalog import Version
from stock_service.trading.model import Stock, dollars

FAILED_EXIT = 1
"""For a store with a fault, and for a disk that failed."""

_EXITS = {
    0: "done",
    FAILED_EXIT: "the store has a fault, or its disk failed",
    2: "bad usage, or a server has the store",
}


def check(path: Path, _: Path | None) -> Sequence[str]:
    """Reads every page and every row."""
    with StoreFile.opened(path) as file:
        faults = file.faults()
        if faults:
            return [f"{path}: {fault}" for fault in faults]
        try:
            loaded = file.load()
        except UsageError as error:
            return [str(error)]
    print(f"sound: {len(loaded.versions)} stocks, {len(loaded.records)} request ids, last commit {loaded.sequence}")
    return ()


def backup(path: Path, to: Path | None) -> Sequence[str]:
    """Copies a sound store to a file that is not there yet."""
    if to is None:
        raise UsageError("TO", None, "the file to make")
    with StoreFile.opened(path) as file:
        file.load()
        file.copy_to(to)
    print(f"{path} is copied to {to}")
    return ()


def show(path: Path, _: Path | None) -> Sequence[str]:
    """Prints each stock."""
    with StoreFile.opened(path) as file:
        versions = file.load().versions
    for stock, sequence in versions.values():
        amounts = f"volume {stock.volume} of {stock.volume_limit}"
        print(f"{printable(stock.name)} {dollars(stock.price_cents)} {amounts} sequence {sequence}")
    return ()


def new_day(path: Path, _: Path | None) -> Sequence[str]:
    """Sets each volume to 0, a commit a stock; prices and request ids stay."""
    with StoreFile.opened(path) as file:
        loaded = file.load()
        fresh: dict[str, Version] = {}
        for name, (stock, _number) in loaded.versions.items():
            if stock.volume:
                new = Stock(name, stock.price_cents, stock.volume_limit)
                fresh[name] = (new, loaded.sequence + len(fresh) + 1)
        file.commit(fresh, {}, 0)
    print(f"a new day: set to 0 the volumes of {len(fresh)} of {len(loaded.versions)} stocks")
    return ()


COMMANDS: Mapping[str, Callable[[Path, Path | None], Sequence[str]]] = {
    "check": check,
    "backup": backup,
    "show": show,
    "new-day": new_day,
}
"""What can be done, by name; each gives the faults that it found."""


def main(program: str, arguments: Sequence[str]) -> int:
    """Does one of the commands; gives the exit code. Blocks."""
    parser = Parser(program, "Looks after the file of a store, while no server has it open.", _EXITS)
    add = parser.add_argument
    add("command", choices=COMMANDS, metavar="|".join(COMMANDS), help="check it, copy it, show it, or set volumes to 0")
    add("path", type=Path, metavar="PATH", help="the file")
    add("to", type=Path, metavar="TO", nargs="?", help="where backup puts the copy")
    options = parser.parse_args(arguments)
    if options.to is not None and options.command != "backup":
        parser.error(f"TO: got {str(options.to)!r}, allowed: with backup alone")
    try:
        faults = COMMANDS[options.command](options.path, options.to)
    except UsageError as error:
        refuse(program, error)
    except Fault as error:
        faults = [str(error)]
    for fault in faults:
        print(printable(fault))
    return FAILED_EXIT if faults else 0
