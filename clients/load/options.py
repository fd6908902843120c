"""The load client's command line: its options, their types, and the plan that they make."""

import argparse
import os
from pathlib import Path

from clients.connecting import add_options, server_address
from clients.load.output import is_stream
from clients.load.plan import (
    CHOICES,
    CLIENT_KINDS,
    CLIENTS_MAX,
    CONNECTION_POLICIES,
    CONNECTIONS_MAX,
    DURATION_S_MAX,
    RATE_HZ_MAX,
    RATE_HZ_MIN,
    REQUESTS,
    WEIGHT_MAX,
    WEIGHT_MIN,
    ZIPF_S_MAX,
    ZIPF_S_MIN,
    LoadPlan,
)
from clients.load.result import ALL
from clients.load.schedule import ARRIVALS
from clients.load.thresholds import Condition, parse
from clients.price_updater import stock_name
from stock_service.catalog_file import DEFAULT_STOCKS
from stock_service.command_line import Parser, integer, number, seconds
from stock_service.errors import UsageError
from stock_service.model import QUANTITY_MAX

DESCRIPTION = "Sends requests in a closed loop, or with --rate-hz in an open one, and measures them."


def parser(program: str) -> Parser:
    """Reads the command line of the program of that name."""
    made = Parser(program, DESCRIPTION)
    add_options(made)
    _add_load(made)
    _add_requests(made)
    _add_measuring(made)
    _add_results(made)
    return made


def _add_load(made: Parser) -> None:
    """Who sends, and when."""
    add = made.add_argument_group("the load").add_argument
    add(
        "--clients", nargs="+", type=integer(1, CLIENTS_MAX), default=[1], metavar="N", help="processes; a run for each"
    )
    add("--connections-per-client", type=integer(1, CONNECTIONS_MAX), default=1, metavar="N", help="of each process")
    add("--client", choices=CLIENT_KINDS, default="lean", help="our own on a plain socket, or the transport's own")
    add("--connection", choices=CONNECTION_POLICIES, default="kept-alive", help="what a request uses")
    add("--rate-hz", type=number(RATE_HZ_MIN, RATE_HZ_MAX), metavar="R", help="open loop: requests due in a second")
    add("--arrivals", choices=ARRIVALS, default="poisson", help="how they are due, with --rate-hz")


def _add_requests(made: Parser) -> None:
    """What is sent."""
    add = made.add_argument_group("the requests").add_argument
    add("--mix", type=mix, default="lookup", help="their types and weights, such as lookup=0.5,trade=0.5")
    stocks = [stock.name for stock in DEFAULT_STOCKS]
    add("--stocks", nargs="+", type=stock_name, default=stocks, metavar="NAME", help="to choose from")
    add("--choice", choices=CHOICES, default="uniform", help="how a stock is chosen; zipf favours the first named")
    add("--zipf-s", type=number(ZIPF_S_MIN, ZIPF_S_MAX), default=1.0, metavar="S", help="zipf's exponent")
    add("--quantity", type=integer(1, QUANTITY_MAX), default=1, metavar="N", help="shares in one trade")
    add("--seed", type=integer(0, 2**63 - 1), default=0, metavar="N", help="chooses requests, stocks and arrivals")


def _add_measuring(made: Parser) -> None:
    """How long, and where."""
    add = made.add_argument_group("the measuring").add_argument
    add("--warm-up-s", type=seconds(0, DURATION_S_MAX), default=1.0, metavar="S", help="before it; not recorded")
    add("--duration-s", type=seconds(0.01, DURATION_S_MAX), default=10.0, metavar="S", help="measured")
    add("--cpus", nargs="+", type=cpu, metavar="CPU", help="cores for the clients (default: any)")
    add("--no-floor", action="store_true", help="do not measure first what the client itself adds (1 s)")
    add("--find-rate", action="store_true", help="search the highest rate that keeps --p99-ms and every --fail-if")
    add("--p99-ms", type=number(0.001, 60_000), metavar="MS", help="the limit that --find-rate keeps")


def _add_results(made: Parser) -> None:
    """What becomes of it."""
    add = made.add_argument_group("the results").add_argument
    add("--json", type=output_file, metavar="FILE", help="where to write everything measured")
    add("--csv", type=output_file, metavar="FILE", help="where to write a line for each run and request type")
    add("--hlog", type=output_file, metavar="FILE", help="where to write the histograms, as HdrHistogram logs them")
    add(
        "--fail-if",
        action="append",
        type=condition,
        metavar="COND",
        help="exit with 4 if it holds, such as 'p99>20ms' or 'errors>0.1%%'; may be repeated",
    )


def check(options: argparse.Namespace) -> None:
    """Raises UsageError where two options do not go together."""
    for limit in options.fail_if or ():
        if limit.request != ALL and limit.request not in options.mix:
            raise UsageError("--fail-if", limit.text, f"requests that --mix has: {', '.join(options.mix)}")
    taken: dict[Path, str] = {}
    for option in ("json", "csv", "hlog"):
        path: Path | None = getattr(options, option)
        if path is None or is_stream(path):
            continue
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise UsageError(f"--{option}", str(path), f"another file than that of --{other}")


def plan(options: argparse.Namespace, clients: int) -> LoadPlan:
    """The options as a plan. Raises UsageError."""
    return LoadPlan(
        transport=options.transport,
        address=server_address(options),
        clients=clients,
        mix=options.mix,
        stocks=tuple(options.stocks),
        warm_up_s=options.warm_up_s,
        duration_s=options.duration_s,
        connections_per_client=options.connections_per_client,
        connection=options.connection,
        timeout_s=options.timeout_s,
        seed=options.seed,
        cpus=None if options.cpus is None else tuple(options.cpus),
        quantity=options.quantity,
        client=options.client,
        rate_hz=options.rate_hz,
        arrivals=options.arrivals,
        choice=options.choice,
        zipf_s=options.zipf_s,
    )


def mix(text: str) -> dict[str, float]:
    """An option's type: ``lookup``, or ``lookup=0.5,trade=0.5``; a weight left out is 1."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, equals, weight = part.partition("=")
        try:
            value = float(weight) if equals else 1.0
        except ValueError:
            value = 0.0
        if name not in REQUESTS or name in weights or not WEIGHT_MIN <= value <= WEIGHT_MAX:
            allowed = (
                f"each of {', '.join(REQUESTS)} once at most, with a weight from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}, "
                "such as lookup=0.5,trade=0.5"
            )
            raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}")
        weights[name] = value
    return weights


def cpu(text: str) -> int:
    """An option's type: a core that this process may use."""
    usable = os.sched_getaffinity(0)
    if text.isascii() and text.isdigit() and int(text) in usable:
        return int(text)
    raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {', '.join(map(str, sorted(usable)))}")


def output_file(text: str) -> Path:
    """An option's type: a file that can be written, seen before anything is measured."""
    path = Path(text)
    if path.exists() and not path.is_file() and not path.is_dir():
        writable = os.access(path, os.W_OK)
    else:
        folder = path.resolve().parent
        writable = not path.is_dir() and folder.is_dir() and os.access(folder, os.W_OK)
    if not writable:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: a file in a folder that can be written")
    return path


def condition(text: str) -> Condition:
    """An option's type: see ``thresholds``."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {error}") from error
