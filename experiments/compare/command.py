"""The command ``compare``: measures two servers until their ratio is decided, and prints one sentence and a table."""

import argparse
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clients.connecting import add_credentials, credential_files, credentials
from clients.load.options import check_reflection
from clients.load.plan.calls import called
from clients.load.plan.load_plan import CLIENT_KINDS, REFLECTING, RequestType
from experiments.compare.load import check, mean_response_s, option
from experiments.compare.outcome import (
    BEYOND_EXIT,
    UNDECIDED_EXIT,
    Limit,
    exit_code,
    outcome,
    parsed_limit,
    save,
    table,
    undecided,
)
from experiments.compare.sweep import LOOKS, is_running, side, sweep
from experiments.design.arms import Arm
from experiments.design.factors import FACTORS, TLS, TOKEN, Factor
from experiments.design.levels import Level, shown
from experiments.design.limits import BLOCKS_MAX
from experiments.design.setting import WORDS, Setting, setting
from experiments.measure.bench import CATALOG, Bench, bench, exits, is_somebodys, running_at, server_command
from experiments.measure.load_programs import present
from experiments.measure.programs import Program
from experiments.measure.progress import Progress
from experiments.measure.running import listening
from experiments.results import environment
from experiments.results.files import SWEEP_FILE
from experiments.show.content import judged
from experiments.show.sentences import ratio_so_far
from experiments.sweeping import add_seed, measured, seed_for
from stock_service.rpc.errors import UsageError
from stock_service.rpc.process.command_line import USAGE_EXIT, Parser, check_writable, integer
from stock_service.rpc.tls import NO_CREDENTIALS, ClientCredentials
from stock_service.rpc.transports import TRANSPORTS
from stock_service.rpc.transports import load as load_transport

INTERRUPTED_EXIT = 130

DEFAULT_LOAD = "lean"

EXITS = {
    0: "compared; with --fail-if: B is within the limit",
    1: "a server or a load failed",
    USAGE_EXIT: "bad usage, options that a server refuses, or a file or program that does not exist",
    BEYOND_EXIT: "--fail-if: B is beyond the limit",
    UNDECIDED_EXIT: "--fail-if: it is not known whether B is beyond the limit",
    INTERRUPTED_EXIT: "Ctrl-C; the result so far is shown",
}
"""Meaning of each exit code."""

BEGINS = (
    "Each block starts {started} again. A block takes some 6 s, and some 19 s where the load runs in windows, as load "
    "programs do. A busy machine or slow servers make a block longer."
)
"""First line of the progress. ``compare`` prints this line at once, since nothing else is printed until the servers of
the first block have started."""

RUNNING = "Both servers are given by address: nothing is started, and the verdict is on these two processes."
"""First line of the progress if both servers run already."""

UNEQUAL = (
    "{running} runs already and keeps its cores; {started} is started on one core. "
    "Give both by address, or both by command, for equal conditions."
)
"""Hint for the case that one server runs already, and ``compare`` starts the other server."""

UNREAD = "{side}'s processor time cannot be read: {why}."
"""Hint that the processor time of a running server cannot be read, with the reason."""

ONE_AT_A_TIME = (
    "One connection sends one request at a time, so one thread answers all: {what} can hardly differ. "
    "Give --connections 8, or more connections than threads, to see a difference."
)
"""Hint for a load with one connection, if A and B may differ only in their thread pools. One connection keeps only one
thread busy."""

ON_DISK = (
    "A stock server that was started by hand keeps its stocks on disk. A server that is started here keeps them in "
    "memory. A Trade on disk takes 3 to 4 times as long as a Lookup: start the server with --store memory to leave the "
    "disk out."
)
"""Hint for the case that trades are sent to a server that runs already."""

_OF_A_POOL = {"workers", "executor"}
"""Factors of a thread pool. These factors have an effect only if several requests are concurrent."""

_DEFAULTS = dict(setting().levels)

_LOAD = tuple(factor for factor in FACTORS.values() if factor.of == "load")

_EPILOG = """\
{words}

Words of a setting: a transport, then FACTOR=LEVEL. Other factors are at their defaults.
{factors}

Loads in slices of 20 ms:
  lean             our own client, straight on a socket
  library          the transport's own client
Loads in windows of 0.5 s, for servers so fast that lean would be the limit:
  c                a program in C, for sockets
  c-http           a program in C, for routes of HTTP/1.1
  h2load           nghttp2's program, for gRPC
  grpc-go          a program in Go, for gRPC, with --headers and --in-flight

Examples:
  compare sockets grpc
  compare 'sockets workers=1' 'sockets workers=16' --connections 16 --load c
  compare 'python old.py' 'python new.py' --call shop.v1.Shop/Price --fail-if 'slower>5%'

Exit codes:
{exits}"""


def add_options(parser: Parser) -> None:
    """Adds the options of ``compare``."""
    add = parser.add_argument
    parser.epilog = _epilog()
    add("a", metavar="A", help="a setting ('sockets workers=8'), a command that prints 'ready HOST:PORT', or HOST:PORT")
    add("b", metavar="B", help="the other server, in one of the three forms of A")
    spoken = f"the transport of commands and addresses: {', '.join(TRANSPORTS)}"
    add("--transport", choices=TRANSPORTS, metavar="NAME", default="grpc", help=spoken)
    for factor in _LOAD:
        default = DEFAULT_LOAD if factor.name == "client" else factor.default_among(_DEFAULTS)
        help_text = f"{factor.help}: {factor.kind.levels} (default: {shown(default)})"
        add(option(factor.name), dest=factor.name, metavar="LEVEL", help=help_text)
    add("--call", metavar="METHOD", help="any unary gRPC method, as package.Service/Method, instead of --mix")
    add("--data", metavar="JSON", help="the request of --call, as protobuf has it in JSON (default: {})")
    add("--proto", type=Path, metavar="FILE", help="declares --call's service (default: ask the server by reflection)")
    add_credentials(parser)
    add("--catalog", type=Path, default=CATALOG, metavar="FILE", help="stocks that our servers serve, in TOML")
    exactly = f"exact number of blocks (default: until decided, {LOOKS[-1]} at most)"
    add("--blocks", type=integer(1, BLOCKS_MAX), metavar="N", help=exactly)
    add_seed(parser)
    add("--out", type=Path, metavar="FOLDER", help="folder that keeps every block; 'verify' reads it")
    add("--json", type=Path, metavar="FILE", help="file for the result, in JSON")
    limits = "'slower>5%%' or 'faster>5%%': exit 4 where B is beyond the limit, 5 where this is not known"
    add("--fail-if", metavar="LIMIT", help=limits)


def run(options: argparse.Namespace) -> int:
    """Compares the two servers, and blocks until the comparison has ended. Returns the exit code. Raises UsageError,
    ProgramFailed, a Fault."""
    limit = None if options.fail_if is None else parsed_limit(options.fail_if)
    check_writable("--json", options.json)
    load: dict[str, Level] = {"client": DEFAULT_LOAD}
    for factor in _LOAD:
        if (given := getattr(options, factor.name)) is not None:
            load[factor.name] = factor.read(given, option(factor.name))
    sides = [side(words, options.transport, load) for words in (options.a, options.b)]
    _check(options, sides)
    shown = _credentials(options, sides)
    if shown.authority is not None or shown.token:
        access = TOKEN if shown.authority is None else TLS
        sides = [each.but(access=access) if is_somebodys(dict(each.levels)) else each for each in sides]
    requests: tuple[RequestType, ...] = ()
    if options.call is not None:
        requests = (_asked(sides[0], options),)
        sides = [each.but(mix=options.call) for each in sides]
    with present([sides[0].text("client")], option("client")) as load_programs:
        for line in hints(sides):
            print(line, file=sys.stderr, flush=True)
        options.seed = seed_for(options.seed)
        on = replace(bench(options.catalog, requests, load_programs, options.seed), credentials=shown)
        return _compared(options, sides, on, limit)


def hints(sides: Sequence[Setting]) -> Iterator[str]:
    """Lines that are printed before the first block. The first line names the servers that are started. Further lines
    warn of unequal conditions, and of a load under which A and B can hardly differ."""
    started = [name for name, each in zip("AB", sides, strict=True) if not is_running(each)]
    yield BEGINS.format(started="both servers" if len(started) == 2 else started[0]) if started else RUNNING
    if len(started) == 1:
        yield UNEQUAL.format(running="AB".replace(started[0], ""), started=started[0])
    for name, each in zip("AB", sides, strict=True):
        at = running_at(Arm(each).server)
        if at is not None and (why := listening(at).unread):
            yield UNREAD.format(side=name, why=why)
    a, b = sides
    if len(started) < len(sides) and "trade" in a.text("mix"):
        yield ON_DISK
    differ = set(a.unlike(b))
    is_one = a["clients"] == a["connections"] == 1 and a["rate_hz"] is None
    if is_one and differ and differ <= _OF_A_POOL:
        yield ONE_AT_A_TIME.format(what=", ".join(sorted(differ)))
    elif is_one and all(is_somebodys(dict(each.levels)) for each in sides):
        yield ONE_AT_A_TIME.format(what="two pools")


def _compared(options: argparse.Namespace, sides: Sequence[Setting], on: Bench, limit: Limit | None) -> int:
    """Measures, writes the files, and prints the result. Returns the exit code."""
    looks = LOOKS if options.blocks is None else (options.blocks,)
    ratio = None if limit is None else limit.ratio
    planned = sweep(sides[0], sides[1], looks, options.seed, ratio, mean_response_s(sides, on, sys.stderr))
    planned = replace(planned, fixed=options.blocks is not None)
    with tempfile.TemporaryDirectory() as scratch:
        folder, code = options.out or Path(scratch), 0
        try:
            judgement = measured(planned, on, folder, Progress(planned, sys.stderr), ratio_so_far)
        except KeyboardInterrupt:
            code = INTERRUPTED_EXIT
            if not (folder / SWEEP_FILE).exists():
                return code
            judgement = judged(folder)
        found = outcome(judgement, environment.load(folder))
    told = (found.sentence, undecided(judgement, limit), *table(found))
    try:
        if options.json is not None:  # before the print, which fails if the reader of the output has gone
            save(found, options.json)
    finally:  # a full disk loses no result
        print("\n".join(line for line in told if line))
    return code or exit_code(judgement, limit)


def _check(options: argparse.Namespace, sides: Sequence[Setting]) -> None:
    """Raises UsageError for wrong values of options, for missing options, and for options that exclude each other."""
    check(*sides)
    for name in ("data", "proto"):
        if getattr(options, name) is not None and options.call is None:
            raise UsageError(f"--{name}", str(getattr(options, name)), "with --call")
    if options.proto is not None and not options.proto.is_file():
        raise UsageError("--proto", str(options.proto), "a file that exists")
    if options.arrivals is not None and sides[0]["rate_hz"] is None:
        raise UsageError("--arrivals", options.arrivals, "with --rate-hz")
    if options.call is not None and any(each["transport"] not in REFLECTING for each in sides):
        raise UsageError("--call", options.call, "for two servers that speak gRPC")
    if options.call is not None and not re.fullmatch(r"[\w.]+/\w+", options.call):
        raise UsageError("--call", options.call, "package.Service/Method")
    if options.out is not None and options.out.exists() and any(options.out.iterdir()):
        raise UsageError("--out", str(options.out), "a folder that is new or empty")


def _credentials(options: argparse.Namespace, sides: Sequence[Setting]) -> ClientCredentials:
    """Credentials and metadata of the clients, equal for both sides. Raises UsageError.

    Clients send credentials only to servers that are given as a command or an address. Clients send metadata to every
    server.
    """
    files = [(option, str(file)) for option, file in credential_files(options).items() if file is not None]
    given = [*files, *(("--metadata", "=".join(sent)) for sent in options.metadata or ())]
    if not given:
        return NO_CREDENTIALS
    somebodys = [each for each in sides if is_somebodys(dict(each.levels))]
    if files and not somebodys:
        raise UsageError(*files[0], f"a command or an address; our own servers take access={TLS} or access={TOKEN}")
    if sides[0]["client"] not in CLIENT_KINDS:
        raise UsageError(*given[0], f"--load {' or '.join(CLIENT_KINDS)}; {sides[0].text('client')} shows none")
    check_reflection(options)
    *_, shown = (credentials(options, running_at(Arm(each).server)) for each in somebodys or sides)
    if shown.metadata:
        for transport in TRANSPORTS.keys() & {each.text("transport") for each in sides}:
            load_transport(transport).codec(("", 0), metadata=shown.metadata)
    return shown


def _asked(of: Setting, options: argparse.Namespace) -> RequestType:
    """Request type for ``--call``: the full name of the method, and the payload. Raises UsageError.

    The file of ``--proto`` describes the method. Without this file, the server describes the method by reflection. A
    server that does not run yet is started for the reflection, and is then stopped.
    """
    if options.mix is not None:
        raise UsageError("--call", options.call, "no --mix beside it")
    server = Arm(of).server
    at = running_at(server)
    if options.proto is not None or at is not None:
        asked = called(at or ("", 0), options.call, options.data or "{}", options.proto)
    else:
        with Program(server_command(server, options.catalog), exits=exits(server)) as program:
            asked = called(program.ready(), options.call, options.data or "{}")
    return replace(asked, name=options.call)


def _epilog() -> str:
    factors = "\n".join(_words(each) for each in FACTORS.values() if each.of == "server")
    exits = "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXITS.items())
    return _EPILOG.format(words=WORDS, factors=factors, exits=exits)


def _words(of: Factor) -> str:
    """Help on a factor: its levels and its default, in lines of at most 80 characters. Lines break after a level."""
    default = "" if callable(of.default) else f" (default: {shown(of.default)})"  # else set by the transport
    words = f"{of.name}={of.kind.levels}{default}".replace("|", "| ")
    filled = textwrap.fill(words, 80, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return filled.replace("| ", "|")
