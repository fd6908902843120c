"""The study of seed 004: raw sockets with a hand-written pool against gRPC, for a stock-trading service.

Its four questions: (1) Lookup on sockets against gRPC; (2) latency as clients grow; (3) Lookup against Trade, and what
the lock costs; (4) clients beyond the static pool. Figures 1 to 5 have the original's axes.

What is held equal, so that a comparison changes one thing: both transports have the same executor (the static pool),
as many workers, the same locking, kept-alive connections that are made before the window, and carry the same protobuf
bytes. Where figure 5 is compared with figure 4, the pool's size alone differs. The original compared a service without
locks on sockets with one with locks on gRPC, and made its connections inside the timing of one side.

A figure's clients are processes with one connection each. ``--clients`` sets the levels of the clients of every part
but ``stages`` and ``offered_load``; figure 5 and the dispatch models go on to 10, or twice the largest. The catalog's
limits are so far off that no trade is ever refused; the outcomes are counted in the results.
"""

from dataclasses import replace
from pathlib import Path

from experiments.design import LOOKUP, LOOKUP_AND_TRADE, TRADE, Factor, Setting, cross
from experiments.study import Part, Profile, Scale, Study
from stock_service.trading.locking import LOCKINGS

CATALOG = Path(__file__).with_name("catalog.toml")
"""The default stocks, with limits that no run reaches."""

LARGE_POOL = 10
"""Workers on both transports where the pool is not to matter, unless there are more than 5 clients."""

SMALL_POOL = 5
"""The original's pool in figure 5."""

POOLS = (1, 3, 5, 10)

TRANSPORTS_COMPARED = ("grpc", "sockets")


def _base(part: str, scale: Scale) -> Setting:
    """A setting of that part on sockets with Lookup, the pool at least twice the clients."""
    return replace(scale.setting(part), workers=max(LARGE_POOL, 2 * max(scale.clients)))


def _clients(scale: Scale) -> Factor:
    return Factor("clients", scale.clients)


def _clients_past_pool(scale: Scale) -> Factor:
    """The clients asked for, and on to twice the small pool, or twice the most of them."""
    most = max(scale.clients)
    return Factor("clients", scale.clients + tuple(range(most + 1, max(2 * most, 2 * SMALL_POOL) + 1)))


def _clients_and_twice(scale: Scale) -> Factor:
    return Factor("clients", (*scale.clients, 2 * max(scale.clients)))


def _fewest_and_most(scale: Scale) -> Factor:
    return Factor("clients", tuple(sorted({min(scale.clients), max(scale.clients)})))


def figure_1(scale: Scale) -> tuple[Setting, ...]:
    """Lookup and Trade at random on gRPC, a price updater beside them."""
    base = replace(_base("figure_1", scale), transport="grpc", mix=LOOKUP_AND_TRADE, updater=True)
    return cross(base, _clients(scale))


def figure_2(scale: Scale) -> tuple[Setting, ...]:
    """Lookup on gRPC."""
    return cross(replace(_base("figure_2", scale), transport="grpc", mix=LOOKUP), _clients(scale))


def figure_3(scale: Scale) -> tuple[Setting, ...]:
    """Trade on gRPC."""
    return cross(replace(_base("figure_3", scale), transport="grpc", mix=TRADE), _clients(scale))


def figure_4(scale: Scale) -> tuple[Setting, ...]:
    """Lookup on sockets, the pool larger than the clients."""
    return cross(replace(_base("figure_4", scale), transport="sockets", mix=LOOKUP), _clients(scale))


def figure_5(scale: Scale) -> tuple[Setting, ...]:
    """Lookup on sockets, a pool of 5, on past it."""
    base = replace(_base("figure_5", scale), transport="sockets", mix=LOOKUP, workers=SMALL_POOL)
    return cross(base, _clients_past_pool(scale))


def locks(scale: Scale) -> tuple[Setting, ...]:
    """Every locking strategy under the most clients, and the mutex on gRPC too, the waits timed."""
    base = replace(_base("locks", scale), mix=LOOKUP_AND_TRADE, clients=max(scale.clients), lock_waits=True)
    return (*cross(base, Factor("locking", tuple(LOCKINGS))), replace(base, transport="grpc"))


def socket_trade(scale: Scale) -> tuple[Setting, ...]:
    """Trade on sockets, with Trade on gRPC and Lookup on sockets in the same blocks to compare with."""
    base = _base("socket_trade", scale)
    on_sockets = cross(base, Factor("mix", (LOOKUP, TRADE)), _clients(scale))
    on_grpc = cross(replace(base, transport="grpc", mix=TRADE), _clients(scale))
    return on_sockets + on_grpc


def pool_by_clients(scale: Scale) -> tuple[Setting, ...]:
    """Every pool × the clients, and twice the most of them."""
    return cross(_base("pool_by_clients", scale), Factor("workers", POOLS), _clients_and_twice(scale))


def dispatch(scale: Scale) -> tuple[Setting, ...]:
    """Both dispatch models with the small pool, on past it."""
    base = replace(_base("dispatch", scale), workers=SMALL_POOL)
    return cross(base, Factor("dispatch", ("request", "connection")), _clients_past_pool(scale))


def connection_policy(scale: Scale) -> tuple[Setting, ...]:
    """Both transports × both policies, with the fewest and the most clients."""
    return cross(
        _base("connection_policy", scale),
        Factor("transport", TRANSPORTS_COMPARED),
        Factor("connection", ("kept-alive", "per-request")),
        _fewest_and_most(scale),
    )


def updater(scale: Scale) -> tuple[Setting, ...]:
    """Both transports × without and with the updater, with the fewest and the most clients."""
    return cross(
        replace(_base("updater", scale), mix=LOOKUP_AND_TRADE),
        Factor("transport", TRANSPORTS_COMPARED),
        Factor("updater", (False, True)),
        _fewest_and_most(scale),
    )


def lock_strategies(scale: Scale) -> tuple[Setting, ...]:
    """Every strategy × Lookup, Trade and both × the fewest and the most clients, waits timed."""
    return cross(
        replace(_base("lock_strategies", scale), lock_waits=True),
        Factor("locking", tuple(LOCKINGS)),
        Factor("mix", (LOOKUP, TRADE, LOOKUP_AND_TRADE)),
        _fewest_and_most(scale),
    )


def same(scale: Scale) -> tuple[Setting, ...]:
    """Settings of figures 2 and 4 once more, for an A/A run: every difference between the two is false."""
    base = _base("same", scale)
    return cross(base, Factor("transport", TRANSPORTS_COMPARED), _fewest_and_most(scale))


def same_again(scale: Scale) -> tuple[Setting, ...]:
    """The same, for sweeps without the figures."""
    return tuple(replace(setting, part="same_again") for setting in same(scale))


def stages(scale: Scale) -> tuple[Setting, ...]:
    """Lookup with the small pool on both transports, up to it and past it, every request's stages stamped."""
    base = replace(_base("stages", scale), workers=SMALL_POOL, timeline=True)
    clients = tuple(sorted({1, SMALL_POOL, 2 * SMALL_POOL}))
    return cross(base, Factor("transport", TRANSPORTS_COMPARED), Factor("clients", clients))


OFFERED = {
    "grpc": (500, 1000, 2000, 3000, 4000, 5500, 7000),
    "sockets": (2000, 5000, 10000, 20000, 30000, 40000, 50000),
}
"""Requests due a second: from a tenth of what each server here is known to reach on one core, to past it."""

OFFERED_CONNECTIONS = 16


def offered_load(scale: Scale) -> tuple[Setting, ...]:
    """Lookup in an open loop at rising rates on both transports, from one lean client; twice the profile's window."""
    base = replace(_base("offered_load", scale), client="lean", connections=OFFERED_CONNECTIONS)
    base = replace(base, duration_s=2 * base.duration_s)
    return tuple(
        replace(base, transport=transport, rate_hz=float(rate)) for transport in OFFERED for rate in OFFERED[transport]
    )


def client_kind(scale: Scale) -> tuple[Setting, ...]:
    """Both transports × their own client and the lean one, with the fewest and the most clients."""
    return cross(
        _base("client_kind", scale),
        Factor("transport", TRANSPORTS_COMPARED),
        Factor("client", ("library", "lean")),
        _fewest_and_most(scale),
    )


STOCK = Study(
    name="stock",
    question="How do sockets with a static pool and gRPC compare, and what do clients, locks and pool do?",
    parts={
        "figure_1": Part("Lookup and Trade at random on gRPC, a price updater beside them", figure_1),
        "figure_2": Part("Lookup on gRPC", figure_2),
        "figure_3": Part("Trade on gRPC", figure_3),
        "figure_4": Part("Lookup on sockets, the pool larger than the clients", figure_4),
        "figure_5": Part("Lookup on sockets, a pool of 5, clients past it", figure_5),
        "locks": Part("Lookup and Trade on sockets under each locking strategy, lock waits timed", locks),
        "same": Part(
            "Figures 2 and 4 once more, compared with themselves: what differences are found where there are none", same
        ),
        "same_again": Part(
            "The same settings twice in each block: what differences are found where there are none", same_again
        ),
        "stages": Part(
            "Where a Lookup's time goes in the server, pool of 5, up to it and past it", stages, varies_clients=False
        ),
        "socket_trade": Part("Trade on sockets, against Trade on gRPC and Lookup on sockets", socket_trade),
        "pool_by_clients": Part("Lookup on sockets: pool × clients", pool_by_clients),
        "dispatch": Part("Both dispatch models past the pool, starved clients counted", dispatch),
        "connection_policy": Part(
            "Kept-alive against one connection per request, on both transports", connection_policy
        ),
        "updater": Part("With and without the price updater, on both transports", updater),
        "lock_strategies": Part("Every locking strategy × Lookup, Trade and both, lock waits timed", lock_strategies),
        "offered_load": Part(
            "Lookup at a given rate, whatever the server does, up to what it can do", offered_load, varies_clients=False
        ),
        "client_kind": Part("What the client itself adds: the transport's own against the lean one", client_kind),
    },
    main=("figure_1", "figure_2", "figure_3", "figure_4", "figure_5", "locks", "stages", "same"),
    beside=("same", "same_again"),
    profiles={
        "smoke": Profile(blocks=2, warm_up_s=0.1, duration_s=0.2),
        "quick": Profile(blocks=9, warm_up_s=0.35, duration_s=0.85),
        "paper": Profile(blocks=12, warm_up_s=2.0, duration_s=20.0),
    },
)
