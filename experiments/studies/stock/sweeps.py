"""Sweeps of the study ``stock``: the arms, groups and comparisons of its main part and of its extensions.

The main part has the five figures and the four questions of the original document. An arm is a server under a load. A
group of arms is measured side by side, and a comparison is the ratio of two arms.

The gRPC server runs on a ``ThreadPoolExecutor``, as its users start it. The sockets server runs on the static pool.
Question 1 compares both servers as started. It also compares sockets with a plain grpcio server that has none of our
code. Question 1 then compares three servers on the static pool: sockets, our own gRPC server, and grpcio. Sockets and
our own gRPC server differ in the protocol. Our own gRPC server and grpcio differ in the implementation, and grpcio's
client loads both.

Arms of headline comparisons and of A/A pairs are measured in every round. Inner points of the figures have no verdict,
and are measured in every third or fifth round. Each transport has an A/A pair, for Lookup with one client. The pair of
gRPC runs on the static pool. Both servers of a pair carry the same loads, equally often.

Question 4 is about a Lookup that computes for 0.1 ms, on both transports. With a plain Lookup and more clients than
threads, ten client processes share the load's core. There the load may be the limit. So question 4 has the lean client,
with a connection for each client.

In the figures each client is a process with one connection. The catalog's volume limits are so high that no trade is
refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from experiments.design.arms import Arm, Comparison, Group, equally_loaded, twins
from experiments.design.levels import Level
from experiments.design.setting import Setting, setting
from experiments.design.sweep import Slices, Sweep, Windows
from experiments.services import PLAIN
from experiments.show.numbers import counted
from experiments.studies.study import Scale
from stock_service.trading.locking import LOCKINGS

HEADLINE = "headline"

POOL = 5
"""Number of threads of the original's pool in figure 5."""

POOLS = (1, 3, 5, 10)
"""Numbers of threads of the pools in the part ``pool_by_clients``."""

MIXED = "lookup=0.5,trade=0.5"

SAME_TIMES = 4
"""Number of times that a round measures an A/A pair, in parts other than the main part. The ratio of such a pair is
near 1. A verdict on such a ratio needs many slices.
"""

INNER_EVERY = 3
"""Number of rounds from one measurement of an inner point to the next. Inner points have no verdict."""

THREE_EVERY = 5
"""Number of rounds from one measurement of a point in the figure of three servers to the next. The figure has many
points."""

GRPC = setting(transport="grpc", executor="thread-pool")
SOCKETS = setting(transport="sockets", executor="static-pool")
"""Settings of a Lookup with one client, on both servers as started."""

ON_PLAIN = GRPC.but(service=PLAIN)
"""Setting of a Lookup on a plain grpcio server, with as many threads as ``GRPC`` has and none of our code."""

STATIC = setting(transport="grpc_static", executor="static-pool")
GRPCIO = GRPC.but(executor="static-pool")
"""Settings of a Lookup on gRPC with the executor of sockets: on our own gRPC server, and on grpcio."""

THREE = (SOCKETS, STATIC, GRPCIO)
"""Settings of three servers that have the same executor, pool and lock."""

FIGURES = {
    "figure_1": GRPC.but(mix=MIXED, updater=True),
    "figure_2": GRPC,
    "figure_3": GRPC.but(mix="trade"),
    "figure_4": SOCKETS,
    "figure_5": SOCKETS.but(workers=POOL),
}
"""Settings of the original's five figures with one client, by the figure's name. Each figure varies the number of
clients."""


COMPUTE_MS = 0.1
"""Time in milliseconds that a Lookup of question 4 computes: about ten times a plain Lookup, so that the server is the
limit."""

COMPUTING = {
    f"computing_{base.text('transport')}": base.but(workers=POOL, cpu_ms=COMPUTE_MS, client="lean")
    for base in (SOCKETS, GRPC)
}
"""Settings of a Lookup that computes, on the pool of figure 5 with one connection, by the name of the comparison."""

POOLED = ("figure_4", "figure_5")
"""Names of the figures that also show the number of threads that ran the requests."""

STAGED = tuple(Arm(base.but(workers=POOL, clients=n)) for base in (GRPC, SOCKETS) for n in (1, POOL, 2 * POOL))
"""Arms of the figure of stages: 1 client, as many clients as the small pool has threads, and twice this number."""


def figure_arms(figure: str, scale: Scale) -> list[Arm]:
    """Arms of a figure in ascending order of clients. The arms have the scale's numbers of clients, and in figure 5
    further numbers up to twice the pool's size."""
    further = range(max(scale.clients), 2 * POOL + 1) if figure == "figure_5" else ()
    return [Arm(FIGURES[figure].but(clients=clients)) for clients in sorted({*scale.clients, *further})]


def stock(scale: Scale) -> Sweep:
    """Sweep of the main part, for five figures and four questions."""
    few, most = min(scale.clients), max(scale.clients)
    grpc, sockets = (Arm(each.but(clients=few)) for each in (GRPC, SOCKETS))
    grpc_most, sockets_most, static_most = (Arm(each.but(clients=most)) for each in (GRPC, SOCKETS, STATIC))
    static, equal = (Arm(each.but(clients=few)) for each in (STATIC, GRPCIO))
    trade = Arm(GRPC.but(mix="trade", clients=few))
    plain = Arm(ON_PLAIN.but(clients=few))
    past_pool = tuple(_past_the_pool())
    others = [
        tuple(Arm(FIGURES[figure].but(clients=clients)) for clients in (few, most))
        for figure in ("figure_1", "figure_3")
    ]
    same_grpc, same_sockets, same_static = (twins(each.setting, "same") for each in (equal, sockets, static))
    groups = [
        Group((grpc, sockets, equal, plain, *([grpc_most, sockets_most] if most > few else []))),
        Group((grpc, trade), times=4),
        Group((equal, same_grpc[2]), times=3),
        Group((sockets, same_sockets[2]), times=3),
        Group((static, same_static[2]), times=4),
        *(Group((each.below, each.above)) for each in past_pool),
        Group((sockets, static, equal, *([static_most] if most > few else []))),
    ]
    if most > few:
        groups += [Group((arm, arm_most)) for arm, arm_most in others]
    inner = [arm for figure in FIGURES for arm in figure_arms(figure, scale)]
    pools = f"Lookup on gRPC, {clients_of(few)}: {equal.setting.executor} ÷ {grpc.setting.executor}"
    comparisons = [
        *_question_1(sockets, grpc, equal, plain),
        *_apart(sockets, static, equal),
        Comparison("trade", f"gRPC, {clients_of(few)}: Trade ÷ Lookup", trade, grpc, ("mix",), family=HEADLINE),
        *past_pool,
        Comparison("executor", pools, equal, grpc, ("executor",)),
        same_grpc[0],
        same_sockets[0],
        same_static[0],
    ]
    if most > few:
        comparisons += [
            growth("growth_grpc", "Lookup on gRPC", (grpc, grpc_most), HEADLINE),
            growth("growth_sockets", "Lookup on sockets", (sockets, sockets_most), HEADLINE),
            growth("growth_static", "Lookup on our own gRPC", (static, static_most)),
            growth("growth_figure_1", "Figure 1", others[0]),
            growth("growth_figure_3", "Figure 3", others[1]),
        ]
    three = [Arm(each.but(mix=MIXED, clients=clients)) for each in THREE for clients in scale.clients]
    return in_slices("stock", [*groups, *groups_of(three, THREE_EVERY)], comparisons, scale, inner)


def growth(
    name: str, what: str, arms: tuple[Arm, ...], family: str = "further", differ: tuple[str, ...] = ("clients",)
) -> Comparison:
    """Comparison of the latency with the most clients ÷ the latency with the fewest clients. ``arms``: two arms in
    ascending order of clients."""
    below, above = arms
    title = f"{what}: {above.connections} ÷ {clients_of(below.connections)}"
    return Comparison(name, title, above, below, differ, "growth", family=family)


def _past_the_pool() -> Iterator[Comparison]:
    """Comparisons of the latency with twice as many clients as threads ÷ the latency with as many clients as threads.
    The ratio is tested against 2, the growth of the number of clients.

    The comparisons are of Lookups that compute, on both transports, and of plain Lookups on sockets."""
    size = f"{POOL} threads: {2 * POOL} ÷ {POOL} clients"
    for name, base in COMPUTING.items():
        at_pool, past_pool = (Arm(base.but(connections=clients)) for clients in (POOL, 2 * POOL))
        on = {"sockets": "sockets", "grpc": "gRPC"}[base.text("transport")]
        title = f"Lookup that computes {COMPUTE_MS:g} ms, on {on}, {size}"
        yield Comparison(name, title, past_pool, at_pool, ("connections",), "per client", family=HEADLINE)
    at_pool, past_pool = (Arm(FIGURES["figure_5"].but(clients=clients)) for clients in (POOL, 2 * POOL))
    yield Comparison("past_pool", f"Lookup on sockets, {size}", past_pool, at_pool, ("clients",), "per client")


def _question_1(sockets: Arm, grpc: Arm, equal: Arm, plain: Arm) -> tuple[Comparison, ...]:
    """Comparisons of question 1: sockets ÷ gRPC as started, sockets ÷ gRPC with equal executors, sockets ÷ a plain
    grpcio server, and gRPC ÷ the plain grpcio server."""
    how = f"Lookup, {clients_of(sockets.connections)}"
    equally = f"{how}, {equal.setting.executor} on both: sockets ÷ gRPC"
    both, differ = ("transport", "executor"), ("service", "transport", "executor")
    return (
        Comparison("as_started", f"{how}, servers as started: sockets ÷ gRPC", sockets, grpc, both, family=HEADLINE),
        Comparison("equal_executors", equally, sockets, equal, ("transport",), family=HEADLINE),
        Comparison("plain", f"{how}: sockets ÷ a plain grpcio server", sockets, plain, differ, family=HEADLINE),
        Comparison("our_code", f"{how}: gRPC ÷ a plain grpcio server", grpc, plain, ("service",)),
    )


def _apart(sockets: Arm, static: Arm, grpcio: Arm) -> tuple[Comparison, Comparison]:
    """Comparisons that tell protocol and implementation apart, with one executor. Protocol: sockets ÷ our own gRPC
    server. Implementation: our own gRPC server ÷ grpcio."""
    sent = f"{clients_of(sockets.connections)}{', the lean one' * (sockets.setting['client'] == 'lean')}"
    how, differ = f"Lookup, {sent}, {static.setting.executor} on both", ("transport",)
    return (
        Comparison("protocol", f"{how}: sockets ÷ our own gRPC", sockets, static, differ, family=HEADLINE),
        Comparison("implementation", f"{how}: our own gRPC ÷ grpcio", static, grpcio, differ, family=HEADLINE),
    )


def lock_waits(scale: Scale) -> Sweep:
    """Sweep of every locking strategy on sockets, and of the mutex on gRPC, under the most clients, Lookup and Trade
    mixed. The servers stamp the stages of every request. The sweep has no comparison, and so no verdict."""
    arms = [Arm(SOCKETS.but(mix=MIXED, clients=max(scale.clients), locking=each)) for each in LOCKINGS]
    arms.insert(5, Arm(GRPC.but(mix=MIXED, clients=max(scale.clients))))  # the sixth arm fills the first group
    return replace(in_slices("lock_waits", groups_of(arms), (), scale), timeline=True)


def stages(scale: Scale) -> Sweep:
    """Sweep of Lookup with the small pool on both transports, and of the arms of figures 4 and 5. The servers stamp the
    stages of every request."""
    drawn = [arm for figure in POOLED for arm in figure_arms(figure, scale)]
    return replace(in_slices("stages", groups_of(STAGED), (), scale, drawn), timeline=True)


def socket_trade(scale: Scale) -> Sweep:
    """Sweep that compares Trade on sockets with Lookup on sockets, and with Trade on gRPC with the same executor."""
    groups, comparisons = [], []
    for clients in _both_ends(scale):
        trade, lookup = (Arm(SOCKETS.but(mix=mix, clients=clients)) for mix in ("trade", "lookup"))
        grpc = Arm(GRPCIO.but(mix="trade", clients=clients))
        groups += [Group((trade, lookup), times=4), Group((trade, grpc))]
        title = f"sockets, {clients_of(clients)}: Trade ÷ Lookup"
        comparisons.append(Comparison(f"trade_{clients}", title, trade, lookup, ("mix",), family=HEADLINE))
        title = f"Trade, {clients_of(clients)}, {grpc.setting.executor} on both: sockets ÷ gRPC"
        comparisons.append(Comparison(f"transport_{clients}", title, trade, grpc, ("transport",), family=HEADLINE))
    inner = [Arm(SOCKETS.but(mix="trade", clients=clients)) for clients in scale.clients]
    return in_slices("socket_trade", groups, comparisons, scale, inner)


def pool_by_clients(scale: Scale) -> Sweep:
    """Sweep of pools of 1, 3, 5 and 10 threads. The clients are the scale's numbers, and twice the largest of these
    numbers."""
    most = 2 * max(scale.clients)
    arms = [Arm(SOCKETS.but(workers=pool, clients=n)) for pool in POOLS for n in (*scale.clients, most)]
    small, large = (Arm(SOCKETS.but(workers=pool, clients=most)) for pool in (1, 10))
    title = f"Lookup on sockets, {clients_of(most)}: 10 threads ÷ 1 thread"
    comparison = Comparison("threads", title, large, small, ("workers",), family=HEADLINE)
    return in_slices("pool_by_clients", [Group((small, large), times=4)], [comparison], scale, arms)


def updater(scale: Scale) -> Sweep:
    """Sweep of both transports, with and without the price updater, Lookup and Trade mixed."""
    bases = [base.but(mix=MIXED) for base in (GRPC, SOCKETS)]
    groups, comparisons = _at_both_ends(bases, scale, "updater", (True, False), "with ÷ without the updater")
    return in_slices("updater", [replace(each, times=4) for each in groups], comparisons, scale)


def _at_both_ends(
    bases: Sequence[Setting], scale: Scale, factor: str, levels: tuple[Level, Level], title: str
) -> tuple[list[Group], list[Comparison]]:
    """Groups and comparisons of two levels of a factor, for each server, with the fewest clients and with the most
    clients. A comparison is the first level ÷ the second level."""
    groups, comparisons = [], []
    for base in bases:
        transport = base.text("transport")
        for clients in _both_ends(scale):
            above, below = (Arm(base.but(**{factor: level}, clients=clients)) for level in levels)
            groups.append(Group((below, above)))
            said = f"{transport}, {clients_of(clients)}: {title}"
            comparisons.append(Comparison(f"{transport}_{clients}", said, above, below, (factor,), family=HEADLINE))
    return groups, comparisons


def _both_ends(scale: Scale) -> Sequence[int]:
    """Fewest and most clients of a scale, ascending; a single number where both are equal."""
    return sorted({min(scale.clients), max(scale.clients)})


def lock_strategies(scale: Scale) -> Sweep:
    """Sweep that compares every locking strategy with the mutex on sockets, under the most clients, Lookup and Trade
    mixed."""
    arms = {each: Arm(SOCKETS.but(mix=MIXED, clients=max(scale.clients), locking=each)) for each in LOCKINGS}
    mutex, how = arms["mutex"], f"sockets, {clients_of(max(scale.clients))}, Lookup and Trade"
    comparisons = [
        Comparison(name, f"{how}: {name} ÷ mutex", arm, mutex, ("locking",), family=HEADLINE)
        for name, arm in arms.items()
        if arm is not mutex
    ]
    return in_slices("lock_strategies", [Group(tuple(arms.values()), times=4)], comparisons, scale)


def client_kind(scale: Scale) -> Sweep:
    """Sweep that compares the lean client with the transport's own client, on each transport, and sockets with gRPC
    under the lean client."""
    bases, title = (GRPC, SOCKETS, STATIC), "lean ÷ own client"
    groups, comparisons = _at_both_ends(bases, scale, "client", ("lean", "library"), title)
    sockets, static, grpcio = (Arm(each.but(client="lean")) for each in THREE)
    groups.append(Group((sockets, static, grpcio)))
    title = f"Lookup, 1 client, the lean one, {grpcio.setting.executor} on both: sockets ÷ gRPC"
    comparisons.append(Comparison("transport", title, sockets, grpcio, ("transport",), family=HEADLINE))
    comparisons += _apart(sockets, static, grpcio)
    return in_slices("client_kind", groups, comparisons, scale)


def dispatch(scale: Scale) -> Sweep:
    """Sweep of both dispatch models with up to twice as many clients as threads, in windows. Windows count starved
    clients."""
    groups, comparisons = [], []
    for clients in (1, POOL, POOL + 1, 2 * POOL):
        request, connection = (
            Arm(SOCKETS.but(workers=POOL, clients=clients, dispatch=each)) for each in ("request", "connection")
        )
        groups.append(Group((request, connection)))
        if clients <= POOL:
            name, differ = f"dispatch_{clients}", ("dispatch",)
            title = f"{clients_of(clients)}, {POOL} threads: a task for each connection ÷ for each request"
            comparisons.append(Comparison(name, title, connection, request, differ, family=HEADLINE))
    fewest, at_pool = (Arm(SOCKETS.but(workers=POOL, clients=n, dispatch="connection")) for n in (1, POOL))
    groups.append(Group((fewest, at_pool)))
    title = f"A task for each connection, {POOL} threads: {POOL} ÷ 1 client"
    comparisons.append(Comparison("growth", title, at_pool, fewest, ("clients",), "growth", family=HEADLINE))
    return in_windows("dispatch", groups, comparisons, scale, Windows(0.1, 0.4))


def connection_policy(scale: Scale) -> Sweep:
    """Sweep that compares a new connection for each request with kept-alive connections, on both transports, in
    windows."""
    levels, title = ("per-request", "kept-alive"), "a connection for each request ÷ kept-alive"
    groups, comparisons = _at_both_ends((GRPC, SOCKETS), scale, "connection", levels, title)
    return in_windows("connection_policy", groups, comparisons, scale, Windows(0.1, 0.4))


OFFERED = {
    "grpc": (500.0, 1000.0, 2000.0, 3000.0, 4000.0, 5500.0),
    "sockets": (2000.0, 5000.0, 10000.0, 20000.0, 30000.0, 40000.0),
}
"""Rates of due requests, in requests a second, by transport. The rates rise from a tenth of the server's known capacity
on one core to over the capacity.
"""


def offered_load(scale: Scale) -> Sweep:
    """Sweep of an open loop at rising rates on both transports, by the lean client with 16 connections, in windows."""
    groups = []
    for base in (GRPC, SOCKETS):
        lean, rates_hz = base.but(client="lean", connections=16), OFFERED[base.text("transport")]
        groups.append(Group(tuple(Arm(lean.but(rate_hz=each)) for each in rates_hz)))
    few = replace(scale, rounds=scale.rounds // 2)
    return in_windows("offered_load", groups, [], few, Windows(0.5, 1.5))


def clients_of(count: int) -> str:
    """Number of clients in words: ``1 client``, ``5 clients``."""
    return counted(count, "client")


def groups_of(arms: Sequence[Arm], every: int = 1) -> tuple[Group, ...]:
    """Groups of at most six arms, for arms without a comparison. ``every``: number of rounds from one measurement of a
    group to the next."""
    return tuple(Group(tuple(arms[first : first + 6]), every=every) for first in range(0, len(arms), 6))


def _with_same(
    groups: Sequence[Group], comparisons: Sequence[Comparison], times: int
) -> tuple[list[Group], list[Comparison]]:
    """Groups and comparisons, with an added A/A pair for each transport. A transport's pair has the setting of the
    lower arm in the transport's first comparison. ``times``: number of times that a round measures a pair.
    """
    below: dict[str, Setting] = {}
    for each in comparisons:
        below.setdefault(each.below.setting.text("transport"), each.below.setting)
    pairs = [twins(each, "same") for each in below.values()]
    added = [Group((first, again), times=times) for _, first, again in pairs]
    return [*groups, *added], [*comparisons, *(comparison for comparison, _, _ in pairs)]


def in_slices(
    part: str,
    groups: Sequence[Group],
    comparisons: Sequence[Comparison],
    scale: Scale,
    inner: Sequence[Arm] = (),
) -> Sweep:
    """Sweep of a part in slices. A sweep that has comparisons, but no A/A pairs, gets A/A pairs. ``inner``: arms that
    only figures need, measured in every third round.
    """
    if not any(each.kind == "same" for each in comparisons):
        groups, comparisons = _with_same(groups, comparisons, SAME_TIMES)
    taken = tuple(arm for group in groups for arm in group.arms)
    groups = [*groups, *groups_of([arm for arm in dict.fromkeys(inner) if arm not in taken], INNER_EVERY)]
    groups, turns = equally_loaded(groups, comparisons), Slices(block_s=scale.block_s)
    return Sweep("stock", part, groups, tuple(comparisons), scale.rounds, scale.looks, scale.seed, turns)


def in_windows(
    part: str, groups: Sequence[Group], comparisons: Sequence[Comparison], scale: Scale, windows: Windows
) -> Sweep:
    """Sweep of a part in windows. A sweep in windows has a third of the scale's rounds."""
    groups, comparisons = _with_same(groups, comparisons, 1)
    rounds, groups = max(1, scale.rounds // 3), equally_loaded(groups, comparisons)
    return Sweep("stock", part, groups, tuple(comparisons), rounds, scale.looks, scale.seed, windows)
