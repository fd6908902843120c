"""The exchange over a connection, and the checks on its replies."""

import pytest

from clients import replies
from clients.remote_exchange import RemoteExchange
from stock_service.rpc.errors import InternalFault, InvalidRequest
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex
from stock_service.trading.model import INT64_MAX, Side, Status, Stock
from stock_service.v1 import stock_pb2
from tests.unit.clients.fakes import CannedConnection, FakeConnection, service

STOCKS = (Stock("GameStart", 1599, 100), Stock("FishCo", 4250, 1_000_000))

REQUESTS = (
    ("lookup", ("GameStart",)),
    ("lookup", ("Nope",)),
    ("lookup", ("",)),
    ("trade", ("GameStart", 60, Side.BUY)),
    ("trade", ("GameStart", 41, Side.SELL)),
    ("trade", ("GameStart", 40, Side.SELL)),
    ("lookup", ("GameStart",)),
    ("trade", ("GameStart", 0, Side.BUY)),
    ("trade", ("GameStart", 2**31, Side.BUY)),
    ("trade", ("GameStart", 10**30, Side.BUY)),
    ("trade", ("GameStart", -(10**30), Side.BUY)),
    ("trade", ("FishCo", 1, 3)),
    ("trade", ("FishCo", 1, 10**12)),
    ("trade", ("Nope", 0, 7)),
    ("trade", ("FishCo", 5, Side.BUY, "id-1")),
    ("trade", ("FishCo", 5, Side.BUY, "id-1")),
    ("update", ("FishCo", 0)),
    ("update", ("FishCo", -1)),
    ("update", ("FishCo", -(10**30))),
    ("update", ("Nope", -1)),
    ("lookup", ("FishCo",)),
)


def test_it_answers_as_the_exchange_does() -> None:
    """The same requests in the same order get equal replies over a connection and without one."""
    remote = RemoteExchange(FakeConnection(service(*STOCKS)), 1.0)
    local = Exchange(MemoryCatalog(STOCKS, Mutex))
    for method, arguments in REQUESTS:
        assert getattr(remote, method)(*arguments) == getattr(local, method)(*arguments), (method, arguments)


def test_every_call_has_the_timeout() -> None:
    """Every call has the timeout of the exchange."""
    connection = FakeConnection(service())
    RemoteExchange(connection, 0.7).lookup("GameStart")
    assert [timeout_s for _, _, timeout_s in connection.calls] == [0.7]


def test_what_the_wire_cannot_carry_is_refused_before_it_is_sent() -> None:
    """A price over 2^63 - 1 cents is refused before the send. So is half a surrogate pair, which UTF-8 lacks."""
    connection = FakeConnection(service())
    remote = RemoteExchange(connection, 1.0)
    with pytest.raises(InvalidRequest, match=str(INT64_MAX)):
        remote.update("GameStart", INT64_MAX + 1)
    with pytest.raises(InvalidRequest, match="UTF-8"):
        remote.lookup("\udcff")
    assert connection.calls == []


LOOKUP, TRADE, UPDATE = stock_pb2.LookupResponse, stock_pb2.TradeResponse, stock_pb2.UpdateResponse


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("lookup", LOOKUP()),
        ("lookup", LOOKUP(status=Status.INVALID_PRICE)),  # type: ignore[arg-type]
        ("lookup", LOOKUP(status=99)),  # type: ignore[arg-type]
        ("lookup", LOOKUP(status=Status.OK, price_cents=-1)),  # type: ignore[arg-type]
        ("lookup", LOOKUP(status=Status.UNKNOWN_STOCK, price_cents=5)),  # type: ignore[arg-type]
        ("trade", TRADE()),
        ("trade", TRADE(status=Status.INVALID_PRICE)),  # type: ignore[arg-type]
        ("trade", TRADE(status=Status.OK, volume=5)),  # type: ignore[arg-type]
        ("trade", TRADE(status=Status.OK, sequence=5)),  # type: ignore[arg-type]
        ("trade", TRADE(status=Status.SUSPENDED, volume=5, sequence=5)),  # type: ignore[arg-type]
        ("trade", TRADE(status=Status.UNKNOWN_STOCK, volume=5)),  # type: ignore[arg-type]
        ("update", UPDATE(status=Status.SUSPENDED)),  # type: ignore[arg-type]
        ("update", UPDATE(status=Status.OK)),  # type: ignore[arg-type]
        ("update", UPDATE(status=Status.INVALID_PRICE, sequence=1)),  # type: ignore[arg-type]
    ],
)
def test_a_reply_that_the_method_never_gives_is_a_fault(
    method: str, reply: stock_pb2.LookupResponse | stock_pb2.TradeResponse | stock_pb2.UpdateResponse
) -> None:
    """A reply with an unknown status, a status of a different method, or values that contradict the status is a
    fault."""
    with pytest.raises(InternalFault, match="never gives"):
        getattr(replies, method)(reply.SerializeToString())


def test_an_unknown_status_is_named() -> None:
    """The fault has the number of the unknown status, which points to a server of another version."""
    reply = LOOKUP(status=99).SerializeToString()  # type: ignore[arg-type]
    with pytest.raises(InternalFault, match="unknown status 99"):
        RemoteExchange(CannedConnection([reply]), 1.0).lookup("GameStart")


@pytest.mark.parametrize("method", ["lookup", "trade", "update"])
def test_bytes_that_do_not_decode_are_a_fault(method: str) -> None:
    """Bytes that do not decode are a fault, for every method."""
    with pytest.raises(InternalFault, match="3 bytes"):
        getattr(replies, method)(b"\xff\xff\xff")
