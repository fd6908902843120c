"""The command ``recommend``: advice on the number of workers, for a described service, a running server, or a command.

Standard output has the advice, standard error has the progress. Advice on a running server or a command takes 90 s at
most. Advice on a described service takes seconds. For demands that no real service has, the advice may take longer.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import msgspec

from clients.connecting import add_credentials, credentials
from clients.load.options import check_reflection
from clients.load.plan.calls import called
from clients.load.plan.load_plan import REFLECTING, RequestType
from experiments.design.demands import Demands
from experiments.measure.bench import CATALOG, stocks_of
from experiments.recommend import started, words
from experiments.recommend.advice import Wish, advise
from experiments.recommend.asking import Asked
from experiments.recommend.measured import of_command, of_running
from experiments.recommend.seen import Found
from experiments.results.files import write_at_once
from experiments.results.machine import cores
from experiments.show.figures.style import data_of
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, address, check_writable, integer, number
from stock_service.rpc.transports import TRANSPORTS, Address, load

RPC_MS = 0.15
"""Processor time in ms of an RPC without the service's own code. For gRPC in Python under load, measurements gave 0.10
to 0.17 ms."""

IO_VARIATION = 0.5
"""Default of ``--io-variation``: standard deviation ÷ mean of the wait of a described request. For example, a database
needs twice the time for some requests.
"""

OVERHEAD_S = 0.0001
"""Time in seconds that a request spends outside the server: in the client, on the wire, and for waking threads. Used
for a request that the user describes by options.
"""

EXITS = {
    0: "advised",
    1: "a server failed or does not answer",
    USAGE_EXIT: "bad usage",
    130: "Ctrl-C",
}

LOOPBACK: Address = ("127.0.0.1", 0)
"""Address in place of the addresses of servers that ``--start`` has not started yet."""

_BESIDE = (
    (("io_share", "gil_share", "io_variation", "rpc_ms"), ("service_ms",)),
    (("cores",), ("service_ms", "start")),
    (
        ("transport", "call", "data", "proto", "tls_ca", "tls_cert", "tls_key", "token_file", "metadata"),
        ("address", "start"),
    ),
)
"""Pairs of groups of options. An option of the first group may be given only with an option of the second group. The
options of the second group choose the service.
"""

_EPILOG = """\
Give one of three things:
  a described service    --service-ms, and the share of it that waits (--io-share)
  a running server       --address, and --call for a gRPC method of your own
  a command              --start, with {{workers}} and {{port}} in it. The command is started at every size.

Examples:
  recommend --service-ms 4 --io-share 0.95 --target-p99-ms 20 --rate-hz 300
  recommend --address 127.0.0.1:50051 --call shop.v1.Shop/Price --data '{{"name": "tea"}}'
  recommend --start 'python shop.py --workers {{workers}} --port {{port}}' --call shop.v1.Shop/Price

A running server is loaded by up to 128 connections, for up to a minute. Do not load a server that others use.
The rule: pools have 1, 2, 4 … 64 workers. The advice is the smallest pool within 5 % of the best rate.
With --rate-hz: the smallest pool that carries the rate, with a p99 near the largest pool's. Near is within 10 % of a
predicted p99, and within 25 % of a measured p99.

Exit codes:
{exits}"""


def add_options(parser: Parser) -> None:
    """Adds the options of ``recommend``."""
    parser.epilog = _EPILOG.format(exits="\n".join(f"  {code:<4} {meaning}" for code, meaning in EXITS.items()))
    add_credentials(parser)
    add = parser.add_argument_group("a described service").add_argument
    add("--service-ms", type=number(0.001, 60_000), metavar="MS", help="time of a request in your code, without load")
    waits = "share of this time that waits, off the processor (default: 0)"
    add("--io-share", type=number(0, 1), metavar="SHARE", help=waits)
    add("--gil-share", type=number(0, 1), metavar="SHARE", help="share of the rest that holds the GIL (default: 1)")
    varies = f"variation of waits, standard deviation ÷ mean: 0 none, 1 exponential (default: {IO_VARIATION:g})"
    add("--io-variation", type=number(0, 3), metavar="RATIO", help=varies)
    add("--rpc-ms", type=number(0, 1000), metavar="MS", help=f"processor time of the RPC itself (default: {RPC_MS:g})")
    add = parser.add_argument_group("a running server, or a command").add_argument
    add("--address", type=address, metavar="HOST:PORT", help="address of the running server")
    command = "command that starts a server: with {workers}, {processes} if the command takes them, and {port} unless "
    add("--start", metavar="COMMAND", help=f"{command}the server prints 'ready HOST:PORT'")
    spoken = f"transport of the server: {', '.join(TRANSPORTS)} (default: grpc)"
    add("--transport", choices=TRANSPORTS, metavar="NAME", help=spoken)
    add("--call", metavar="METHOD", help="a unary gRPC method, as package.Service/Method (default: a stock's lookup)")
    add("--data", metavar="JSON", help="the request of --call, as protobuf has it in JSON (default: {})")
    add("--proto", type=Path, metavar="FILE", help="declares --call's service (default: ask the server by reflection)")
    add = parser.add_argument_group("the wish").add_argument
    add("--rate-hz", type=number(0.01, 1e6), metavar="R", help="requests a second (default: the highest rate)")
    add("--target-p99-ms", type=number(0.01, 600_000), metavar="MS", help="time within which 99 of 100 replies come")
    add("--cores", type=integer(1, 1024), metavar="N", help="cores that the server may use (default: this machine's)")
    add = parser.add_argument_group("the results").add_argument
    add("--json", type=Path, metavar="FILE", help="file for the advice and all numbers, in JSON")
    add("--figure", type=Path, metavar="FILE", help="file for the figure: a name that ends in .svg or .png")


def run(options: argparse.Namespace) -> int:
    """Gives the advice. Returns the exit code. Blocks. Raises UsageError, ProgramFailed, a Fault, OSError."""
    _check(options)
    target_s = None if options.target_p99_ms is None else options.target_p99_ms / 1000
    wish = Wish(options.cores or len(cores()), options.rate_hz, target_s)
    answer: dict[str, object]  # content of the file, in s and requests/s; an infinite time is null
    if options.service_ms is not None:
        demands = described(options)
        advice = advise(demands, wish)
        lines = list(words.sentences(demands, wish, advice))
        answer = {"demands": demands, "wish": wish, "advice": advice, "sentences": lines}
        table, picture = words.table(advice), partial(words.pictured, demands, wish, advice)
    else:
        found = _measured(options, wish)
        lines = list(words.measured_sentences(wish, found))
        answer = {"wish": wish, "advice": found, "sentences": lines}
        table, picture = words.measured_table(found), partial(words.measured_picture, wish, found)
    try:
        if options.json is not None:  # before the print: the print fails if the output's reader has ended
            write_at_once(options.json, msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n")
        if options.figure is not None:
            is_png = options.figure.suffix == ".png"
            write_at_once(options.figure, data_of(picture().draw(), "png" if is_png else "svg"))
    finally:  # even with a full disk, the advice is printed
        print("\n".join([*lines, "", *table]))
    return 0


def described(options: argparse.Namespace) -> Demands:
    """Demands of a described request: the times that the request spends with the GIL, without the GIL, waiting, and
    outside the server."""
    service_s = options.service_ms / 1000
    wait_s = service_s * (options.io_share or 0.0)
    rpc_s = (RPC_MS if options.rpc_ms is None else options.rpc_ms) / 1000
    computes_s = service_s - wait_s
    gil_s = computes_s * (1.0 if options.gil_share is None else options.gil_share)
    varies = IO_VARIATION if options.io_variation is None else options.io_variation
    return Demands(gil_s + rpc_s, computes_s - gil_s, wait_s, OVERHEAD_S, wait_variation=varies)


def _measured(options: argparse.Namespace, wish: Wish) -> Found:
    if options.address is not None:
        return of_running(_asked(options, options.address), wish, _say)
    return of_command(options.start, lambda at: _asked(options, at), wish, _say)


def _asked(options: argparse.Namespace, at: Address) -> Asked:
    """Address of the server, the request to send, and the client's credentials. With ``--call`` and without
    ``--proto``, asks the server for its methods by reflection.
    """
    request: RequestType | None = None
    if options.call is not None:
        request = called(at, options.call, options.data or "{}", options.proto)
    return Asked(options.transport or "grpc", at, request, stocks_of(CATALOG), credentials(options, at))


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError for wrong values of options, for missing options, and for options that exclude each other."""
    ways = ("service_ms", "address", "start")
    subjects = [name for name in ways if getattr(options, name) is not None]
    if len(subjects) != 1:
        given = " and ".join(map(_option, subjects)) or None
        allowed = "one of --service-ms MS, --address HOST:PORT, --start COMMAND"
        raise UsageError("the service", given, allowed)
    for names, beside in _BESIDE:
        if subjects[0] not in beside:
            for name in (each for each in names if getattr(options, each) is not None):
                allowed = "beside " + " or ".join(map(_option, beside))
                raise UsageError(_option(name), str(getattr(options, name)), allowed)
    for name in ("data", "proto"):
        if getattr(options, name) is not None and options.call is None:
            raise UsageError(f"--{name}", str(getattr(options, name)), "beside --call package.Service/Method")
    if options.call is not None and (options.transport or "grpc") not in REFLECTING:
        raise UsageError("--call", options.call, "with a transport that speaks gRPC")
    check_reflection(options)
    shown = credentials(options, options.address or LOOPBACK)
    if shown.metadata:
        load(options.transport or "grpc").codec(LOOPBACK, metadata=shown.metadata)
    if options.start is not None:
        started.check_command(options.start)
    if options.figure is not None and options.figure.suffix not in (".svg", ".png"):
        raise UsageError("--figure", str(options.figure), "a name that ends in .svg or .png")
    check_writable("--json", options.json)
    check_writable("--figure", options.figure)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _say(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)
