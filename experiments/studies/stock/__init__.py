"""Comparison of two transports for a stock-trading service: raw sockets with a hand-written pool, and gRPC.

The study has four questions: (1) the time of a Lookup on sockets and on gRPC; (2) the latency as clients are added; (3)
the time of a Lookup and of a Trade, and the cost of the lock; (4) the latency with more clients than threads in the
static pool. Figures 1 to 5 have the axes of the original document. ``sweeps`` has the sweeps, ``answers`` the answers,
``claims`` the claims, and ``figures`` the figures. ``pool_fills``, ``executors`` and ``extensions`` have further parts.
"""

from experiments.studies.stock import answers, claims, executors, extensions, figures, pool_fills, sweeps
from experiments.studies.study import Part, Scale, Study

CLIENTS = (1, 2, 3, 4, 5)
"""Numbers of clients in the original document."""

STOCK = Study(
    name="stock",
    question="Raw sockets or gRPC: which answers sooner, how does latency grow with clients, what does the lock cost?",
    document="a student's report on two servers that trade stocks, “Evaluation and Performance Measurement”",
    parts={
        "stock": Part(
            title="Stock trading on sockets and on gRPC: five figures, four questions",
            sweep=sweeps.stock,
            pictures=figures.main,
            answers=answers.answers,
            claims=claims.claims,
            also=("past_pool",),
            after=("lock_waits", "stages"),
            beside=("dispatch", "lock_strategies"),
        ),
        "pool_fills": Part(
            title="A pool that fills: clients past its size, where a Lookup waits",
            clients=pool_fills.CLIENTS,
            sweep=pool_fills.sweep,
            pictures=pool_fills.pictures,
            answers=pool_fills.answers,
        ),
        "past_pool": Part(
            title="Past the pool's size, where a Lookup waits",
            sweep=pool_fills.past_pool,
            pictures=pool_fills.pictures,
            answers=pool_fills.answers,
        ),
        "executors": Part(
            title="Executors on both transports",
            clients=executors.CLIENTS,
            sweep=executors.sweep,
            pictures=executors.pictures,
            answers=executors.answers,
        ),
        "socket_trade": Part(
            title="Trade on sockets, beside Lookup and beside gRPC",
            sweep=sweeps.socket_trade,
            pictures=figures.over_clients("socket_trade", "Trade and Lookup on sockets, Trade on gRPC", "mix"),
            answers=extensions.socket_trade,
        ),
        "pool_by_clients": Part(
            title="Pools of 1 to 10 threads × clients",
            sweep=sweeps.pool_by_clients,
            pictures=figures.pools,
            answers=extensions.pool_by_clients,
        ),
        "updater": Part(
            title="With and without the price updater",
            sweep=sweeps.updater,
            answers=extensions.updater,
        ),
        "lock_strategies": Part(
            title="Every locking strategy beside the mutex",
            sweep=sweeps.lock_strategies,
            answers=extensions.lock_strategies,
            claims=claims.claims,
        ),
        "client_kind": Part(
            title="What the client adds: the transport's own against the lean one",
            sweep=sweeps.client_kind,
            pictures=figures.kinds,
            answers=extensions.client_kind,
        ),
        "dispatch": Part(
            title="A task for each request, or for each connection, past the pool's size",
            sweep=sweeps.dispatch,
            pictures=figures.over_clients("dispatch", "Both dispatch models, 5 threads", "dispatch"),
            answers=extensions.dispatch,
            claims=claims.claims,
        ),
        "connection_policy": Part(
            title="Kept-alive connections, or one for each request",
            sweep=sweeps.connection_policy,
            answers=extensions.connection_policy,
        ),
        "offered_load": Part(
            title="An open loop at rising rates",
            sweep=sweeps.offered_load,
            pictures=figures.offered,
            answers=extensions.offered_load,
        ),
        "lock_waits": Part(
            title="What the lock costs: waits under each strategy",
            sweep=sweeps.lock_waits,
            pictures=figures.lock_waits,
            answers=extensions.lock_costs,
            claims=claims.claims,
        ),
        "stages": Part(
            title="Where the time goes inside the servers",
            sweep=sweeps.stages,
            pictures=figures.stages_of,
            answers=extensions.stages,
        ),
    },
    scales={
        "smoke": Scale(rounds=4, looks=(2,), clients=CLIENTS, block_s=5.0),
        "quick": Scale(rounds=15, looks=(10, 14), clients=CLIENTS, block_s=16.0),
        "paper": Scale(rounds=45, looks=(12, 16, 20), clients=CLIENTS, block_s=90.0),
    },
)
