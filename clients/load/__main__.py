"""``python -m clients.load``: a closed-loop load, one process for each client, for each number of clients in turn.

Standard output has a summary for each; ``--json FILE`` all of it, histograms included. Exit code 0; 1 if a request got
no valid answer, 2 for bad usage, 3 if the server could not be reached, 130 after Ctrl-C, which keeps what was measured.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from clients.connecting import FAULT_EXIT, add_options, explained, server_address
from clients.load import fleet
from clients.load.live import View
from clients.load.plan import CLIENTS_MAX, CONNECTION_POLICIES, CONNECTIONS_MAX, DURATION_S_MAX, REQUESTS, LoadPlan
from clients.load.result import LoadResult, as_json
from clients.load.summary import summary
from stock_service.catalog_file import DEFAULT_STOCKS
from stock_service.command_line import Parser, integer, refuse, seconds
from stock_service.errors import Fault, UsageError
from stock_service.model import QUANTITY_MAX

PROGRAM = "python -m clients.load"

ERRORS_EXIT = 1
INTERRUPTED_EXIT = 130
"""128 + SIGINT, as shells have it."""

CPUS_MAX = 4096
"""Cores that Linux can number, at most."""


def main(arguments: Sequence[str]) -> int:
    """Runs the load that the arguments describe; gives the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        plans = [_plan(options, clients) for clients in options.clients]
        _check_writable(options.json)
        _check_cpus(options.cpus)
    except UsageError as error:
        refuse(PROGRAM, error)
    results: list[LoadResult] = []
    code = 0
    with View(Console(stderr=True)) as view:
        for plan in plans:
            view.begin(plan.clients)
            try:
                result = fleet.run(plan, view.show)
            except Fault as fault:
                print(f"{PROGRAM}: {explained(fault, plan.transport)}", file=sys.stderr)
                code = FAULT_EXIT
                break
            results.append(result)
            print(summary(result), end="\n\n", flush=True)
            if result.errors:
                code = ERRORS_EXIT
            if result.interrupted:
                code = INTERRUPTED_EXIT
                break
    if options.json is not None and results:
        options.json.write_text(json.dumps([as_json(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return code


def _parser() -> Parser:
    parser = Parser(PROGRAM, "Sends requests as fast as they are answered, and says how long each took.")
    add_options(parser)
    add = parser.add_argument
    add(
        "--clients", type=integer(1, CLIENTS_MAX), nargs="+", default=[1], metavar="N", help="processes; each N in turn"
    )
    add("--mix", type=_mix, default={"lookup": 1.0}, metavar="MIX", help="requests: lookup, or lookup=0.5,trade=0.5")
    add(
        "--connections-per-client",
        type=integer(1, CONNECTIONS_MAX),
        default=1,
        metavar="N",
        help="connections that each process holds, each a closed loop of its own",
    )
    add("--connection", choices=CONNECTION_POLICIES, default="kept-alive", help="how long a connection is used")
    add("--warm-up-s", type=seconds(0, DURATION_S_MAX), default=1.0, help="time before the measured window")
    add("--duration-s", type=seconds(0.01, DURATION_S_MAX), default=5.0, help="the measured window")
    add("--stocks", nargs="+", default=[stock.name for stock in DEFAULT_STOCKS], metavar="NAME", help="what to ask for")
    add("--quantity", type=integer(1, QUANTITY_MAX), default=1, help="shares in one trade")
    add("--seed", type=integer(0, 2**31 - 1), default=0, help="of what is sent")
    add(
        "--cpus", type=integer(0, CPUS_MAX - 1), nargs="+", metavar="CORE", help="cores the clients may use (else: any)"
    )
    add("--json", type=Path, metavar="FILE", help="where to write everything that was measured")
    return parser


def _mix(text: str) -> Mapping[str, float]:
    """``lookup`` or ``lookup=0.5,trade=0.5`` as weights by request type."""
    mix: dict[str, float] = {}
    for part in text.split(","):
        name, equals, weight = part.partition("=")
        try:
            value = float(weight) if equals else 1.0
        except ValueError:
            value = 0.0
        if name not in REQUESTS or name in mix or not 0 < value < float("inf"):
            allowed = f"some of {', '.join(REQUESTS)}, each once, with weights over 0, such as lookup=0.5,trade=0.5"
            raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {allowed}")
        mix[name] = value
    return mix


def _plan(options: argparse.Namespace, clients: int) -> LoadPlan:
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


def _check_writable(file: Path | None) -> None:
    """Refuses a file that cannot be written before anything is measured."""
    if file is None:
        return
    try:
        file.touch()
    except OSError as error:
        raise UsageError("--json", str(file), f"a file that can be written ({error.strerror})") from error


def _check_cpus(cpus: Sequence[int] | None) -> None:
    """Refuses cores that this process may not use."""
    allowed = os.sched_getaffinity(0)
    if cpus is not None and not allowed.issuperset(cpus):
        given = " ".join(map(str, cpus))
        raise UsageError("--cpus", given, f"some of {' '.join(map(str, sorted(allowed)))}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
