"""Retries: the requests that are sent again, after which fault, how often and after what wait."""

import random
from collections.abc import Callable

import pytest

from clients.retrying import FIRST_WAIT_S, WAIT_MAX_S, RetryingExchange
from stock_service.rpc.errors import FAULTS, DeadlineExceeded, Fault, NotBegun, Overloaded, Unavailable
from stock_service.trading.model import LookupReply, Side, Status, TradeReply, UpdateReply
from stock_service.trading.service import LOOKUP, TRADE, UPDATE
from stock_service.v1 import stock_pb2
from tests.raw_service import answered
from tests.unit.clients.fakes import FakeConnection, service

PASSING = (Unavailable, DeadlineExceeded, Overloaded)

Ask = Callable[[RetryingExchange], object]

ASKED: dict[str, Ask] = {
    LOOKUP: lambda exchange: exchange.lookup("FishCo"),
    TRADE: lambda exchange: exchange.trade("FishCo", 5, Side.BUY, "id"),
    UPDATE: lambda exchange: exchange.update("FishCo", 7),
}


class Faulty:
    """A server whose first calls fail, before or after they had their effect; counts its connections."""

    def __init__(self, *faults: Fault, after: bool = False) -> None:
        self._faults = list(faults)
        self._after = after
        self._service = service()
        self.connections: list[FakeConnection] = []
        self.waits: list[float] = []

    def connect(self) -> FakeConnection:
        self.connections.append(FakeConnection(self._service, self._fails))
        return self.connections[-1]

    @property
    def calls(self) -> list[tuple[str, bytes, float]]:
        """All requests that were sent."""
        return [call for connection in self.connections for call in connection.calls]

    def exchange(self, retries: int) -> RetryingExchange:
        """A retrying exchange on this server, with waits that take no time."""
        return RetryingExchange(self.connect, 1.0, retries, rng=random.Random(1), sleep=self.waits.append)

    def _fails(self, _: int) -> None:
        if self._faults:
            if self._after:
                answered(self._service, *self.calls[-1][:2])
            raise self._faults.pop(0)


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("fault", [*FAULTS.values(), NotBegun], ids=lambda each: each.__name__)
def test_what_is_sent_again_after_which_fault(path: str, fault: type[Fault]) -> None:
    """A Lookup and a Trade are sent again after transient faults, an Update only if it had no effect. After other
    faults no request is sent again."""
    again = fault in (Overloaded, NotBegun) or (fault in PASSING and path != UPDATE)
    server = Faulty(fault("once"))
    exchange = server.exchange(3)
    if again:
        assert ASKED[path](exchange)
        assert (len(server.calls), exchange.retried) == (2, 1)
    else:
        with pytest.raises(fault):
            ASKED[path](exchange)
        assert (len(server.calls), exchange.retried) == (1, 0)


@pytest.mark.parametrize("path", ASKED)
def test_nothing_is_sent_again_unless_asked(path: str) -> None:
    """Without retries every fault is raised at once, and a trade gets no id."""
    for fault in PASSING:
        server = Faulty(fault("once"))
        with pytest.raises(fault):
            ASKED[path](server.exchange(0))
        assert (len(server.calls), server.waits) == (1, [])
    server = Faulty()
    server.exchange(0).trade("FishCo", 5, Side.BUY)
    assert stock_pb2.TradeRequest.FromString(server.calls[0][1]).request_id == ""


def test_a_trade_that_was_done_has_one_effect() -> None:
    """A trade whose replies were lost twice was sent three times under one id. A trade without an id got a unique
    id."""
    server = Faulty(Unavailable("lost"), DeadlineExceeded("late"), after=True)
    exchange = server.exchange(2)
    assert exchange.trade("FishCo", 5, Side.BUY) == TradeReply(Status.OK, 5, 1)
    (request_id,) = {stock_pb2.TradeRequest.FromString(payload).request_id for _, payload, _ in server.calls}
    assert len(request_id) == 32
    assert exchange.trade("FishCo", 5, Side.BUY) == TradeReply(Status.OK, 10, 2)
    assert exchange.lookup("FishCo") == LookupReply(Status.OK, 4250, 10, 2)
    assert exchange.update("FishCo", 5) == UpdateReply(Status.OK, 3)
    assert exchange.retried == 2


def test_tries_and_waits_are_bounded() -> None:
    """After the last try the fault is raised. Each wait is over half of its bound, and the bound doubles."""
    server = Faulty(*[Unavailable(f"{number}") for number in range(20)])
    with pytest.raises(Unavailable, match="10"):
        server.exchange(10).lookup("FishCo")
    assert len(server.calls) == 11
    bounds = [min(WAIT_MAX_S, FIRST_WAIT_S * 2**number) for number in range(10)]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(server.waits, bounds, strict=True))
    assert len(set(server.waits)) == 10


def test_a_try_behind_a_lost_reply_has_a_new_connection() -> None:
    """After a lost reply the next try has a new connection, since the late reply must not count for the next request.
    After a refusal the connection stays."""
    for fault, connections in ((Unavailable, 2), (DeadlineExceeded, 2), (Overloaded, 1)):
        server = Faulty(fault("once"))
        exchange = server.exchange(1)
        exchange.lookup("FishCo")
        assert len(server.connections) == connections
        assert [each.closed for each in server.connections[:-1]] == [True] * (connections - 1)
        exchange.close()
        exchange.close()
        assert server.connections[-1].closed


def test_connecting_is_tried_again_for_every_request() -> None:
    """Connecting is tried again for every request, also for an Update: without a connection nothing was sent."""
    server = Faulty()
    refusals = [Unavailable("nobody listens")] * 2

    def connect() -> FakeConnection:
        if refusals:
            raise refusals.pop()
        return server.connect()

    exchange = RetryingExchange(connect, 1.0, 2, sleep=server.waits.append)
    assert exchange.update("FishCo", 7) == UpdateReply(Status.OK, 1)
    assert exchange.retried == 2
