"""The load client's command line: runs each number of clients in turn and says what they saw.

    python -m clients.load --transport sockets --address 127.0.0.1:50052 --clients 1 2 3 --mix lookup --json FILE

Exit code 0; 1 if any request ended in an error, 2 for bad usage, 3 if the server cannot be reached, 130 after Ctrl-C,
which keeps what was measured. The JSON file is written anew after every number of clients, whole or not at all.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from clients.connecting import FAULT_EXIT, add_options, explained, server_address
from clients.load import fleet
from clients.load.live import live
from clients.load.plan import CLIENTS_MAX, CONNECTION_POLICIES, CONNECTIONS_MAX, DURATION_S_MAX, REQUESTS, LoadPlan
from clients.load.result import JSON_FORMAT, LoadResult, as_json
from clients.load.summary import show
from clients.price_updater import stock_name
from stock_service.catalog_file import DEFAULT_STOCKS
from stock_service.command_line import Parser, integer, refuse, seconds
from stock_service.errors import Fault, UsageError
from stock_service.model import QUANTITY_MAX

PROGRAM = "python -m clients.load"

ERROR_EXIT = 1
INTERRUPTED_EXIT = 130
"""What shells give for a program that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program; gives its exit code."""
    options = _parser().parse_args(arguments)
    try:
        plans = [_plan(options, clients) for clients in options.clients]
    except UsageError as error:
        refuse(PROGRAM, error)
    results: list[LoadResult] = []
    try:
        for plan in plans:
            with live(Console(stderr=True), plan) as watch:
                results.append(fleet.run(plan, watch))
            show(results[-1], Console())
            if options.json is not None:
                write_json(options.json, results)
            if results[-1].interrupted:
                return INTERRUPTED_EXIT
    except Fault as fault:
        print(f"{PROGRAM}: {explained(fault, options.transport)}", file=sys.stderr)
        return FAULT_EXIT
    except OSError as error:
        refuse(PROGRAM, f"--json: got {str(options.json)!r}, which cannot be written: {error.strerror}")
    return ERROR_EXIT if any(result.errors for result in results) else 0


def write_json(path: Path, results: Sequence[LoadResult]) -> None:
    """Writes results to a file in one step, so that a reader never sees half of it. Raises OSError."""
    document = {"format": JSON_FORMAT, "results": [as_json(result) for result in results]}
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.chmod(file.name, 0o644)  # a temporary file is the user's alone
    os.replace(file.name, path)


def _parser() -> Parser:
    parser = Parser(PROGRAM, "Sends as many requests as a closed loop does, and measures them.")
    add_options(parser)
    clients = integer(1, CLIENTS_MAX)
    parser.add_argument("--clients", nargs="+", type=clients, default=[1], metavar="N", help="processes, in turn")
    parser.add_argument(
        "--connections-per-client", type=integer(1, CONNECTIONS_MAX), default=1, metavar="N", help="of each process"
    )
    parser.add_argument("--connection", choices=CONNECTION_POLICIES, default="kept-alive", help="what a request uses")
    parser.add_argument("--mix", type=mix, default="lookup", help="request types, such as lookup=0.5,trade=0.5")
    stocks = [stock.name for stock in DEFAULT_STOCKS]
    parser.add_argument("--stocks", nargs="+", type=stock_name, default=stocks, metavar="NAME", help="to choose from")
    parser.add_argument("--quantity", type=integer(1, QUANTITY_MAX), default=1, help="shares in one trade")
    parser.add_argument("--warm-up-s", type=seconds(0, DURATION_S_MAX), default=1.0, help="not recorded")
    parser.add_argument("--duration-s", type=seconds(0.01, DURATION_S_MAX), default=10.0, help="measured")
    parser.add_argument("--seed", type=integer(0, 2**63 - 1), default=0, help="chooses requests and stocks")
    parser.add_argument("--cpus", nargs="+", type=cpu, metavar="CPU", help="cores for the clients (default: any)")
    parser.add_argument("--json", type=json_file, metavar="FILE", help="where to write all results")
    return parser


def _plan(options: argparse.Namespace, clients: int) -> LoadPlan:
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
        if name not in REQUESTS or name in weights or not 0 < value < float("inf"):
            allowed = f"each of {', '.join(REQUESTS)} once at most, with a weight over 0, such as lookup=0.5,trade=0.5"
            raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}")
        weights[name] = value
    return weights


def cpu(text: str) -> int:
    """An option's type: a core that this process may use."""
    usable = os.sched_getaffinity(0)
    if text.isascii() and text.isdigit() and int(text) in usable:
        return int(text)
    raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {', '.join(map(str, sorted(usable)))}")


def json_file(text: str) -> Path:
    """An option's type: a file that can be written, seen before anything is measured."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: a file in a folder that can be written")
    return path


if __name__ == "__main__":
    sys.exit(main())
