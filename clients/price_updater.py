"""The price updater: a program that sets random prices at random times. After a signal the updater stops, and prints
the number of updates.

The intervals are exponentially distributed, with a given mean. So the updates are a Poisson process as long as replies
are fast. Stocks and prices are uniformly distributed. Intervals, stocks and prices are drawn from one seed. After
SIGTERM or SIGINT the updater waits for the reply under way, and ends. A fault ends the updater with an error, so that a
user notices that the updates have stopped.

The first line on standard output, after connecting, is the updater's plan. The last line has the number of updates, and
their outcomes. Advice on stocks that the server lacks goes to standard error. The exit code is 0 if all outcomes were
OK, 1 for another outcome, 2 for bad usage, and 3 for a fault.
"""

import argparse
import math
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from clients.connecting import FAULT_EXIT, NO_STOCK, OTHER_EXIT, add_options, connect, exits, explained, server_address
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import Fault, UsageError
from stock_service.rpc.process.beginning import printing
from stock_service.rpc.process.command_line import Parser, integer, refuse, seconds
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.model import NAME_LENGTH_MAX, Status

PROGRAM = "python -m clients.price_updater"

EXITS = exits("every update was OK", "an update, or connecting, got no reply")

PRICE_CENTS = (1_00, 200_00)
"""Range of the prices that the updater sets, in cents, with both ends included."""

_STOPPING = (signal.SIGTERM, signal.SIGINT)

Wait = Callable[[float], bool]
"""Function that waits for the given number of seconds at most. If a signal to stop comes, returns True at once.
Otherwise returns False."""


@dataclass(frozen=True, slots=True)
class Updates:
    """Task of the updater: the stocks, the mean interval in seconds, and the duration in seconds (infinity for no
    end)."""

    stocks: tuple[str, ...]
    interval_s: float
    duration_s: float


def run(exchange: RemoteExchange, updates: Updates, rng: random.Random, wait: Wait, outcomes: Counter[Status]) -> None:
    """Sends updates and counts their outcomes until ``wait`` returns True or the duration of ``updates`` is over.
    Raises a Fault."""
    began_ns = time.perf_counter_ns()
    left_s = updates.duration_s
    while left_s > 0:
        interval_s = rng.expovariate(1 / updates.interval_s)
        if wait(min(interval_s, left_s)) or interval_s >= left_s:
            return
        outcomes[exchange.update(rng.choice(updates.stocks), rng.randint(*PRICE_CENTS)).status] += 1
        left_s = updates.duration_s - (time.perf_counter_ns() - began_ns) / 1e9


def said(outcomes: Counter[Status]) -> str:
    """Text of the counted outcomes: ``3 updates: OK 2, UNKNOWN_STOCK 1``."""
    counts = ", ".join(f"{status.name} {outcomes[status]}" for status in sorted(outcomes))
    return f"{outcomes.total()} updates" + (f": {counts}" if counts else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program, and gives its exit code. Blocks SIGTERM and SIGINT in all threads, so that ``sigtimedwait``
    receives these signals."""
    options = _parser().parse_args(arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)  # before grpcio starts threads: threads inherit the mask
    outcomes: Counter[Status] = Counter()
    code = 0
    try:
        with closing(connect(options)) as connection:
            updates = Updates(tuple(options.stocks), options.interval_s, options.duration_s or math.inf)
            host, port = server_address(options)
            stocks = "1 stock" if len(updates.stocks) == 1 else f"{len(updates.stocks)} stocks"
            print(f"updating {stocks} at {host}:{port} every {updates.interval_s:g} s on average", flush=True)
            exchange = RemoteExchange(connection, options.timeout_s)
            run(exchange, updates, random.Random(options.seed), _wait_for_signal, outcomes)
    except UsageError as error:  # the transport's library is missing
        refuse(PROGRAM, error)
    except Fault as fault:
        print(f"{PROGRAM}: {explained(fault, options.transport)}", file=sys.stderr)
        code = FAULT_EXIT
    print(said(outcomes), flush=True)
    if outcomes[Status.UNKNOWN_STOCK]:
        print(f"{PROGRAM}: UNKNOWN_STOCK: {NO_STOCK}", file=sys.stderr)
    return code or (OTHER_EXIT if outcomes.total() > outcomes[Status.OK] else 0)


def _wait_for_signal(timeout_s: float) -> bool:
    return signal.sigtimedwait(_STOPPING, timeout_s) is not None


def _parser() -> Parser:
    parser = Parser(PROGRAM, "Sets random prices at random times until stopped.", EXITS)
    add_options(parser)
    stocks = [stock.name for stock in DEFAULT_STOCKS]
    parser.add_argument("--interval-s", type=seconds(0.0001, 3600), default=0.1, help="mean seconds between updates")
    parser.add_argument("--stocks", nargs="+", type=stock_name, default=stocks, metavar="NAME", help="stocks to update")
    parser.add_argument("--seed", type=integer(0, 2**63 - 1), default=0, help="chooses times, stocks and prices")
    help_text = "seconds to run (default: until SIGTERM or SIGINT)"
    parser.add_argument("--duration-s", type=seconds(0.001, 86_400), default=None, help=help_text)
    return parser


def stock_name(text: str) -> str:
    """Parses an argument that is the name of a stock. Raises ArgumentTypeError for a name that no stock can have."""
    if not 0 < len(text) <= NAME_LENGTH_MAX or not text.isprintable():
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: 1 to {NAME_LENGTH_MAX} printable characters")
    return text


if __name__ == "__main__":
    sys.exit(printing(main))
