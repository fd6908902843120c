"""The load client's command line: the options, the types of the options, and the load plan that the options make."""

import argparse
import os
import re
import secrets
from importlib.util import find_spec
from pathlib import Path

from clients.connecting import FAULT_EXIT, add_options, credentials, server_address
from clients.load.output import is_stream
from clients.load.plan.load_plan import (
    CHOICES,
    CLIENT_KINDS,
    CLIENTS_MAX,
    CONNECTION_POLICIES,
    CONNECTIONS_MAX,
    DURATION_S_MAX,
    RATE_HZ_MAX,
    RATE_HZ_MIN,
    REFLECTING,
    REQUESTS,
    WEIGHT_MAX,
    WEIGHT_MIN,
    ZIPF_S_MAX,
    ZIPF_S_MIN,
    Check,
    LoadPlan,
    RequestType,
)
from clients.load.plan.schedule import ARRIVALS, Arrivals
from clients.load.record.result import ALL
from clients.load.run.search import HALVINGS_MAX, TRIALS_MAX
from clients.load.thresholds import Condition, parse
from clients.price_updater import stock_name
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, address, integer, number, seconds
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.model import QUANTITY_MAX

POISSON: Arrivals = "poisson"
"""Default arrival process of an open loop."""

ZIPF_S = 1.0
"""Default exponent of the Zipf distribution of the stocks."""

ERROR_EXIT = 1
"""Exit code if requests ended in errors."""

BROKEN_EXIT = 4
"""Exit code if a limit was not kept, or if the run has too few replies to show that a limit was kept."""

REFUSED_EXIT = 5
"""Exit code if a run on several hosts was refused because of one of the hosts."""

INTERRUPTED_EXIT = 130
"""Exit code if Ctrl-C or SIGTERM ended the run. Shells use the same code."""

EXITS = {
    0: "every request was answered and every limit kept, or a rate was found",
    ERROR_EXIT: "requests ended in errors",
    USAGE_EXIT: "a bad option, or a file that cannot be written",
    FAULT_EXIT: "no client could connect, or in a run no server that speaks the transport replied",
    BROKEN_EXIT: "a --fail-if holds; or requests were sent off schedule, so that it is unknown if limits are kept; "
    "or --find-rate found no rate; or --check did not find the run linearizable",
    REFUSED_EXIT: "a host of --cluster died, fell silent, lagged or began again: the run has no result",
    INTERRUPTED_EXIT: "Ctrl-C or SIGTERM; the measurements until then are shown and written",
}
"""Meaning of each exit code."""

DESCRIPTION = "Sends requests in a closed loop, or with --rate-hz in an open loop, and measures their times."


def parser(program: str) -> Parser:
    """Makes the parser of the load client's options. ``program``: name of the program in its help."""
    made = Parser(program, DESCRIPTION, EXITS)
    add_options(made)
    _add_load(made)
    _add_requests(made)
    _add_measuring(made)
    _add_results(made)
    return made


def _add_load(made: Parser) -> None:
    """Adds options of the clients and of their schedule."""
    add = made.add_argument_group("the load").add_argument
    add(
        "--clients",
        nargs="+",
        type=integer(1, CLIENTS_MAX),
        default=[1],
        metavar="N",
        help="client processes; one run for each number",
    )
    add(
        "--connections-per-client",
        type=integer(1, CONNECTIONS_MAX),
        default=1,
        metavar="N",
        help="connections of each process",
    )
    add(
        "--client",
        choices=CLIENT_KINDS,
        default="lean",
        help="lean: our client on a socket; library: the client of the transport's library",
    )
    add(
        "--connection",
        choices=CONNECTION_POLICIES,
        default="kept-alive",
        help="one connection for all requests, or a new connection for each request",
    )
    add("--rate-hz", type=number(RATE_HZ_MIN, RATE_HZ_MAX), metavar="R", help="open loop: requests due per second")
    add("--arrivals", choices=ARRIVALS, help=f"arrival process, with --rate-hz or --find-rate (default: {POISSON})")


def _add_requests(made: Parser) -> None:
    """Adds options of the requests."""
    add = made.add_argument_group("the requests").add_argument
    add("--mix", type=mix, help="request types and weights, such as lookup=0.5,trade=0.5 (default: lookup)")
    add("--call", type=method, metavar="METHOD", help="replaces --mix: a unary gRPC method, package.Service/Method")
    add("--data", metavar="JSON", help="the request of --call, in protobuf's JSON (default: {})")
    add("--proto", type=Path, metavar="FILE", help="declares --call's service (default: ask the server by reflection)")
    stocks = [stock.name for stock in DEFAULT_STOCKS]
    add("--stocks", nargs="+", type=stock_name, default=stocks, metavar="NAME", help="stocks to choose from")
    add("--choice", choices=CHOICES, default="uniform", help="how a stock is chosen; zipf prefers the first stocks")
    exponent = number(ZIPF_S_MIN, ZIPF_S_MAX)
    add("--zipf-s", type=exponent, metavar="S", help=f"the exponent, with --choice zipf (default: {ZIPF_S:g})")
    add("--quantity", type=integer(1, QUANTITY_MAX), default=1, metavar="N", help="shares in one trade")
    add("--seed", type=integer(0, 2**63 - 1), default=0, metavar="N", help="determines requests, stocks, arrivals")


def _add_measuring(made: Parser) -> None:
    """Adds options of durations and cores."""
    add = made.add_argument_group("the measuring").add_argument
    add(
        "--warm-up-s",
        type=seconds(0, DURATION_S_MAX),
        default=1.0,
        metavar="S",
        help="seconds of load before the measurement; not recorded",
    )
    add("--duration-s", type=seconds(0.01, DURATION_S_MAX), default=10.0, metavar="S", help="measured time, in seconds")
    many = "send from all workers of the Dask cluster with this scheduler; --clients counts the clients of all hosts"
    add("--cluster", type=address, metavar="HOST:PORT", help=many)
    add("--cpus", nargs="+", type=cpu, metavar="CPU", help="cores for the clients (default: any)")
    add("--no-floor", action="store_true", help="do not measure the client's own share of the times (1 s)")
    trials = (
        f"search for the highest rate at which --p99-ms and every --fail-if are kept, in at most {TRIALS_MAX} trials; "
        f"at low rates a trial lasts up to {2**HALVINGS_MAX} times --duration-s"
    )
    add("--find-rate", action="store_true", help=trials)
    add("--p99-ms", type=number(0.001, 60_000), metavar="MS", help="limit of the p99 response time, for --find-rate")


def _add_results(made: Parser) -> None:
    """Adds options of the results."""
    add = made.add_argument_group("the results").add_argument
    checked = (
        "keep requests and replies, and check that some sequential order of the requests explains the replies; "
        "no other program may change the stocks meanwhile"
    )
    add("--check", action="store_true", help=checked)
    add("--history", type=output_file, metavar="FILE", help="where --check writes requests and replies, as JSON")
    add("--json", type=output_file, metavar="FILE", help="where to write all results, as JSON")
    add("--csv", type=output_file, metavar="FILE", help="where to write a line for each run and request type")
    add("--hlog", type=output_file, metavar="FILE", help="where to write the histograms, in HdrHistogram's format")
    add(
        "--fail-if",
        action="append",
        type=condition,
        metavar="COND",
        help="exit with 4 if this holds, such as 'p99>20ms' or 'errors>0.1%%', or if the sends were off schedule; "
        "may be repeated",
    )


def check(options: argparse.Namespace) -> None:
    """Raises UsageError if two options exclude each other, or if an option has no effect because another option is
    missing."""
    if options.arrivals is not None and options.rate_hz is None and not options.find_rate:
        raise UsageError("--arrivals", options.arrivals, "with --rate-hz R or --find-rate, which make an open loop")
    if options.zipf_s is not None and options.choice != "zipf":
        raise UsageError("--zipf-s", options.zipf_s, f"with --choice zipf: {options.choice} has no exponent")
    _check_call(options)
    _check_history(options)
    _check_cluster(options)
    names = asked_mix(options)
    for limit in options.fail_if or ():
        if limit.request != ALL and limit.request not in names:
            raise UsageError("--fail-if", limit.text, f"requests that are sent: {', '.join(names)}")
    taken: dict[Path, str] = {}
    for option in ("json", "csv", "hlog", "history"):
        path: Path | None = getattr(options, option)
        if path is None or is_stream(path):
            continue
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise UsageError(f"--{option}", str(path), f"a different file than --{other}")


def _check_history(options: argparse.Namespace) -> None:
    """Raises UsageError if an option excludes ``--check`` or ``--history``."""
    if options.check:
        for option in ("rate_hz", "find_rate", "call"):
            if getattr(options, option):
                given = f"with --{option.replace('_', '-')}"
                raise UsageError("--check", given, "a closed loop of the stock service's requests")
    if options.history is not None and not (options.check and len(options.clients) == 1):
        raise UsageError("--history", str(options.history), "with --check, and with one number of --clients")


def _check_cluster(options: argparse.Namespace) -> None:
    """Raises UsageError if an option excludes ``--cluster``."""
    if options.cluster is None:
        return
    refused = {
        "check": "without --cluster: a check compares times, and each host has its own clock",
        "find_rate": "without --cluster: a host that lags ends the search",
        "cpus": "without --cluster: start each host's worker with taskset",
        "tls_ca": "without --cluster: Dask would send credentials in the clear",
        "token_file": "without --cluster: Dask would send credentials in the clear",
    }
    for option, allowed in refused.items():
        if getattr(options, option):
            raise UsageError(f"--{option.replace('_', '-')}", "with --cluster", allowed)
    if find_spec("distributed") is None:
        raise UsageError("--cluster", "no Dask here", "with the library of the extra cluster (pip install distributed)")


def _check_call(options: argparse.Namespace) -> None:
    """Raises UsageError if an option excludes ``--call``, or an option has no effect without ``--call``."""
    if options.call is None:
        for option in ("data", "proto"):
            if getattr(options, option) is not None:
                raise UsageError(f"--{option}", str(getattr(options, option)), "with --call package.Service/Method")
    elif options.mix is not None:
        raise UsageError("--mix", ",".join(options.mix), "without --call: only one option may name the requests")
    check_reflection(options)
    if options.call is not None and options.proto is None and options.transport not in REFLECTING:
        raise UsageError(
            "--call", options.call, "with a transport that speaks gRPC, or --proto FILE: only gRPC has reflection"
        )


def check_reflection(options: argparse.Namespace) -> None:
    """Raises UsageError for ``--call`` without ``--proto`` if the server needs credentials. Without ``--proto`` the
    client asks the server for the method's messages by reflection, which sends no credentials."""
    if options.call is not None and options.proto is None and (options.tls_ca or options.token_file):
        raise UsageError("--call", options.call, "with --proto FILE: reflection is asked without credentials")


def asked_mix(options: argparse.Namespace) -> dict[str, float]:
    """Weight of each request type, by the type's name."""
    if options.call is not None:
        return {options.call.partition("/")[2]: 1.0}
    return options.mix or {"lookup": 1.0}


def request_types(options: argparse.Namespace) -> tuple[RequestType, ...]:
    """Request types of ``--call``. May ask the server for the method's messages, and so block. Raises UsageError and
    Fault."""
    if options.call is None:
        return ()
    from clients.load.plan.calls import called  # loads grpcio, which takes a fifth of the program's start

    return (called(server_address(options), options.call, options.data or "{}", options.proto, options.timeout_s),)


def plan(options: argparse.Namespace, clients: int, own: tuple[RequestType, ...] = ()) -> LoadPlan:
    """Load plan that the options ask for. ``own``: request types of ``--call``. Raises UsageError."""
    return LoadPlan(
        transport=options.transport,
        address=server_address(options),
        clients=clients,
        mix=asked_mix(options),
        stocks=tuple(options.stocks),
        warm_up_s=options.warm_up_s,
        duration_s=options.duration_s,
        connections_per_client=options.connections_per_client,
        connection=options.connection,
        timeout_s=options.timeout_s,
        seed=options.seed,
        cpus=None if options.cpus is None else tuple(options.cpus),
        quantity=options.quantity,
        request_types=own,
        client=options.client,
        credentials=credentials(options),
        rate_hz=options.rate_hz,
        arrivals=options.arrivals or POISSON,
        choice=options.choice,
        zipf_s=options.zipf_s or ZIPF_S,
        check=Check(secrets.token_hex(6)) if options.check else None,
    )


def mix(text: str) -> dict[str, float]:
    """Parses the weights of the requests, such as ``lookup=0.5,trade=0.5``. A request without a weight, such as
    ``lookup``, has the weight 1."""
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


def method(text: str) -> str:
    """Parses the name of a method: ``package.Service/Method``."""
    if re.fullmatch(r"[A-Za-z_][\w.]*/[A-Za-z_]\w*", text, re.ASCII):
        return text
    raise argparse.ArgumentTypeError(f"got {text!r}, allowed: package.Service/Method")


def cpu(text: str) -> int:
    """Parses the number of a core. Raises ArgumentTypeError for a core that this process may not use."""
    usable = os.sched_getaffinity(0)
    if text.isascii() and text.isdigit() and int(text) in usable:
        return int(text)
    raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {', '.join(map(str, sorted(usable)))}")


def output_file(text: str) -> Path:
    """Parses the path of a file to write. Tests if the file can be written, so that an unusable path is found before
    the measurement."""
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
    """Parses a condition of ``--fail-if``, such as ``p99>20ms`` (see ``thresholds``)."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed: {error}") from error
