"""The price updater: its times, its counts, and its end."""

import random
from collections import Counter

import pytest

from clients import price_updater
from clients.connecting import server_address
from clients.price_updater import Updates, run, said
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import DeadlineExceeded
from stock_service.rpc.transports.sockets import DEFAULT_PORT
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


def test_it_updates_between_waits_and_counts_outcomes() -> None:
    """One update follows each wait, except the wait that says stop. An unknown stock is counted as such."""
    connection = FakeConnection(service())
    outcomes: Counter[Status] = Counter()
    updates = Updates(("GameStart", "Nope"), 0.5, None)
    run(RemoteExchange(connection, 1.0), updates, random.Random(1), Waits(40), outcomes)
    assert [path for path, _, _ in connection.calls] == [UPDATE] * 40
    assert outcomes.keys() == {Status.OK, Status.UNKNOWN_STOCK}
    assert outcomes.total() == 40


def test_times_stocks_and_prices_come_from_the_seed() -> None:
    """The same seed gives the same updates at the same times. The intervals are exponential with the given mean."""
    runs = []
    for seed in (1, 1, 2):
        connection, waits = FakeConnection(service()), Waits(2000)
        exchange = RemoteExchange(connection, 1.0)
        run(exchange, Updates(("GameStart", "FishCo"), 0.02, None), random.Random(seed), waits, Counter())
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
    run(
        RemoteExchange(FakeConnection(service()), 1.0),
        Updates(("FishCo",), 1e6, 3.0),
        random.Random(1),
        waits,
        Counter(),
    )
    assert waits.asked_s == [3.0]


def test_a_fault_ends_it_with_what_it_had_counted() -> None:
    """A fault ends the updater with its counts. A silent updater would change a measurement."""

    def third_is_late(call: int) -> None:
        if call == 3:
            raise DeadlineExceeded("late")

    outcomes: Counter[Status] = Counter()
    exchange = RemoteExchange(FakeConnection(service(), third_is_late), 1.0)
    with pytest.raises(DeadlineExceeded):
        run(exchange, Updates(("FishCo",), 0.1, None), random.Random(1), Waits(9), outcomes)
    assert outcomes == {Status.OK: 2}


def test_it_says_how_many_and_of_which_outcome() -> None:
    """The last line has the number of updates, and the number of each outcome."""
    assert said(Counter({Status.UNKNOWN_STOCK: 1, Status.OK: 2})) == "3 updates: OK 2, UNKNOWN_STOCK 1"
    assert said(Counter()) == "0 updates"


@pytest.mark.parametrize(
    "arguments",
    ["--interval-s 0", "--interval-s nan", "--duration-s -1", "--stocks", "--stocks a\nb", "--seed -1", "lookup"],
)
def test_bad_usage_is_one_line(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad usage is one line on standard error and exit code 2."""
    with pytest.raises(SystemExit) as ended:
        price_updater.main(arguments.split(" "))
    said_there = capsys.readouterr()
    assert (ended.value.code, said_there.err.count("\n")) == (2, 1)


def test_the_default_address_is_the_transports() -> None:
    """The default address is this machine, with the default port of the transport's server."""
    options = price_updater._parser().parse_args(["--transport", "sockets"])
    assert server_address(options) == ("127.0.0.1", DEFAULT_PORT)
