"""The stock service as a server process: its catalog and locking, then the contract of ``rpc/process/serving.py``.

What ``grpc_server``, ``socket_server`` and ``serve --transport NAME`` share, which is all but the transport's name.
"""

import json
import logging
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from stock_service.rpc.errors import UsageError
from stock_service.rpc.process import serving
from stock_service.rpc.process.command_line import Parser, check_writable, refuse
from stock_service.trading import catalog_file
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS, Locking, Measured, Stamped
from stock_service.trading.service import stock_service

_log = logging.getLogger(__name__)


def main(program: str, transport: str, arguments: Sequence[str]) -> NoReturn:
    """Serves the stock service on a transport until a signal comes, and ends the process."""
    description = f"The stock service on the transport {transport!r}. Prints 'ready HOST:PORT' once it serves."
    parser = Parser(program, description, serving.EXITS)
    serving.add_server_options(parser, transport)
    add = parser.add_argument
    add("--catalog", type=Path, metavar="FILE", help="stocks in TOML (default: GameStart, FishCo, BoarCo, MenhirCo)")
    add("--locking", choices=LOCKINGS, default="mutex", help="which lock a request holds")
    add(
        "--stats",
        type=Path,
        metavar="FILE",
        help="time every wait for a lock, and write a summary in JSON when stopped",
    )
    options = parser.parse_args(arguments)
    try:
        stocks = catalog_file.DEFAULT_STOCKS if options.catalog is None else catalog_file.load(options.catalog)
        check_writable("--stats", options.stats)
    except UsageError as error:
        refuse(program, error)
    measured: list[Measured] = []
    timeline = serving.timeline_for(program, options)

    def locking(names: Iterable[str]) -> Locking:
        chosen = LOCKINGS[options.locking](names)
        if options.stats is not None:
            chosen = Measured(chosen, time.perf_counter_ns)
            measured.append(chosen)
        return chosen if timeline is None else Stamped(chosen, names, timeline)

    service = stock_service(Exchange(MemoryCatalog(stocks, locking)))
    code = serving.run(program, transport, service, options, timeline)
    if measured and not _write(measured[0], options.stats):
        code = serving.FAILED_EXIT
    serving.leave(code)  # with its threads, which may keep the process alive


def _write(measured: Measured, file: Path) -> bool:
    """Writes the summary of the waits; says whether it could be."""
    try:
        file.write_text(json.dumps({"lock_waits_ns": _summary(measured)}, indent=2) + "\n")
    except OSError as error:
        _log.error("--stats %s could not be written: %s", file, error.strerror)
        return False
    return True


def _summary(measured: Measured) -> dict[str, dict[str, float]]:
    """Count, mean, median, 90th and 99th percentile and maximum of the waits, in nanoseconds, by kind of request."""
    summary: dict[str, dict[str, float]] = {}
    for kind, waits_ns in measured.waits_ns.items():
        summary[kind] = {"count": len(waits_ns)}
        if len(waits_ns) > 1:
            percentiles = statistics.quantiles(waits_ns, n=100, method="inclusive")
            summary[kind] |= {
                "mean": statistics.fmean(waits_ns),
                "p50": percentiles[49],
                "p90": percentiles[89],
                "p99": percentiles[98],
                "max": max(waits_ns),
            }
    return summary
