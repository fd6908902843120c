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
from tests.unit.clients.fakes import FakeConnection, service

STOCKS = (Stock("GameStart", 1599, 100), Stock("FishCo", 4250, 1_000_000))

REQUESTS = (
    ("trade", ("GameStart", 10**30, Side.BUY)),
    ("trade", ("GameStart", -(10**30), Side.BUY)),
    ("trade", ("FishCo", 1, 10**12)),
    ("trade", ("FishCo", 5, Side.BUY, "id-1")),
    ("trade", ("FishCo", 5, Side.BUY, "id-1")),
    ("update", ("FishCo", -(10**30))),
    ("lookup", ("FishCo",)),
)
"""Requests beyond those of ``tests/conformance/transports.py``: repeated ids, and numbers that no message can hold."""


def test_it_answers_as_the_exchange_does() -> None:
    """The same requests in the same order get equal replies over a connection and without one. Every call has the
    timeout of the exchange."""
    connection = FakeConnection(service(*STOCKS))
    remote, local = RemoteExchange(connection, 0.7), Exchange(MemoryCatalog(STOCKS, Mutex))
    for method, arguments in REQUESTS:
        assert getattr(remote, method)(*arguments) == getattr(local, method)(*arguments), (method, arguments)
    assert {timeout_s for _, _, timeout_s in connection.calls} == {0.7}


def test_what_the_wire_cannot_carry_is_refused_before_it_is_sent() -> None:
    """A price over 2^63 - 1 cents is refused before the send. So is half a surrogate pair, which UTF-8 lacks."""
    connection = FakeConnection(service())
    remote = RemoteExchange(connection, 1.0)
    with pytest.raises(InvalidRequest, match=str(INT64_MAX)):
        remote.update("GameStart", INT64_MAX + 1)
    with pytest.raises(InvalidRequest, match="UTF-8"):
        remote.lookup("\udcff")
    assert connection.calls == []


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("Lookup", {}),
        ("Lookup", {"status": Status.INVALID_PRICE}),
        ("Lookup", {"status": Status.OK, "price_cents": -1}),
        ("Lookup", {"status": Status.UNKNOWN_STOCK, "price_cents": 5}),
        ("Trade", {}),
        ("Trade", {"status": Status.INVALID_PRICE}),
        ("Trade", {"status": Status.OK, "volume": 5}),
        ("Trade", {"status": Status.OK, "sequence": 5}),
        ("Trade", {"status": Status.SUSPENDED, "volume": 5, "sequence": 5}),
        ("Trade", {"status": Status.UNKNOWN_STOCK, "volume": 5}),
        ("Update", {"status": Status.SUSPENDED}),
        ("Update", {"status": Status.OK}),
        ("Update", {"status": Status.INVALID_PRICE, "sequence": 1}),
    ],
)
def test_a_reply_that_the_method_never_gives_is_a_fault(method: str, fields: dict[str, int]) -> None:
    """A reply with no status, a status of a different method, or values that contradict the status is a fault."""
    reply = getattr(stock_pb2, f"{method}Response")(**fields).SerializeToString()
    with pytest.raises(InternalFault, match=f"a reply that {method} never gives"):
        getattr(replies, method.lower())(reply)


def test_an_unknown_status_is_named() -> None:
    """The fault has the number of the unknown status, which points to a server of another version."""
    with pytest.raises(InternalFault, match="unknown status 99"):
        replies.lookup(b"\x08\x63")


@pytest.mark.parametrize("method", ["lookup", "trade", "update"])
def test_bytes_that_do_not_decode_are_a_fault(method: str) -> None:
    """Bytes that do not decode are a fault, for every method."""
    with pytest.raises(InternalFault, match="3 bytes"):
        getattr(replies, method)(b"\xff\xff\xff")
