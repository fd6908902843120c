"""The stock service as a server process: its catalog and locking, then the contract of ``rpc/process/serving.py``.

What ``grpc_server``, ``socket_server`` and ``serve --transport NAME`` share, which is all but the transport's name.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from stock_service.rpc.errors import UsageError
from stock_service.rpc.process import family, serving
from stock_service.rpc.process.command_line import Parser, refuse
from stock_service.rpc.service import Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import load
from stock_service.trading import catalog_file
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS, Locking, Stamped
from stock_service.trading.model import Stock
from stock_service.trading.service import stock_service
from stock_service.trading.shared.catalog import SharedCatalog, allot
from stock_service.trading.shared.memory import Memory


def main(program: str, transport: str, arguments: Sequence[str]) -> NoReturn:
    """Serves the stock service on a transport until a signal comes, and ends the process."""
    description = f"The stock service on {load(transport).LABEL}. Prints 'ready HOST:PORT' once it serves."
    parser = Parser(program, description, serving.EXITS)
    serving.add_server_options(parser, transport)
    add_stock_options(parser)
    options = parser.parse_args(arguments)
    if family.begins(options):
        serving.leave(family.run(program, transport, options, allot_stocks(program, options)))
    timeline = serving.timeline_for(program, options)
    service = stock_service_of(program, options, timeline)
    serving.leave(serving.run(program, transport, service, options, timeline))


def add_stock_options(parser: argparse.ArgumentParser) -> None:
    """``--catalog`` and ``--locking``."""
    add = parser.add_argument
    add("--catalog", type=Path, metavar="FILE", help="stocks in TOML (default: GameStart, FishCo, BoarCo, MenhirCo)")
    add("--locking", choices=LOCKINGS, default="mutex", help="which lock a request holds")


def stock_service_of(program: str, options: argparse.Namespace, timeline: Timeline | None) -> Service:
    """The stock service that the options ask for, its locks noted in the timeline if there is one.

    One of several processes has the catalog that its parent allotted. Refuses a catalog that cannot be used.
    """
    if options.processes > 1:
        return stock_service(Exchange(_shared_catalog(program, options.member)))
    stocks = _stocks(program, options)

    def locking(names: Iterable[str]) -> Locking:
        chosen = LOCKINGS[options.locking](names)
        return chosen if timeline is None else Stamped(chosen, names, timeline)

    return stock_service(Exchange(MemoryCatalog(stocks, locking)))


def allot_stocks(program: str, options: argparse.Namespace) -> int:
    """The memory of a catalog that several processes share, by its descriptor. Refuses what they cannot share."""
    if options.locking != "mutex":
        refuse(program, UsageError("--locking", options.locking, "mutex with several --processes: they have one lock"))
    stocks = _stocks(program, options)
    try:
        return allot(stocks)
    except OSError as error:
        refuse(program, f"--processes: no memory for a catalog of {len(stocks)} stocks ({error.strerror})")


def _stocks(program: str, options: argparse.Namespace) -> tuple[Stock, ...]:
    try:
        return catalog_file.DEFAULT_STOCKS if options.catalog is None else catalog_file.load(options.catalog)
    except UsageError as error:
        refuse(program, error)


def _shared_catalog(program: str, descriptor: int) -> SharedCatalog:
    try:
        return SharedCatalog(Memory(descriptor))
    except (OSError, ValueError):
        refuse(program, UsageError("--member", descriptor, "what the parent of several processes tells them"))
