"""Sweeps of the study ``server_cost``: processor time of a request, servers by turns; and each server measured alone.

One lean client with 16 kept connections loads each server. gRPC is measured on both executors. On the static pool the
transport alone differs from sockets. The ``ThreadPoolExecutor`` is that of gRPC's users. The echo stands beside Lookup
on the transport's own executor. The pairs whose ratio is near 1 have four times the slices.

The part ``split`` tells apart where that time goes (``split.py``), on three servers with one executor. The part
``languages`` has our stock service beside those in Go and Rust. The part ``options`` has it with TLS, with a token,
with metrics, and with its store on disk.
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
"""Languages of peers that serve stocks on gRPC."""

HEADLINE = "headline"

CONNECTIONS = 16

SOCKETS = setting(transport="sockets", executor="static-pool", connections=CONNECTIONS, client="lean")
GRPC = setting(transport="grpc", executor="thread-pool", connections=CONNECTIONS, client="lean")
GRPC_STATIC = GRPC.but(executor="static-pool")
"""Lookup on sockets, on gRPC as its users start it, and on gRPC with the static pool, as on sockets."""

OWN_GRPC = setting(transport="grpc_static", executor="static-pool", connections=CONNECTIONS, client="lean")
"""Lookup by our own gRPC server, on the static pool too."""

THREE = (SOCKETS, OWN_GRPC, GRPC_STATIC)
"""Servers of one executor, pool and lock: the first two differ in protocol, the last two in what implements it."""

NULL_SERVER = SOCKETS.but(service=NULL)
"""The null server, the least that a server in Python does: one thread receives, and sends a constant in the thinnest
framing."""

HELD = {"sockets": (1_000, 10_000), "grpc": (1_000,)}
"""Numbers of idle connections that a server by itself holds. A connection on gRPC takes ten times as much memory."""

REPETITIONS = 5
IDLE_S = 5.0
"""Seconds of watching each number of connections, in a repetition. The processor clock counts nanoseconds."""


def server_cost(scale: Scale) -> Sweep:
    """Sweep of processor time a request: gRPC ÷ sockets, and Lookup ÷ echo on each."""
    sockets, grpc, grpc_static = Arm(SOCKETS), Arm(GRPC), Arm(GRPC_STATIC)
    sockets_echo, grpc_echo = (Arm(echo_of(each)) for each in (SOCKETS, GRPC))
    (same_sockets, _, sockets_again), (same_grpc, _, grpc_again) = twins(SOCKETS, "same"), twins(GRPC, "same")
    groups = (
        Group((sockets, grpc_static, grpc)),
        Group((sockets, sockets_echo, sockets_again), times=4),
        Group((grpc, grpc_echo, grpc_again), times=4),
    )
    executors = f"Lookup on gRPC: {GRPC_STATIC.executor} ÷ {GRPC.executor}"
    further = (
        _cpu("as_started", "Lookup, servers as started: gRPC ÷ sockets", grpc, sockets, ("transport", "executor")),
        _cpu("executor", executors, grpc_static, grpc, ("executor",)),
    )
    comparisons = (
        _cpu("transport", f"Lookup, {SOCKETS.executor} on both: gRPC ÷ sockets", grpc_static, sockets, ("transport",)),
        _cpu("service_sockets", "sockets: Lookup ÷ echo", sockets, sockets_echo, ("service", "mix")),
        _cpu("service_grpc", "gRPC: Lookup ÷ echo", grpc, grpc_echo, ("service", "mix")),
        *(replace(each, family="further") for each in further),
        _by_cpu(same_sockets),
        _by_cpu(same_grpc),
    )
    return _in_slices("server_cost", groups, comparisons, scale)


def split(scale: Scale) -> Sweep:
    """Sweep that tells the shares of a request's processor time apart; no verdict is asked, and each arm has a
    server."""
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
    others = [Arm(GRPC.but(language=each)) for each in OTHERS if peer_of(STOCK, each, "grpc") in scale.peers]
    pairs = [twins(each, "same") for each in (OWN_GRPC, SOCKETS, GRPC)]
    groups = (
        Group((own, sockets, grpcio, *others)),
        *(Group((first, again), times=4) for _, first, again in pairs),
    )
    comparisons = (
        _cpu("protocol", "Lookup: sockets ÷ our own gRPC server", sockets, own, ("transport",)),
        _cpu("implementation", "Lookup: our own gRPC server ÷ grpcio", own, grpcio, ("transport", "executor")),
        *(
            _cpu(
                each.setting.text("language"),
                f"Lookup: {each.setting.text('language').capitalize()} ÷ our own gRPC server",
                each,
                own,
                ("language", "transport", "executor"),
            )
            for each in others
        ),
        *(_by_cpu(same) for same, _, _ in pairs),
    )
    return _in_slices("languages", groups, comparisons, scale)


def options(scale: Scale) -> Sweep:
    """Sweep of the processor time of a Lookup on sockets with one option each, beside the same server without it."""
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
    """Both servers as they are started, by themselves. One short repetition where the sweep has no verdicts."""
    short = scale.looks[-1] < BLOCKS_MIN
    servers = tuple(LoneServer(setting(transport=each), held[:1] if short else held) for each, held in HELD.items())
    repetitions, idle_s = (1, 0.5) if short else (REPETITIONS, IDLE_S)
    return StandalonePlan("server_cost", "server_cost", servers, repetitions, idle_s, scale.seed)


def twice_of(of: Setting) -> Setting:
    """The same server with an echo that encodes and decodes one message more."""
    return echo_of(of).but(service="echo-twice")


def echo_of(of: Setting) -> Setting:
    """The same server with the echo."""
    return of.but(service="echo", mix="echo")


def _cpu(name: str, title: str, above: Arm, below: Arm, differ: tuple[str, ...]) -> Comparison:
    return _by_cpu(Comparison(name, title, above, below, differ, family=HEADLINE))


def _by_cpu(of: Comparison) -> Comparison:
    """The same comparison, of processor time."""
    return replace(of, measure="cpu", title=f"{of.title}, processor time")


def _in_slices(part: str, groups: Iterable[Group], comparisons: tuple[Comparison, ...], scale: Scale) -> Sweep:
    loaded, turns = equally_loaded(groups, comparisons), Slices(block_s=scale.block_s)
    return Sweep("server_cost", part, loaded, comparisons, scale.rounds, scale.looks, scale.seed, turns)


def in_windows(
    part: str, groups: Iterable[Group], comparisons: Sequence[Comparison], rounds: int, scale: Scale
) -> Sweep:
    """A part in windows, with this number of rounds in a block, or fewer where the scale has fewer."""
    loaded, rounds = equally_loaded(groups, comparisons), min(rounds, scale.rounds)
    return Sweep("server_cost", part, loaded, tuple(comparisons), rounds, scale.looks, scale.seed, Windows())
