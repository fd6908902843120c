"""A store on a disk behind every server: its histories are linearizable, and requests that wait share a commit."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from clients.load.history.by_sequence import violations
from clients.load.history.operations import contended
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.service import Service
from stock_service.storage.sqlite import SqliteCatalog
from stock_service.storage.sqlite_file import Connect, StoreFile
from stock_service.trading.exchange import Exchange
from stock_service.trading.model import Side, Status, Stock
from stock_service.trading.service import stock_service
from tests.conformance.running import WAIT_S, Kind, Limits, maker, one_executor_each, until
from tests.each_thread import OfEachThread
from tests.races.history import plan, record
from tests.stores import STOCKS, Gate, hooked, unsynced

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_leaks")]

THREADS = 6

TRADES = 12
"""Concurrent requests: more than a server of these checks has threads."""

CONTENDED_MIN = 0.3
"""The share of operations that must overlap a conflicting one; a history with less proves nothing."""

WITHOUT_A_THREAD = [
    kind
    for kind in one_executor_each(1)
    if kind.dispatch == "loop" or (kind.transport in ("sockets", "http1", "grpc_static") and kind.dispatch == "request")
]
"""Transports whose requests wait for the disk without a thread."""


@contextmanager
def stored(path: Path, stocks: tuple[Stock, ...], connect: Connect) -> Iterator[tuple[SqliteCatalog, Service]]:
    """A catalog on a file, and the service on it."""
    catalog = SqliteCatalog(path, stocks, open_file=partial(StoreFile.opened, connect=connect))
    try:
        yield catalog, stock_service(Exchange(catalog), catalog.flush)
    finally:
        assert catalog.close()


@pytest.mark.parametrize("kind", one_executor_each(0), ids=str)
def test_histories_over_every_server_are_linearizable(kind: Kind, rng: random.Random, tmp_path: Path) -> None:
    """Concurrent clients, with retries of each other's requests, get replies as from a sequential order."""
    asked = plan(rng, THREADS, rounds=8)
    with (
        stored(tmp_path / "s", tuple(asked.stocks), unsynced) as (_, service),
        maker(kind)(service, Limits(workers=THREADS + 1)) as running,
    ):
        connections = [running.connect() for _ in range(THREADS + 1)]  # one looks at the end
        history = record(OfEachThread([RemoteExchange(each, WAIT_S) for each in connections]), asked)
    assert violations(asked.stocks, history) == []
    assert contended(history) >= CONTENDED_MIN


@pytest.mark.parametrize("kind", WITHOUT_A_THREAD, ids=str)
def test_trades_that_wait_take_no_thread_and_share_a_commit(kind: Kind, tmp_path: Path) -> None:
    """While a server of two threads commits one trade, twelve others wait for the next commit, which they share. A
    Lookup is answered meanwhile, and each trade gets its own reply."""
    gate = Gate()
    with (
        stored(tmp_path / "s", STOCKS, hooked(gate.hook)) as (catalog, service),
        maker(kind)(service, Limits(workers=2)) as running,
        ThreadPoolExecutor(TRADES + 1) as threads,
        ExitStack() as opened,
    ):
        clients = [RemoteExchange(running.connect(), WAIT_S) for _ in range(TRADES + 2)]
        gate.shut = True
        opened.callback(gate.let, TRADES)
        first = threads.submit(clients[0].trade, "FishCo", 1, Side.BUY)
        assert gate.reached()
        others = [threads.submit(each.trade, "FishCo", 1, Side.BUY, f"{n}") for n, each in enumerate(clients[2:])]
        until(lambda: len(catalog._waiting) == TRADES, "all wait")
        assert clients[1].lookup("FishCo").volume == 0
        gate.let(2)
        replies = [trade.result(WAIT_S) for trade in (first, *others)]
        assert {reply.status for reply in replies} == {Status.OK}
        assert sorted((reply.volume, reply.sequence) for reply in replies) == [(n, n) for n in range(1, TRADES + 2)]
        assert gate.commits == 2
        assert clients[1].lookup("FishCo").volume == TRADES + 1
