"""The sweep of ``python_grpc_servers``: a greeter on every gRPC server for Python, under two load programs.

Each server is started as its documentation says (``experiments/services/grpc_servers.py``); a pool has eight threads.
Our own server ``grpc_static`` runs the same generated servicer. It is measured twice: with a pool of eight threads, and
with calls on the thread that reads the connections. h2load sends the same header block in every call. The other load
program, on grpc-go, sends a deadline and a new traceparent in each call. Server and load have a core each.

In a closed loop the calls a second are the connections ÷ the time of a call. So grpcio's time ÷ a server's time is the
server's calls a second ÷ grpcio's calls a second. A server is left out where its package is not installed.
"""

from collections.abc import Iterator, Mapping

from experiments.design.arms import Arm, Comparison, Group, Measure, equally_loaded, twins
from experiments.design.factors import GRPC_GO
from experiments.design.levels import Level
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Sweep, Windows
from experiments.peers import SERVICER
from experiments.studies.study import Scale

STUDY = "python_grpc_servers"

CLIENTS: Mapping[str, Mapping[str, Level]] = {
    "h2load": {"client": "h2load"},
    GRPC_GO: {"client": GRPC_GO, "headers": "traceparent", "deadline_ms": 2000.0},
}
"""Levels of the factors that describe a load, by load program."""

CONNECTIONS: Mapping[str, tuple[int, ...]] = {"h2load": (1, 16, 64), GRPC_GO: (1, 16, 256)}
"""Numbers of connections, by load program. h2load has at most 64 connections: with 256 connections to pygrpc-native,
h2load hangs at the end of some windows.
"""

BLOCKS: Mapping[str, str] = {
    "h2load": "the same header block in each call",
    GRPC_GO: "a deadline and a new traceparent in each call",
}
"""Texts for the calls of a load, by load program."""

DECIDING = (16, GRPC_GO)
"""Load (number of connections, and load program) whose comparisons are headlines. The sweep ends once the headlines are
decided."""

_GREETER = setting(transport="grpc", service="grpcio", mix="say-hello")
_OWN = _GREETER.but(transport="grpc_static", service=SERVICER)

GRPCIO, NATIVE, OWN_POOL = "grpcio, threads", "pygrpc-native, threads", "grpc_static, threads"

SERVERS: Mapping[str, Setting] = {
    GRPCIO: _GREETER,
    "grpcio, asyncio": _GREETER.but(service="grpcio-aio"),
    NATIVE: _GREETER.but(service="pygrpc-native"),
    "connectrpc, WSGI": _GREETER.but(service="connectrpc-wsgi"),
    "connectrpc, ASGI": _GREETER.but(service="connectrpc-asgi"),
    "grpclib": _GREETER.but(service="grpclib"),
    OWN_POOL: _OWN.but(executor="thread-pool"),
    "grpc_static, the reading thread": _OWN.but(executor="leader-followers"),
}
"""Settings of the servers, by the servers' names for people."""

PEERS = ("pygrpc-native", "connectrpc-wsgi", "connectrpc-asgi", "grpclib")
"""Names of the services whose packages may be missing here."""

DROP_IN = (NATIVE, OWN_POOL, "grpc_static, the reading thread")
"""Names of the servers that run, without a change, a servicer that was written for grpcio."""


def sweep(scale: Scale) -> Sweep:
    """Sweep of every installed server under every load. Each load has two groups of servers. grpcio on threads is in
    both groups."""
    here = {name: each for name, each in SERVERS.items() if each["service"] not in set(PEERS) - scale.peers}
    groups, comparisons = list[Group](), list[Comparison]()
    for connections, client in loads():
        arms = {name: arm_of(name, connections, client) for name in here}
        others = [name for name in here if name not in (GRPCIO, *DROP_IN)]
        groups += [Group((arms[GRPCIO], *(arms[name] for name in DROP_IN if name in here)))]
        groups += [Group((arms[GRPCIO], *(arms[name] for name in others)))]
        for name in (each for each in here if each != GRPCIO):
            comparisons.append(_compared(times_name(name, connections, client), arms[GRPCIO], arms[name], "response"))
        if NATIVE in here:
            comparisons.append(_compared(cost_name(connections, client), arms[OWN_POOL], arms[NATIVE], "cpu"))
    for name in (GRPCIO, OWN_POOL):
        comparisons.append(twins(arm_of(name, *DECIDING).setting, "same")[0])
    turns, loaded = Windows(warm_up_s=0.1, duration_s=0.4), equally_loaded(groups, comparisons)
    return Sweep(STUDY, STUDY, loaded, tuple(comparisons), 1, scale.looks, scale.seed, turns)


def loads() -> Iterator[tuple[int, str]]:
    """Every load: its number of connections, and its load program."""
    yield from ((connections, client) for client in CLIENTS for connections in CONNECTIONS[client])


def arm_of(server: str, connections: int, client: str) -> Arm:
    """Arm of a server under a load. ``server``: the server's name for people."""
    return Arm(SERVERS[server].but(connections=connections, **CLIENTS[client]))


def times_name(server: str, connections: int, client: str) -> str:
    """Name of a comparison under a load: time of a call on grpcio ÷ time of a call on another server."""
    return f"{SERVERS[server].text('service')} {SERVERS[server].text('executor')} at {connections}, {client}"


def cost_name(connections: int, client: str) -> str:
    """Name of a comparison under a load: processor time a call on ``grpc_static`` ÷ processor time a call on
    pygrpc-native.
    """
    return f"processor time at {connections}, {client}"


def _compared(name: str, above: Arm, below: Arm, measure: Measure) -> Comparison:
    """Comparison of two servers under one load. Holm's correction covers all comparisons under one load."""
    differ = above.setting.unlike(below.setting)
    load = above.setting.whole("connections"), above.setting.text("client")
    what = "time" if measure == "response" else "processor time a call"
    sides = (next(each for each in SERVERS if arm_of(each, *load) == arm) for arm in (above, below))
    title = f"{load[0]} × {load[1]}: {' ÷ '.join(f'{what} on {side}' for side in sides)}"
    family = "headline" if load == DECIDING else f"{load[0]}, {load[1]}"
    return Comparison(name, title, above, below, differ, measure=measure, family=family)
