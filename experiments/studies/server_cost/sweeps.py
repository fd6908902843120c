"""Sweeps of the study ``server_cost`` for the processor time of a request, and the plan for servers alone.

One lean client with 16 kept-alive connections loads each server. gRPC is measured on two executors. On the static pool
gRPC differs from sockets in the transport alone. The ``ThreadPoolExecutor`` is the usual executor of gRPC. On the usual
executor of each transport a Lookup is compared with the echo service. Comparisons with a ratio near 1 have four times
as many slices as other comparisons.

The part ``split`` divides the processor time into shares (``split.py``), on three servers with the same executor. The
part ``languages`` compares our stock service with stock services in Go and Rust. The part ``options`` measures our
stock service with TLS, with a token, with metrics, and with the store on disk.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.factors import SQLITE, TLS, TOKEN
from experiments.design.setting import Setting, setting
from experiments.design.sweep import BLOCKS_MIN, Slices, Sweep, Windows
from experiments.kinds.standalone import LoneServer, StandalonePlan
from experiments.peers import peer_of
from experiments.services import NULL, STOCK
from experiments.studies.study import Scale

OTHERS = ("go", "rust")
"""Languages of the peers (programs in other languages) that serve stocks on gRPC."""

HEADLINE = "headline"

CONNECTIONS = 16

SOCKETS = setting(transport="sockets", executor="static-pool", connections=CONNECTIONS, client="lean")
GRPC = setting(transport="grpc", executor="thread-pool", connections=CONNECTIONS, client="lean")
GRPC_STATIC = GRPC.but(executor="static-pool")
"""Settings of a Lookup: on sockets, on grpcio as users start it, and on grpcio with the static pool of sockets."""

OWN_GRPC = setting(transport="grpc_static", executor="static-pool", connections=CONNECTIONS, client="lean")
"""Setting of a Lookup on our own gRPC server, with the static pool."""

THREE = (SOCKETS, OWN_GRPC, GRPC_STATIC)
"""Settings of three servers with the same executor, pool and lock. Sockets and our own gRPC server differ in the
protocol. Our own gRPC server and grpcio differ in the implementation."""

NULL_SERVER = SOCKETS.but(service=NULL)
"""Setting of the null server, which does the least work of any server in Python: one thread receives requests, and
sends a constant in the thinnest framing."""

HELD = {"sockets": (1_000, 10_000), "grpc": (1_000,)}
"""Numbers of idle connections to a server alone, by transport. A connection on gRPC takes ten times the memory of a
connection on sockets."""

REPETITIONS = 5
"""Number of times that a server alone is started and measured."""

IDLE_S = 5.0
"""Seconds for which the processor time of an idle server is measured, with each number of connections. The processor
clock counts nanoseconds, so a few seconds suffice."""


def server_cost(scale: Scale) -> Sweep:
    """Sweep of the processor time of a request: gRPC ÷ sockets, and Lookup ÷ echo on each transport."""
    sockets, grpc, grpc_static = Arm(SOCKETS), Arm(GRPC), Arm(GRPC_STATIC)
    sockets_echo, grpc_echo = (Arm(echo_of(each)) for each in (SOCKETS, GRPC))
    (same_sockets, _, sockets_again), (same_grpc, _, grpc_again) = twins(SOCKETS, "same"), twins(GRPC, "same")
    groups = (
        Group((sockets, grpc_static, grpc)),
        Group((sockets, sockets_echo, sockets_again), times=4),
        Group((grpc, grpc_echo, grpc_again), times=4),
    )
    executors, started = f"{GRPC_STATIC.executor} ÷ {GRPC.executor}", ("transport", "executor")
    comparisons = (
        _cpu("transport", f"Lookup, {SOCKETS.executor} on both: gRPC ÷ sockets", grpc_static, sockets, ("transport",)),
        _cpu("service_sockets", "sockets: Lookup ÷ echo", sockets, sockets_echo, ("service", "mix")),
        _cpu("service_grpc", "gRPC: Lookup ÷ echo", grpc, grpc_echo, ("service", "mix")),
        _cpu("as_started", "Lookup, servers as started: gRPC ÷ sockets", grpc, sockets, started, "further"),
        _cpu("executor", f"Lookup on gRPC: {executors}", grpc_static, grpc, ("executor",), "further"),
        _by_cpu(same_sockets),
        _by_cpu(same_grpc),
    )
    return _in_slices("server_cost", groups, comparisons, scale)


def split(scale: Scale) -> Sweep:
    """Sweep for the shares of a request's processor time. The sweep has no comparison, and so no verdict. Each arm has
    a server of its own."""
    lookups, echoes = [Arm(each) for each in THREE], [Arm(echo_of(each)) for each in THREE]
    twice = Arm(twice_of(SOCKETS))
    groups = (
        Group((lookups[0], echoes[0], twice, Arm(NULL_SERVER)), times=4),
        Group((lookups[1], echoes[1], lookups[2], echoes[2]), times=4),
    )
    return _in_slices("split", groups, (), scale)


def languages(scale: Scale) -> Sweep:
    """Sweep of the processor time of a Lookup by our servers, and by servers in Go and Rust that are built here."""
    own, sockets, grpcio = Arm(OWN_GRPC), Arm(SOCKETS), Arm(GRPC)
    others = {each: Arm(GRPC.but(language=each)) for each in OTHERS if peer_of(STOCK, each, "grpc") in scale.peers}
    pairs = [twins(each, "same") for each in (OWN_GRPC, SOCKETS, GRPC)]
    every, server = Group((own, sockets, grpcio, *others.values())), "our own gRPC server"
    groups = (every, *(Group((first, again), times=4) for _, first, again in pairs))
    both = ("transport", "executor")
    comparisons = (
        _cpu("protocol", f"Lookup: sockets ÷ {server}", sockets, own, ("transport",)),
        _cpu("implementation", f"Lookup: {server} ÷ grpcio", own, grpcio, both),
        *(
            _cpu(name, f"Lookup: {name.capitalize()} ÷ {server}", other, own, ("language", *both))
            for name, other in others.items()
        ),
        *(_by_cpu(same) for same, _, _ in pairs),
    )
    return _in_slices("languages", groups, comparisons, scale)


def options(scale: Scale) -> Sweep:
    """Sweep of the processor time of a Lookup on sockets. Each comparison is a Lookup with one of four options ÷ a
    Lookup without options.
    """
    same, plain, again = twins(SOCKETS, "same")
    token, tls = Arm(SOCKETS.but(access=TOKEN)), Arm(SOCKETS.but(access=TLS))
    metrics, store = Arm(SOCKETS.but(metrics=True)), Arm(SOCKETS.but(store=SQLITE))
    comparisons = (
        _cpu("tls", "Lookup on sockets: over TLS ÷ in the clear", tls, plain, ("access",)),
        _cpu("token", "Lookup on sockets: with a token ÷ open to all", token, plain, ("access",)),
        _cpu("metrics", "Lookup on sockets: with --metrics ÷ without", metrics, plain, ("metrics",)),
        _cpu("store", "Lookup on sockets: store on disk ÷ in memory", store, plain, ("store",)),
        _by_cpu(same),
    )
    groups = (Group((plain, token, tls, metrics, store, again), times=4),)
    return _in_slices("options", groups, comparisons, scale)


def alone(scale: Scale) -> StandalonePlan:
    """Plan for measuring the servers of ``HELD`` alone, as started. A scale with too few blocks for verdicts has one
    short repetition."""
    short = scale.looks[-1] < BLOCKS_MIN
    servers = tuple(LoneServer(setting(transport=each), held[:1] if short else held) for each, held in HELD.items())
    repetitions, idle_s = (1, 0.5) if short else (REPETITIONS, IDLE_S)
    return StandalonePlan("server_cost", "server_cost", servers, repetitions, idle_s, scale.seed)


def twice_of(of: Setting) -> Setting:
    """Setting of the same server with an echo that encodes and decodes each message once more."""
    return echo_of(of).but(service="echo-twice")


def echo_of(of: Setting) -> Setting:
    """Setting of the same server with the echo service."""
    return of.but(service="echo", mix="echo")


def _cpu(name: str, title: str, above: Arm, below: Arm, differ: tuple[str, ...], family: str = HEADLINE) -> Comparison:
    """Comparison of the processor time of a request on two arms."""
    return _by_cpu(Comparison(name, title, above, below, differ, family=family))


def _by_cpu(of: Comparison) -> Comparison:
    """The given comparison with processor time as its measure instead of response time."""
    return replace(of, measure="cpu", title=f"{of.title}, processor time")


def _in_slices(part: str, groups: Iterable[Group], comparisons: tuple[Comparison, ...], scale: Scale) -> Sweep:
    loaded, turns = equally_loaded(groups, comparisons), Slices(block_s=scale.block_s)
    return Sweep("server_cost", part, loaded, comparisons, scale.rounds, scale.looks, scale.seed, turns)


def in_windows(
    part: str, groups: Iterable[Group], comparisons: Sequence[Comparison], rounds: int, scale: Scale
) -> Sweep:
    """Sweep of a part in windows. A block has ``rounds`` rounds, or the scale's number of rounds where this is
    smaller."""
    loaded, rounds = equally_loaded(groups, comparisons), min(rounds, scale.rounds)
    return Sweep("server_cost", part, loaded, tuple(comparisons), rounds, scale.looks, scale.seed, Windows())
