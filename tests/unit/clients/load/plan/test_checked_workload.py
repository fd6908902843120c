"""Requests of a checked run, and the records of these requests."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from clients.load.history.operations import NEVER_NS, Operation, Trade, Untold
from clients.load.plan import checked_workload
from clients.load.plan.checked_workload import SHARED_BY, Asked, CheckedWorkload
from clients.load.plan.load_plan import Check, LoadPlan
from clients.load.plan.outcomes import INVALID_REPLY
from stock_service.rpc.errors import InvalidRequest, Overloaded, Unavailable
from stock_service.trading.model import Side, TradeReply
from stock_service.trading.service import LOOKUP
from tests.raw_service import answered
from tests.unit.clients.fakes import Clock, service

STOCKS = ("GameStart", "FishCo")
MIX = {"lookup": 1.0, "trade": 2.0, "update": 1.0}
PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, MIX, STOCKS, 0.0, 1.0, connections_per_client=6, check=Check("run"))


def sent(plan: LoadPlan, count: int, connections: int = 1) -> list[Operation]:
    """Records of requests that a server answered, in sequence."""
    workload, server = CheckedWorkload(plan, Clock()), service()
    for connection in range(connections):
        for request in islice(workload.requests(0, connection), count):
            assert request.known.get(b"") is None
            request.check(answered(server, request.path, request.payload))
    return workload.operations()


def test_every_reply_is_kept_with_its_request() -> None:
    """Every reply is kept with its request, in the order of the sends, which is that of the volumes."""
    kept = sent(PLAN, 200)
    assert len(kept) == 200
    assert Counter(type(operation.request).__name__ for operation in kept).keys() == {"Lookup", "Trade", "Update"}
    assert all(operation.called_ns < operation.returned_ns < NEVER_NS for operation in kept)
    first: dict[str, Trade] = {}
    volume = dict.fromkeys(STOCKS, 0)
    for operation in kept:
        request, reply = operation.request, operation.reply
        if isinstance(request, Trade) and first.setdefault(request.request_id or str(operation), request) is request:
            volume[request.name] += request.quantity
            assert isinstance(reply, TradeReply)
            assert reply.volume == volume[request.name]


def test_connections_share_ids_each_for_one_trade() -> None:
    """``SHARED_BY`` connections use each id for one trade. With conflicts an id is also used for a different trade."""
    trades: dict[str, list[Trade]] = {}
    for operation in sent(PLAN, 400, connections=SHARED_BY):
        if isinstance(operation.request, Trade) and operation.request.request_id:
            trades.setdefault(operation.request.request_id, []).append(operation.request)
    assert max(map(len, trades.values())) == SHARED_BY
    assert all(len(set(uses)) == 1 for uses in trades.values())
    workload = CheckedWorkload(replace(PLAN, check=Check("run", conflicts=1.0)), Clock())
    list(islice(workload.requests(0, 0), 400))
    others = [operation.request for operation in workload.operations() if isinstance(operation.request, Trade)]
    assert any(request.quantity != trades[request.request_id][0].quantity for request in others if request.request_id)


def test_beyond_its_share_a_connection_only_looks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection beyond its share sends only Lookups, so that memory is bounded, and the history stays whole."""
    monkeypatch.setattr(checked_workload, "HISTORY_MAX", 60)
    workload = CheckedWorkload(PLAN, Clock())
    requests = workload.requests(0, 0)
    list(islice(requests, 10))
    assert {request.path for request in islice(requests, 50)} == {LOOKUP}
    assert len(workload.operations()) == 10


def test_a_request_that_had_no_effect_is_not_kept() -> None:
    """A request that was never sent, and one that the server had no room for, are not kept. After other faults the
    effect is unknown."""
    trade = Trade("GameStart", 1, Side.BUY, "x")

    def asked() -> Asked:
        return Asked(trade, 32, Clock())

    unsent, refused, overloaded, lost, garbled = asked(), asked(), asked(), asked(), asked()
    unsent.not_sent()
    overloaded.failed(Overloaded("full"))
    refused.failed(InvalidRequest("used for another trade"))
    lost.failed(Unavailable("gone"))
    assert garbled(b"\xff") == 32 + INVALID_REPLY
    assert unsent.operation() is None
    assert overloaded.operation() is None
    ends = [one.operation() for one in (refused, lost, garbled)]
    assert [end and end.reply for end in ends] == [Untold.REFUSED, Untold.UNKNOWN, Untold.UNKNOWN]
    assert [end and end.returned_ns == NEVER_NS for end in ends] == [False, True, True]
