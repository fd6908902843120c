"""Promise: replicas on one PostgreSQL answer as one catalog, through kills and cut connections.

Histories over three replicas are judged. During some histories PostgreSQL is shut down or killed, or its connections
are cut, at random moments. Also, a server is killed under load and started again, as in ``kills.py``.
"""

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Event, Thread
from typing import TYPE_CHECKING

from clients.load.history.operations import History
from clients.load.history.verdict import judged
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from tests.races.history import plan, record
from tests.reliability.kills import killed
from tests.reliability.rows import Row, absent

if TYPE_CHECKING:
    from tests.postgres import Postgres  # which needs psycopg

POSTGRES = "PostgreSQL"

HISTORIES, SOME = 300, 4
"""Number of histories overnight, and in seconds; a tenth of the first number in minutes."""

KILLS, SOME_KILLS = 100, 1

THREADS, ROUNDS, REPLICAS = 6, 20, 3

PAUSE_S = 0.5
"""Longest time between two losses. With 0.1 s PostgreSQL is hardly back before the next loss: of 1,842 requests of two
histories 41 were begun."""


def _restarted(postgres: "Postgres", number: signal.Signals) -> None:
    postgres.stop(number)
    postgres.start()


LOSSES: dict[str, Callable[["Postgres"], object] | None] = {
    "none": None,
    "connections cut": lambda postgres: postgres.cut(),
    "immediate shutdown": lambda postgres: _restarted(postgres, signal.SIGQUIT),
    "kill -9": lambda postgres: _restarted(postgres, signal.SIGKILL),
}
"""Losses, each repeated while a history is recorded."""


def check(minutes: bool, seed: int) -> list[Row]:
    """Blocks for half a minute; with ``minutes`` for some minutes. Drawn: requests, and when losses come."""
    if advice := lacking_postgres():
        return [Row(absent(POSTGRES), "every history", f"not tried: {advice}", passed=False)]
    from tests.postgres import Postgres

    rng = random.Random(seed)
    histories, kills = (HISTORIES // 10, KILLS // 10) if minutes else (SOME, SOME_KILLS)
    with Postgres() as postgres:
        rows = judge(postgres, rng, histories)
        store = f"postgres:{postgres.store(DEFAULT_STOCKS)}"
        start = ("stock_service", "serve", "--transport", "sockets", "--store", store)
        return rows + killed(start, rng, kills, "kill -9 of a replica")


def lacking_postgres() -> str:
    """Advice how to get PostgreSQL or its library; empty if both are installed."""
    if find_spec("psycopg") is None:
        return "uv sync --extra postgres"
    from tests.postgres import ABSENT, programs

    return "" if programs() else ABSENT


def judge(postgres: "Postgres", rng: random.Random, histories: int) -> list[Row]:
    """Rows of this number of histories, equally many of each kind of loss. Prints each history that is not right."""
    from tests.postgres import of_each_replica, replicas

    found: Counter[str] = Counter()
    requests = unknown = losses = 0
    for number in range(histories):
        kind = list(LOSSES)[number % len(LOSSES)]
        asked = plan(rng, THREADS, rounds=ROUNDS)
        with replicas(postgres.store(asked.stocks), REPLICAS) as catalogs, lost(postgres, kind, rng) as times:
            operations = record(of_each_replica(catalogs), asked)
        verdict = judged(History(asked.stocks, None, operations))
        found[verdict.finding] += 1
        requests += verdict.requests
        unknown += verdict.unknown
        losses += times[0]
        if verdict.finding != "linearizable":
            print(f"replicas, {kind}: {verdict.finding}: {'; '.join(verdict.faults[:2])}", flush=True)
    of = f"of {histories} with {requests:,} requests, {losses} losses, {unknown} unknown outcomes"
    return [
        Row(
            f"histories over {REPLICAS} replicas {fault}", f"0 of {histories}", f"{found[fault]} {of}", not found[fault]
        )
        for fault in ("not linearizable", "not decided")
    ]


@contextmanager
def lost(postgres: "Postgres", kind: str, rng: random.Random) -> Iterator[list[int]]:
    """Repeats the loss until the end of the block. Gives the number of losses, in a list."""
    lose, ended, times = LOSSES[kind], Event(), [0]

    def life() -> None:
        assert lose is not None
        while not ended.wait(rng.uniform(0, PAUSE_S)):
            lose(postgres)
            times[0] += 1

    thread = Thread(target=life, name="losses")
    if lose is not None:
        thread.start()
    try:
        yield times
    finally:
        ended.set()
        if lose is not None:
            thread.join()
