"""The command ``compare``: measures, shows the interval narrowing, stops when it is decided, and says one sentence."""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from clients.load.plan.calls import called
from clients.load.plan.load_plan import RequestType
from experiments.compare.outcome import exit_code, outcome, parsed_limit, save, table
from experiments.compare.sweep import LOOKS, side, sweep
from experiments.design.arms import Arm
from experiments.design.factors import FACTORS, Level
from experiments.design.setting import Setting
from experiments.design.sweep import BLOCKS_MAX
from experiments.measure.bench import CATALOG, bench, running_at, server_command
from experiments.measure.programs import Program
from experiments.measure.progress import Progress
from experiments.results import environment
from experiments.results.files import SWEEP_FILE
from experiments.show.sentences import ratio_so_far
from experiments.sweeping import kept, measured
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import Parser, check_writable, integer
from stock_service.rpc.transports import TRANSPORTS

PROGRAM = "python -m experiments compare"

INTERRUPTED_EXIT = 130

_LOAD = ("clients", "connections", "connection", "mix", "choice", "rate_hz", "arrivals", "client")

_EPILOG = """
Factors of a setting: {factors}. Examples:
compare 'sockets' 'grpc'; compare 'sockets workers=1' 'sockets workers=16' --clients 8;
compare 'python old_server.py' 'python new_server.py' --call shop.v1.Shop/Price --data '{"name": "pear"}';
compare 127.0.0.1:5001 127.0.0.1:5002 --call shop.v1.Shop/Price --fail-if 'slower>5%'.
"""


def add_options(parser: Parser) -> None:
    """What ``compare`` takes."""
    add = parser.add_argument
    text = " ".join(_EPILOG.split()).replace("{factors}", ", ".join(FACTORS))
    parser.epilog = f"{text} {parser.epilog or ''}"
    add("a", metavar="A", help="a setting ('sockets workers=8'), a command that prints 'ready HOST:PORT', or HOST:PORT")
    add("b", metavar="B", help="what it is compared with, likewise")
    add("--transport", choices=TRANSPORTS, default="grpc", help="what commands and addresses speak")
    for name in _LOAD:
        factor = FACTORS[name]
        default = "lean" if name == "client" else factor.default
        shown_default = "none" if default is None else default
        help_text = f"{factor.help}: {factor.kind.allowed} (default: {shown_default})"
        add(f"--{name.replace('_', '-')}", dest=name, metavar="LEVEL", help=help_text)
    add("--call", metavar="METHOD", help="any unary gRPC method, as package.Service/Method, instead of --mix")
    add("--data", default="{}", metavar="JSON", help="the request of --call, as protobuf has it in JSON")
    add("--proto", type=Path, metavar="FILE", help="declares --call's service (default: ask the server by reflection)")
    add("--catalog", type=Path, default=CATALOG, metavar="FILE", help="stocks that our servers serve, in TOML")
    add(
        "--blocks",
        type=integer(1, BLOCKS_MAX),
        metavar="N",
        help=f"measure exactly N (default: until decided, {LOOKS[-1]} at most)",
    )
    add("--seed", type=integer(0, 2**31 - 1), default=1, metavar="N", help="chooses requests and the order of slices")
    add("--out", type=Path, metavar="FOLDER", help="keeps every block there; 'verify' reads it")
    add("--json", type=Path, metavar="FILE", help="where to write the outcome")
    add(
        "--fail-if",
        metavar="LIMIT",
        help="'slower>5%%' or 'faster>5%%': exit 4 where B is beyond it, 5 where that is not known",
    )


def run(options: argparse.Namespace) -> int:
    """Compares; gives the exit code. Blocks. Raises UsageError, ProgramFailed, a Fault."""
    limit = None if options.fail_if is None else parsed_limit(options.fail_if)
    check_writable("--json", options.json)
    load: dict[str, Level] = {"client": "lean"}
    load |= {name: FACTORS[name].read(given) for name in _LOAD if (given := getattr(options, name)) is not None}
    sides = [side(words, options.transport, load) for words in (options.a, options.b)]
    _check(options, sides)
    requests: tuple[RequestType, ...] = ()
    if options.call is not None:
        requests = (_asked(sides[0], options),)
        sides = [each.but(mix=requests[0].name) for each in sides]
    looks = LOOKS if options.blocks is None else (options.blocks,)
    planned = sweep(sides[0], sides[1], looks, options.seed, None if limit is None else limit.ratio)
    with tempfile.TemporaryDirectory() as scratch:
        folder, code = options.out or Path(scratch), 0
        try:
            measured(planned, bench(options.catalog, requests), folder, Progress(planned, sys.stderr), ratio_so_far)
        except KeyboardInterrupt:
            code = INTERRUPTED_EXIT
            if not (folder / SWEEP_FILE).exists():
                return code
        judgement = kept(folder)
        found = outcome(judgement, environment.load(folder))
    print("\n".join([found.sentence, *table(found)]))
    if options.json is not None:
        save(found, options.json)
    return code or exit_code(judgement, limit)


def _check(options: argparse.Namespace, sides: Sequence[Setting]) -> None:
    """Refuses what does not go together. Raises UsageError."""
    other = [name for name, level in sides[0].of("load") if sides[1][name] != level and name != "client"]
    if other:
        shown = ", ".join(f"{name}={each.text(name)}" for name in other for each in sides)
        raise UsageError("B", shown, f"the same load on both sides, as --{other[0].replace('_', '-')}")
    if options.proto is not None and options.call is None:
        raise UsageError("--proto", str(options.proto), "with --call")
    if options.arrivals is not None and sides[0]["rate_hz"] is None:
        raise UsageError("--arrivals", options.arrivals, "with --rate-hz")
    if options.call is not None and any(each["transport"] != "grpc" for each in sides):
        raise UsageError("--call", options.call, "two servers that speak gRPC")
    if options.call is not None and not re.fullmatch(r"[\w.]+/\w+", options.call):
        raise UsageError("--call", options.call, "package.Service/Method")
    if options.out is not None and options.out.exists() and any(options.out.iterdir()):
        raise UsageError("--out", str(options.out), "a folder that is new or empty")


def _asked(of: Setting, options: argparse.Namespace) -> RequestType:
    """The method of ``--call``, as a running server or its file declares it. A command is started for it."""
    if options.mix is not None:
        raise UsageError("--call", options.call, "no --mix beside it")
    server = Arm(of).server
    at = running_at(server)
    if options.proto is not None or at is not None:
        return called(at or ("", 0), options.call, options.data, options.proto)
    with Program(server_command(server, options.catalog)) as program:
        return called(program.ready(), options.call, options.data)
