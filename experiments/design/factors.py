"""Factors: the quantities that an experiment may vary.

An **arm** is a server under a load. A **level** is a value of a factor: a text, a number, True, False or None. A factor
changes either the options of a server's command, or the fields of the load plan. A new factor needs only one entry in
the table ``FACTORS``. The factor then has a column in the results, and can be a word of a setting, as in ``compare``.
An arm's name contains the factor if the arm's level is not the default. Recordings that are older than the factor are
read with its default. The table does not say which levels can be combined. Servers and load plans refuse combinations
that they do not support.
"""

import shlex
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
"""Name of the load program that can send different headers with each call, as real clients do."""

_GRPC = ("grpc", "grpc_static", "grpc_aio")

LOAD_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "c": ("sockets",),
    "c-http": ("http1",),
    "h2load": _GRPC,
    GRPC_GO: _GRPC,
}
"""Load programs other than our own client. Each program has the transports on which it can send."""

SAME = "same"
"""Level of the factor ``headers`` at which all calls of an arm have equal headers."""

HEADERS: Mapping[str, tuple[str, ...]] = {
    SAME: (),
    "deadline": ("-deadline", "2s"),
    "traceparent": ("-traceparent",),
    "token": ("-token", "0123456789abcdef" * 2),
    **{f"{size}B": ("-metadata-bytes", str(size), "-metadata-new") for size in (100, 2560, 15360)},
}
"""Levels of the factor ``headers``, and the options of ``GRPC_GO`` for each level. A token is the same in all calls of
an arm. A deadline, a traceparent and metadata of a given size differ from call to call."""

PROTOCOLS = tuple(dict.fromkeys((*TRANSPORTS, *PEER_TRANSPORTS)))
"""Transports of our servers, then further transports of peers. A peer is a server of another language or project."""

PROCESSES_MAX = 16
"""Largest number of processes of a measured server. On a machine with few cores, more processes take too long to start.
"""

OWN_EXECUTOR = "own"
"""Level of the factor ``executor`` for a server that is not ours."""

EXECUTOR_NAMES: Mapping[str, str] = {"leader-followers": "leader/followers", "thread-per-task": "thread for each task"}
"""Names of executors for readers, by level. If an executor is missing here, its name is its level without hyphens."""

APART, FREE, AUTO = "apart", "free", "auto"
"""Levels of the factor ``placement``. ``apart``: server and load have one core each. ``free``: server and load may use
every core. ``auto``: the server chooses a core."""

SLICED_MS_MAX = 5.0
"""Limit in milliseconds for each kind of work in a request, such as waiting. An arm that reaches the limit is measured
in windows of half a second, instead of slices of 20 ms."""

SLICED_LEN_MAX = 2000
"""Largest length of an array to sort, if the arm is measured in slices. Our sorts take 5 ms for this length."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor: one quantity that an experiment may vary."""

    name: str
    of: Literal["server", "load"]
    """Side that the factor changes. If the side is the server, each level needs its own server process."""
    kind: Kind
    default: Level | Callable[[Levels], Level]
    """Level of the factor if no level is given. The default is a fixed level, or a function of the levels of the
    factors before this factor in the table."""
    help: str
    options: Callable[[Level], Sequence[str]] = field(default=lambda _: ())
    """Function from a level to options of the server's command. The default level needs no options."""
    plan: Callable[[Level], Mapping[str, object]] = field(default=lambda _: {})
    """Function from a level to fields of the load plan (``LoadPlan``)."""
    wire: bool = False
    """True if the factor can change the bytes of a request on the wire."""
    windows: Callable[[Level], bool] = field(default=lambda _: False)
    """Function that returns True for a level if arms at this level must be measured in windows instead of slices."""
    fault: Callable[[Levels, Watched], str | None] = field(default=lambda *_: None)
    """Function that compares an arm's levels with the observations of a block. If the observations contradict the level
    of this factor, the function returns a fault in words, and otherwise None."""

    def read(self, text: str, option: str | None = None) -> Level:
        """Parses a level's text. Raises UsageError. The error names ``option``, or the factor if ``option`` is None."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise UsageError(option or self.name, text, self.kind.allowed) from error

    def default_among(self, levels: Levels) -> Level:
        """The default level. ``levels`` has the levels of the factors before this factor in ``FACTORS``."""
        return self.default(levels) if callable(self.default) else self.default


def _parse_mix(text: str) -> Level:
    parsed_mix(text)
    return text


def _parse_served(text: str) -> Level:
    if not shlex.split(text):  # raises ValueError for a quotation without an end
        raise ValueError(text)
    return text


MEMORY, SQLITE = "memory", "sqlite"
OPEN, TOKEN, TLS = "open", "token", "tls"
"""Levels of the factor ``access``. ``OPEN``: everybody has access. ``TOKEN``: only clients with a token have access,
without encryption. ``TLS``: everybody has access, over TLS."""

SIZE = whole(8, 1_000_000, none=True)

SERVED = Kind(
    _parse_served,
    f"{', '.join(OURS)}, {PLAIN} (a peer), {NULL} (the null server), a command that prints 'ready HOST:PORT', "
    "or the HOST:PORT of a server that runs already",
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
    if transport not in TRANSPORTS:  # a peer's transport
        return "request"
    return str(getattr(load(transport), "DEFAULT_DISPATCH", "request"))


def _own_size(levels: Levels) -> Level:
    """Default size of a message, in bytes. For a peer that echoes messages: the default of the peer's client. For every
    other server: None, and each request type has its own size."""
    return 10_000 if levels["service"] == "echo" and levels["transport"] not in TRANSPORTS else None


def _timeout(level: Level) -> Mapping[str, object]:
    return {} if level is None else {"timeout_s": float(str(level)) / 1000}


def _work(name: str, text: str) -> Factor:
    """Factor for one kind of work that every request does, in milliseconds. If a request does several kinds of work,
    their times add up."""
    option = f"--{name.replace('_', '-')}"
    kind, least = number(0, WORK_MS_MAX), SLICED_MS_MAX
    return Factor(name, "server", kind, 0.0, text, _option(option), windows=lambda level: float(str(level)) >= least)


FACTORS: Mapping[str, Factor] = {
    each.name: each
    for each in (
        Factor("service", "server", SERVED, "stock", "service of the server", wire=True),
        Factor("language", "server", one_of(*LANGUAGES), PYTHON, "programming language of the server", wire=True),
        Factor("transport", "server", one_of(*PROTOCOLS), "sockets", "transport of the requests", wire=True),
        Factor(
            "executor",
            "server",
            one_of(*EXECUTORS),
            _own_executor,
            "executor of the requests; by default the transport's own",
            _option("--executor"),
            fault=one_thread,
        ),
        Factor(
            "workers", "server", whole(1, 1024), 8, "threads that run requests", _option("--workers"), fault=few_threads
        ),
        Factor(
            "processes",
            "server",
            whole(1, PROCESSES_MAX),
            1,
            "processes that share the server's port, each with its own workers",
            _option("--processes"),
            fault=other_processes,
        ),
        Factor(
            "dispatch",
            "server",
            one_of("request", "connection", "loop"),
            _own_dispatch,
            "task of the executor: a request or a connection; loop: no executor; by default the transport's own",
            _option("--dispatch"),
            windows=lambda level: level == "connection",
        ),
        Factor(
            "pattern",
            "server",
            one_of("request-reply", "pair", "one-way"),
            "request-reply",
            "socket pattern of a messaging library; one-way: a pair of sockets without replies",
            _option("--pattern"),
            wire=True,
        ),
        Factor(
            "store",
            "server",
            one_of(MEMORY, SQLITE),
            MEMORY,
            "storage of stocks; sqlite: a new file for each server, in a new folder of the working folder",
        ),
        Factor(
            "access",
            "server",
            one_of(OPEN, TOKEN, TLS),
            OPEN,
            "access to the server: every client, clients with a token, or every client over TLS",
            wire=True,
        ),
        Factor(
            "metrics", "server", YES_NO, False, "yes: the server has --metrics", lambda _: ("--metrics", "127.0.0.1:0")
        ),
        Factor("locking", "server", one_of(*LOCKINGS), "mutex", "locks of a request", _option("--locking")),
        _work("io_ms", "ms for which every request waits without the processor"),
        _work("cpu_ms", "ms for which every request computes with the GIL held"),
        _work("hash_ms", "ms for which every request computes with the GIL released"),
        Factor(
            "placement",
            "server",
            one_of(APART, FREE, AUTO),
            APART,
            "server and load have one core each, both use every core, or the server chooses a core",
            windows=lambda level: level != APART,
        ),
        Factor(
            "build",
            "server",
            one_of(RELEASE, DEBUG, FREE_THREADED),
            RELEASE,
            "build of a server in another language; free-threaded: our server on a Python without a GIL",
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
            "one connection for all requests, or a new connection for each request",
            plan=_field("connection"),
            wire=True,
            windows=lambda level: level == "per-request",
        ),
        Factor("mix", "load", MIX, "lookup", "request types that are sent", plan=_mix_plan, wire=True),
        Factor(
            "array_len",
            "load",
            whole(0, VALUES_MAX),
            0,
            "length of the random arrays to sort; 0: the seven numbers of textbooks",
            wire=True,
            windows=lambda level: int(str(level)) > SLICED_LEN_MAX,
        ),
        Factor(
            "choice",
            "load",
            one_of(*CHOICES),
            "uniform",
            "choice of a request's stock",
            plan=_field("choice"),
            wire=True,
        ),
        Factor("size", "load", SIZE, _own_size, "bytes of a message; none: the request type's own size", wire=True),
        Factor(
            "updater", "load", YES_NO, False, "yes: a price updater sends at the same time", wire=True, fault=no_update
        ),
        Factor(
            "client",
            "load",
            one_of(*CLIENT_KINDS, *LOAD_PROGRAMS, PEER_CLIENT),
            "library",
            "client: our lean client, the transport's library, a load program, or a peer's own client",
            plan=_field("client"),
            wire=True,
            windows=lambda level: level not in CLIENT_KINDS,
        ),
        Factor(
            "headers",
            "load",
            one_of(*HEADERS),
            SAME,
            f"headers of {GRPC_GO}'s calls: a token; or a deadline, a trace or metadata that differs in each call",
            wire=True,
            fault=not_told("headers", SAME, GRPC_GO),
        ),
        Factor(
            "deadline_ms",
            "load",
            number(1, 60_000, none=True),
            None,
            f"timeout of a call in ms, which is sent to the server; none: 5000, and {GRPC_GO} sends no timeout",
            plan=_timeout,
            wire=True,
            fault=not_told("deadline_ms", None, *CLIENT_KINDS, GRPC_GO),
        ),
        Factor(
            "rate_hz",
            "load",
            number(0.1, 1e6, none=True),
            None,
            "requests per second of all clients together; none: a closed loop",
            plan=_field("rate_hz"),
            wire=True,
            windows=lambda level: level is not None,
        ),
        Factor(
            "arrivals", "load", one_of(*ARRIVALS), "poisson", "arrival process of an open loop", plan=_field("arrivals")
        ),
        Factor(
            "call_style",
            "load",
            one_of("sync", "async"),
            "sync",
            "calls of a peer's client: blocking or asynchronous",
            fault=not_told("call_style", "sync"),
        ),
        Factor(
            "in_flight",
            "load",
            whole(1, 1024),
            1,
            f"concurrent calls of each client of an asynchronous peer, or of each connection of {GRPC_GO}",
            wire=True,
            fault=not_told("in_flight", 1, GRPC_GO),
        ),
    )
}
"""All factors, by name. Names of arms, and columns of tables, list the factors in this order."""
