"""Factors: the quantities that an experiment may vary, one line each in ``FACTORS``.

A level is a plain value: a text, a number, a yes or no, or nothing. A factor changes either the options that a server
is started with, or the fields of the load plan. A new factor is one value and one line in the table. It then is a
column of the results, a word of ``compare``, and a part of every arm's name. Recordings that were made before read as
if the factor had stood at its default. Left out: which levels go together. Servers and load plans refuse levels that
they lack.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from clients.load.plan.load_plan import CHOICES, CLIENT_KINDS, CLIENTS_MAX, CONNECTION_POLICIES, CONNECTIONS_MAX
from clients.load.plan.schedule import ARRIVALS
from experiments.design.faults import (
    Watched,
    few_connections,
    few_threads,
    no_update,
    not_told,
    one_thread,
    other_processes,
)
from experiments.design.levels import YES_NO, Kind, Level, Levels, number, one_of, parsed_mix, shown, whole
from experiments.peers import DEBUG, FREE_THREADED, LANGUAGES, PEER_CLIENT, PYTHON, RELEASE
from experiments.peers import TRANSPORTS as PEER_TRANSPORTS
from experiments.services import NULL, OURS, PLAIN
from experiments.services.sort import VALUES_MAX
from experiments.services.work import WORK_MS_MAX
from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.errors import UsageError
from stock_service.rpc.transports import TRANSPORTS, load
from stock_service.trading.locking import LOCKINGS

GRPC_GO = "grpc-go"
"""The load program whose header blocks may differ in each call, as those of real clients do."""

_GRPC = ("grpc", "grpc_static", "grpc_aio")

LOAD_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "c": ("sockets",),
    "c-http": ("http1",),
    "h2load": _GRPC,
    GRPC_GO: _GRPC,
}
"""Load programs that are not our own client, and the transports that each speaks."""

SAME = "same"

HEADERS: Mapping[str, tuple[str, ...]] = {
    SAME: (),
    "deadline": ("-deadline", "2s"),
    "traceparent": ("-traceparent",),
    "token": ("-token", "0123456789abcdef" * 2),
    **{f"{size}B": ("-metadata-bytes", str(size), "-metadata-new") for size in (100, 2560, 15360)},
}
"""Header blocks of a call on gRPC, by the options of ``GRPC_GO``. Metadata of a given size has a part that is new in
each call. With a deadline or a traceparent each block differs, too. A token is the same in each call."""

PROTOCOLS = tuple(dict.fromkeys((*TRANSPORTS, *PEER_TRANSPORTS)))
"""Transports of our servers, and those that only peers speak."""

PROCESSES_MAX = 16
"""Most processes of a server that is measured. On few cores more processes are not ready in the time of a start."""

OWN_EXECUTOR = "own"
"""Executor of a server that is not our own."""

EXECUTOR_NAMES: Mapping[str, str] = {"leader-followers": "leader/followers", "thread-per-task": "thread for each task"}
"""Executors whose names for people differ from their levels."""

APART, FREE, AUTO = "apart", "free", "auto"
"""Placement of server and load: a core each, or anywhere."""

SLICED_MS_MAX = 5.0
"""Longest work in a request that a slice can serve, in milliseconds."""

SLICED_LEN_MAX = 2000
"""Most numbers in a request that a slice can serve: our sorts take 5 ms for them."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor: one quantity that may vary."""

    name: str
    of: Literal["server", "load"]
    """Side that has the level. Servers at two levels of a server's factor are two processes."""
    kind: Kind
    default: Level | Callable[[Levels], Level]
    """Level where none is given: fixed, or computed from the factors before it in the table."""
    help: str
    options: Callable[[Level], Sequence[str]] = field(default=lambda _: ())
    """Options that start a server at a level that is not the default."""
    plan: Callable[[Level], Mapping[str, object]] = field(default=lambda _: {})
    """Fields of ``LoadPlan`` at a level."""
    wire: bool = False
    """True where the factor changes the bytes of a request on the wire."""
    windows: Callable[[Level], bool] = field(default=lambda _: False)
    """True for a load that cannot be served in slices at this level."""
    fault: Callable[[Levels, Watched], str | None] = field(default=lambda *_: None)
    """Fault which shows that an arm at these levels did not have its level of this factor; None for no fault."""

    def read(self, text: str, option: str | None = None) -> Level:
        """The level that a text stands for. Raises UsageError, of the factor or of an option."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise UsageError(option or self.name, text, self.kind.allowed) from error

    def default_among(self, levels: Levels) -> Level:
        """The default level, with the earlier factors at these levels."""
        return self.default(levels) if callable(self.default) else self.default


def _parse_mix(text: str) -> Level:
    parsed_mix(text)
    return text


def _parse_served(text: str) -> Level:
    if not text.strip():
        raise ValueError(text)
    return text


MEMORY, SQLITE = "memory", "sqlite"
OPEN, TOKEN, TLS = "open", "token", "tls"
"""Protection of a server: open to everybody; open to holders of a token, in the clear; open to everybody, over TLS."""

SIZE = whole(8, 1_000_000, none=True)

SERVED = Kind(
    _parse_served,
    f"{', '.join(OURS)}, {PLAIN} (a peer), {NULL} (the null server), a command that prints ready HOST:PORT, "
    "or the HOST:PORT of a running server",
    f"{'|'.join(OURS)}|{PLAIN}|{NULL}|COMMAND|HOST:PORT",
)
MIX = Kind(
    _parse_mix, "request types with weights, such as lookup or lookup=0.5,trade=0.5", "lookup|trade|update[=WEIGHT],..."
)


def _option(name: str) -> Callable[[Level], Sequence[str]]:
    return lambda level: (name, shown(level))


def _field(name: str) -> Callable[[Level], Mapping[str, object]]:
    return lambda level: {name: level}


def _mix_plan(level: Level) -> Mapping[str, object]:
    return {"mix": parsed_mix(str(level))}


def _own_executor(levels: Levels) -> Level:
    if levels["language"] != PYTHON or levels["transport"] not in TRANSPORTS:
        return OWN_EXECUTOR
    return load(str(levels["transport"])).DEFAULT_EXECUTOR


def _own_dispatch(levels: Levels) -> Level:
    transport = str(levels["transport"])
    if transport not in TRANSPORTS:  # a peer's size
        return "request"
    return str(getattr(load(transport), "DEFAULT_DISPATCH", "request"))


def _own_size(levels: Levels) -> Level:
    """Default size of a peer's echo message: the default of its client."""
    return 10_000 if levels["service"] == "echo" and levels["transport"] not in TRANSPORTS else None


def _timeout(level: Level) -> Mapping[str, object]:
    return {} if level is None else {"timeout_s": float(str(level)) / 1000}


def _work(name: str, text: str) -> Factor:
    """Work in a request. The kinds of work add up."""
    option = f"--{name.replace('_', '-')}"
    kind, least = number(0, WORK_MS_MAX), SLICED_MS_MAX
    return Factor(name, "server", kind, 0.0, text, _option(option), windows=lambda level: float(str(level)) >= least)


FACTORS: Mapping[str, Factor] = {
    each.name: each
    for each in (
        Factor("service", "server", SERVED, "stock", "what is served", wire=True),
        Factor(
            "language",
            "server",
            one_of(*LANGUAGES),
            PYTHON,
            "what the server is written in: ours, or a peer's",
            wire=True,
        ),
        Factor(
            "transport",
            "server",
            one_of(*PROTOCOLS),
            "sockets",
            "what carries a request",
            wire=True,
        ),
        Factor(
            "executor",
            "server",
            one_of(*EXECUTORS),
            _own_executor,
            "which threads run requests; the transport's own unless said",
            _option("--executor"),
            fault=one_thread,
        ),
        Factor(
            "workers",
            "server",
            whole(1, 1024),
            8,
            "threads that run requests",
            _option("--workers"),
            fault=few_threads,
        ),
        Factor(
            "processes",
            "server",
            whole(1, PROCESSES_MAX),
            1,
            "processes that share a server's port, each with so many workers",
            _option("--processes"),
            fault=other_processes,
        ),
        Factor(
            "dispatch",
            "server",
            one_of("request", "connection", "loop"),
            _own_dispatch,
            "what one task of the executor is, or loop where there is none; the transport's own unless said",
            _option("--dispatch"),
            windows=lambda level: level == "connection",
        ),
        Factor(
            "pattern",
            "server",
            one_of("request-reply", "pair", "one-way"),
            "request-reply",
            "which sockets a messaging library gives both sides; one-way: a pair, and nothing comes back",
            _option("--pattern"),
            wire=True,
        ),
        Factor(
            "store",
            "server",
            one_of(MEMORY, SQLITE),
            MEMORY,
            "where stocks are kept: sqlite is a new file for each server, in a folder made in the working folder",
        ),
        Factor(
            "access",
            "server",
            one_of(OPEN, TOKEN, TLS),
            OPEN,
            "who is answered: all, by token, all over TLS",
            wire=True,
        ),
        Factor("metrics", "server", YES_NO, False, "whether --metrics is on", lambda _: ("--metrics", "127.0.0.1:0")),
        Factor("locking", "server", one_of(*LOCKINGS), "mutex", "which lock a request holds", _option("--locking")),
        _work("io_ms", "ms that every request waits, off the processor"),
        _work("cpu_ms", "ms that every request computes, holding the interpreter (GIL)"),
        _work("hash_ms", "ms that every request computes, letting the interpreter go"),
        Factor(
            "placement",
            "server",
            one_of(APART, FREE, AUTO),
            APART,
            "server and load have a core each, both are free on all, or the server keeps to one by itself",
            windows=lambda level: level != APART,
        ),
        Factor(
            "build",
            "server",
            one_of(RELEASE, DEBUG, FREE_THREADED),
            RELEASE,
            "how a server in another language is compiled; of ours, free-threaded: on a Python without a GIL",
        ),
        Factor("clients", "load", whole(1, CLIENTS_MAX), 1, "client processes", plan=_field("clients")),
        Factor(
            "connections",
            "load",
            whole(1, CONNECTIONS_MAX),
            1,
            "connections of each client",
            plan=_field("connections_per_client"),
            fault=few_connections,
        ),
        Factor(
            "connection",
            "load",
            one_of(*CONNECTION_POLICIES),
            "kept-alive",
            "one connection for all requests, or a new one for each",
            plan=_field("connection"),
            wire=True,
            windows=lambda level: level == "per-request",
        ),
        Factor("mix", "load", MIX, "lookup", "which requests are sent", plan=_mix_plan, wire=True),
        Factor(
            "array_len",
            "load",
            whole(0, VALUES_MAX),
            0,
            "random numbers in an array to be sorted; 0: the seven that textbooks sort",
            wire=True,
            windows=lambda level: int(str(level)) > SLICED_LEN_MAX,
        ),
        Factor(
            "choice", "load", one_of(*CHOICES), "uniform", "how a stock is chosen", plan=_field("choice"), wire=True
        ),
        Factor("size", "load", SIZE, _own_size, "bytes of a message; none: as the request has it", wire=True),
        Factor(
            "updater",
            "load",
            YES_NO,
            False,
            "whether a price updater sends beside the clients",
            wire=True,
            fault=no_update,
        ),
        Factor(
            "client",
            "load",
            one_of(*CLIENT_KINDS, *LOAD_PROGRAMS, PEER_CLIENT),
            "library",
            "what sends: our lean client, the transport's own, a load program, or a peer's own client",
            plan=_field("client"),
            wire=True,
            windows=lambda level: level not in CLIENT_KINDS,
        ),
        Factor(
            "headers",
            "load",
            one_of(*HEADERS),
            SAME,
            f"what calls of {GRPC_GO} hold: a deadline, trace or bytes of metadata, new in each; a token",
            wire=True,
            fault=not_told("headers", SAME, GRPC_GO),
        ),
        Factor(
            "deadline_ms",
            "load",
            number(1, 60_000, none=True),
            None,
            f"ms after which a client gives up, and which servers are told; none: 5000, and {GRPC_GO} tells none",
            plan=_timeout,
            wire=True,
            fault=not_told("deadline_ms", None, *CLIENT_KINDS, GRPC_GO),
        ),
        Factor(
            "rate_hz",
            "load",
            number(0.1, 1e6, none=True),
            None,
            "requests due a second, of all clients; none: a closed loop",
            plan=_field("rate_hz"),
            wire=True,
            windows=lambda level: level is not None,
        ),
        Factor(
            "arrivals", "load", one_of(*ARRIVALS), "poisson", "the process of an open loop", plan=_field("arrivals")
        ),
        Factor(
            "call_style",
            "load",
            one_of("sync", "async"),
            "sync",
            "whether a peer's client waits within a call, or is told of its reply",
            fault=not_told("call_style", "sync"),
        ),
        Factor(
            "in_flight",
            "load",
            whole(1, 1024),
            1,
            f"calls at once: of each client of a peer's asynchronous one, on each connection of {GRPC_GO}",
            wire=True,
            fault=not_told("in_flight", 1, GRPC_GO),
        ),
    )
}
"""Every factor by its name, in the order in which names and tables have them."""
