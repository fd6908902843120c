"""Requests of the load client, and checks of the replies."""

import dataclasses
from collections import Counter
from itertools import islice

import pytest

from clients.load.plan.load_plan import LoadPlan, RequestType
from clients.load.plan.outcomes import INVALID_REPLY, TYPE_STEP
from clients.load.plan.workload import CYCLE, REMEMBERED_MAX, Request, Workload
from stock_service.rpc.errors import InternalFault
from stock_service.trading.model import Side, Status
from stock_service.trading.service import LOOKUP, TRADE, UPDATE
from stock_service.v1 import stock_pb2
from tests.raw_service import answered
from tests.unit.clients.fakes import service

STOCKS = ("GameStart", "FishCo", "BoarCo", "MenhirCo")
PLAN = LoadPlan("sockets", ("127.0.0.1", 1), 1, {"lookup": 3.0, "trade": 1.0}, STOCKS, 0.0, 1.0, seed=7)


def drawn(plan: LoadPlan, client: int = 0, connection: int = 0) -> list[Request]:
    """All the requests that a connection repeats."""
    return list(islice(Workload(plan).requests(client, connection), CYCLE))


def sent(plan: LoadPlan, client: int = 0, connection: int = 0) -> list[tuple[str, bytes]]:
    """Paths and payloads of requests."""
    return [(request.path, request.payload) for request in drawn(plan, client, connection)]


def test_the_seed_alone_decides() -> None:
    """The plan's seed, the client's number and the connection's number give the same requests in any process. A change
    of one gives others."""
    assert sent(PLAN) == sent(PLAN)
    others = [sent(PLAN, client=1), sent(PLAN, connection=1), sent(dataclasses.replace(PLAN, seed=8))]
    assert all(other != sent(PLAN) for other in others)


ZIPF = dataclasses.replace(PLAN, choice="zipf", mix={"lookup": 1.0})


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_zipf_favours_the_first(exponent: float) -> None:
    """The k-th stock is drawn in proportion to 1 ÷ k^s, within chance (4 standard deviations). Without Zipf all stocks
    have equal shares."""
    plan = dataclasses.replace(ZIPF, zipf_s=exponent) if exponent else dataclasses.replace(ZIPF, choice="uniform")
    drawn_of = Counter(
        stock_pb2.LookupRequest.FromString(payload).name
        for connection in range(4)
        for _, payload in sent(plan, connection=connection)
    )
    popularity = [(rank + 1) ** -exponent for rank in range(len(STOCKS))]
    for stock, popular in zip(STOCKS, popularity, strict=True):
        share = popular / sum(popularity)
        assert drawn_of[stock] / (4 * CYCLE) == pytest.approx(share, abs=4 * (share * (1 - share) / (4 * CYCLE)) ** 0.5)


def test_zipf_is_of_stocks_and_leaves_the_mix_alone() -> None:
    """Request types keep their weights, and the requests of one stock and type are equally frequent: trades buy as
    often as they sell."""
    mix = {"lookup": 1.0, "trade": 2.0, "update": 1.0}
    requests = sent(dataclasses.replace(ZIPF, mix=mix))
    kinds = Counter(path for path, _ in requests)
    assert len(kinds) == 3
    for path, share in ((LOOKUP, 0.25), (TRADE, 0.5), (UPDATE, 0.25)):
        assert kinds[path] / CYCLE == pytest.approx(share, abs=4 * (share * (1 - share) / CYCLE) ** 0.5)
    trades = [stock_pb2.TradeRequest.FromString(payload) for path, payload in requests if path == TRADE]
    first = [trade.side for trade in trades if trade.name == STOCKS[0]]
    assert len(first) / len(trades) == pytest.approx(0.48, abs=0.05)
    assert Counter(first)[stock_pb2.SIDE_BUY] / len(first) == pytest.approx(0.5, abs=0.07)
    updates = [stock_pb2.UpdateRequest.FromString(payload) for path, payload in requests if path == UPDATE]
    assert len({update.price_cents for update in updates if update.name == STOCKS[0]}) > 1


def checked_echo(reply: bytes) -> int:
    """A check of a request that is not the stock service's."""
    if reply != b"echo":
        raise InternalFault("no echo")
    return Status.OK


def test_zipf_of_other_services_is_of_their_payloads() -> None:
    """A plan may bring requests of other services, with their own check. Zipf's ranks are then the payloads in their
    order."""
    echo = RequestType("echo", "/a.B/Echo", (b"a", b"b", b"c", b"d"), checked_echo)
    requests = drawn(dataclasses.replace(ZIPF, mix={"echo": 1.0}, request_types=(echo,)))
    assert {request.path for request in requests} == {"/a.B/Echo"}
    assert (requests[0].check(b"echo"), requests[0].check(b"ohce")) == (Status.OK, INVALID_REPLY)
    counts = Counter(request.payload for request in requests)
    assert [payload for payload, _ in counts.most_common()] == [b"a", b"b", b"c", b"d"]
    assert counts[b"a"] / CYCLE == pytest.approx(0.48, abs=0.04)


def test_a_connection_repeats_what_it_drew() -> None:
    """A connection repeats the drawn requests without end, so that no request is encoded during the measurement."""
    requests = list(islice(Workload(PLAN).requests(0, 0), 2 * CYCLE))
    assert requests[:CYCLE] == requests[CYCLE:]


def test_trades_have_the_quantity_and_both_sides() -> None:
    """The quantity is the plan's, or else 1. Trades have both sides."""
    for quantity in (1, 5):
        plan = dataclasses.replace(PLAN, mix={"trade": 1.0}, quantity=quantity)
        trades = [stock_pb2.TradeRequest.FromString(payload) for _, payload in sent(plan)]
        assert {trade.quantity for trade in trades} == {quantity}
        assert {Side(trade.side) for trade in trades} == set(Side)


def test_every_request_is_one_that_the_service_answers_with_ok() -> None:
    """The service answers every request with OK, and the check of its reply gives the outcome of its type."""
    plan = dataclasses.replace(PLAN, mix={"lookup": 1.0, "trade": 1.0, "update": 1.0})
    stocks = service()
    firsts = {LOOKUP: 0, TRADE: TYPE_STEP, UPDATE: 2 * TYPE_STEP}
    for request in drawn(plan)[:500]:
        assert request.check(answered(stocks, request.path, request.payload)) == firsts[request.path] + Status.OK


def test_a_wrong_reply_is_caught_and_never_remembered() -> None:
    """Undecodable bytes and a reply of a different method are invalid, every time."""
    lookup = next(request for request in drawn(PLAN) if request.path == LOOKUP)
    trade = next(request for request in drawn(PLAN) if request.path == TRADE)
    refused = stock_pb2.LookupResponse(status=stock_pb2.STATUS_INVALID_PRICE).SerializeToString()
    for wrong in (b"\xff\xff", b"", refused, refused):
        assert lookup.check(wrong) == INVALID_REPLY
        assert trade.check(wrong) == TYPE_STEP + INVALID_REPLY
    assert lookup.known == trade.known == {}


def test_what_is_remembered_is_bounded() -> None:
    """Of many different replies each gets its outcome. The number of remembered replies is bounded."""
    trade = next(request for request in drawn(PLAN) if request.path == TRADE)
    for sequence in range(1, 3 * REMEMBERED_MAX):
        reply = stock_pb2.TradeResponse(status=stock_pb2.STATUS_OK, volume=sequence, sequence=sequence)
        assert trade.check(reply.SerializeToString()) == TYPE_STEP + Status.OK
        assert 0 < len(trade.known) <= REMEMBERED_MAX
    assert set(trade.known.values()) == {TYPE_STEP + Status.OK}
