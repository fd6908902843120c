"""The price updater: its times, its counts, and its end."""

import math
import random
from collections import Counter

import pytest

from clients import price_updater
from clients.price_updater import Updates, run, said
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import DeadlineExceeded
from stock_service.trading.model import Status
from stock_service.trading.service import UPDATE
from stock_service.v1 import stock_pb2
from tests.unit.clients.fakes import FakeConnection, service


class Waits:
    """Waits that take no time, until the last says stop."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.asked_s: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.asked_s.append(seconds)
        self._left -= 1
        return self._left < 0


def updated(updates: Updates, waits: Waits, connection: FakeConnection | None = None, seed: int = 1) -> Counter[Status]:
    """Outcomes of a run."""
    outcomes: Counter[Status] = Counter()
    exchange = RemoteExchange(connection or FakeConnection(service()), 1.0)
    run(exchange, updates, random.Random(seed), waits, outcomes)
    return outcomes


def test_it_updates_between_waits_and_counts_outcomes() -> None:
    """One update follows each wait, except the wait that says stop. An unknown stock is counted as such. The last line
    has the number of updates, and the number of each outcome."""
    connection = FakeConnection(service())
    outcomes = updated(Updates(("GameStart", "Nope"), 0.5, math.inf), Waits(40), connection)
    assert [path for path, _, _ in connection.calls] == [UPDATE] * 40
    ok, unknown = outcomes[Status.OK], outcomes[Status.UNKNOWN_STOCK]
    assert (ok > 0, unknown > 0, ok + unknown) == (True, True, 40)
    backwards = Counter({Status.UNKNOWN_STOCK: unknown, Status.OK: ok})
    assert said(backwards) == said(outcomes) == f"40 updates: OK {ok}, UNKNOWN_STOCK {unknown}"
    assert said(Counter()) == "0 updates"


def test_times_stocks_and_prices_come_from_the_seed() -> None:
    """The same seed gives the same updates at the same times. The intervals are exponential with the given mean."""
    runs = []
    for seed in (1, 1, 2):
        connection, waits = FakeConnection(service()), Waits(2000)
        updated(Updates(("GameStart", "FishCo"), 0.02, math.inf), waits, connection, seed)
        runs.append((waits.asked_s, [payload for _, payload, _ in connection.calls]))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    intervals_s, payloads = runs[0]
    mean_s = sum(intervals_s) / len(intervals_s)
    assert mean_s == pytest.approx(0.02, rel=0.1)
    spread_s = (sum((interval_s - mean_s) ** 2 for interval_s in intervals_s) / len(intervals_s)) ** 0.5
    assert spread_s == pytest.approx(mean_s, rel=0.15)  # which is what makes it exponential and not constant
    requests = [stock_pb2.UpdateRequest.FromString(payload) for payload in payloads]
    assert {request.name for request in requests} == {"GameStart", "FishCo"}
    low, high = price_updater.PRICE_CENTS
    assert all(low <= request.price_cents <= high for request in requests)


def test_it_waits_no_longer_than_it_has_left() -> None:
    """With a duration the updater ends on time, also during an interval."""
    waits = Waits(5)
    updated(Updates(("FishCo",), 1e6, 3.0), waits)
    assert waits.asked_s == [3.0]


def test_a_fault_ends_it_with_what_it_had_counted() -> None:
    """A fault ends the updater with its counts. A silent updater would change a measurement."""

    def third_is_late(call: int) -> None:
        if call == 3:
            raise DeadlineExceeded("late")

    outcomes: Counter[Status] = Counter()
    exchange = RemoteExchange(FakeConnection(service(), third_is_late), 1.0)
    with pytest.raises(DeadlineExceeded):
        run(exchange, Updates(("FishCo",), 0.1, math.inf), random.Random(1), Waits(9), outcomes)
    assert outcomes == {Status.OK: 2}
