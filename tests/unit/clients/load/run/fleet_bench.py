"""Parts for tests of runs: servers, plans, and the conditions that every run must keep."""

import dataclasses
import multiprocessing.forkserver
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import psutil

from clients.load.plan.load_plan import LoadPlan
from clients.load.record.result import LoadResult
from clients.load.run import fleet
from clients.load.run.fleet import Progress
from clients.load.send.driver import LATE_NS
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, ServeOptions, load
from stock_service.rpc.transports.sockets import SocketOptions
from tests.unit.clients.fakes import service

TRIES = 3

MIX = {"lookup": 2.0, "trade": 1.0, "update": 1.0}
STOCKS = ("GameStart", "FishCo")

REQUESTS, CONNECTIONS = ServeOptions(), ServeOptions(own=SocketOptions(dispatch="connection"))
"""Options of a server: a thread serves one request, or one connection."""


def run_in_time(plan: LoadPlan) -> LoadResult:
    """A run in which every client sent its due requests.

    A busy machine may keep a client from its core past the end of the window. Its due requests are then never sent. A
    run is done again where a request was so late that it was given up, and nothing else was wrong. The last run counts.
    A request that is left unsent without being late is a fault of ours, and is not repeated.
    """
    result = fleet.run(plan)
    for _ in range(TRIES - 1):
        late = result.late_us is not None and (result.late_us.max_us or 0.0) * 1000 >= LATE_NS
        if result.errors.keys() != {"never_sent"} or not late:
            break
        result = fleet.run(plan)
    return result


def assert_accounted(result: LoadResult) -> None:
    """Every begun request was recorded, and no request failed."""
    assert result.began == result.recorded > 0
    assert result.errors == {}


def spoken(cases: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Cases whose transport has the case's client. A case begins with a transport and a client."""
    return [case for case in cases if case[1] == "library" or load(str(case[0])).codec(("127.0.0.1", 1)) is not None]


@contextmanager
def serving(
    transport: str, options: ServeOptions = REQUESTS, workers: int = 8, served: Service | None = None
) -> Iterator[Address]:
    """A service on a transport, in this process: the default stocks, unless another is given."""
    pool = StaticPool(workers, 256)
    server = load(transport).serve(served or service(), pool, options)
    try:
        yield server.address
    finally:
        server.stop(1.0)
        pool.stop(1.0)


def plan_on(transport: str, where: Address, **changes: object) -> LoadPlan:
    plan = LoadPlan(transport, where, 2, MIX, STOCKS, warm_up_s=0.05, duration_s=0.25)
    return dataclasses.replace(plan, **changes)  # type: ignore[arg-type]


def client_pids() -> list[int]:
    """The client processes that run: what the fork server has forked."""
    server_pid = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return [child.pid for child in psutil.Process(server_pid).children()]


ANSWERED = 150
"""Number of answered requests in the window from which the action is due."""


def at_measuring(act: Callable[[], None], often: bool = False) -> fleet.Watch:
    """A watch that calls ``act`` when requests of the window have been answered; with ``often`` also at every later
    look."""
    began: list[int] = []
    acted: list[bool] = []

    def watch(progress: Progress) -> None:
        if progress.phase == "measuring":
            began.append(progress.requests)
        if (acted and often) or (began and not acted and progress.requests >= began[0] + ANSWERED):
            acted.append(True)
            act()

    return watch
