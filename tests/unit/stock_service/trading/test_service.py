"""The service in protobuf terms: bytes in and out, what does not decode is refused, nothing is left out."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stock_service.rpc.errors import InvalidRequest
from stock_service.rpc.service import Service
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import LOCKINGS
from stock_service.trading.model import INT64_MAX, Stock
from stock_service.trading.service import KEPT_MAX, LOOKUP, STOCK_SERVICE, TRADE, UPDATE, stock_service
from stock_service.v1 import stock_pb2
from stock_service.v1.stock_pb2 import (
    LookupRequest,
    LookupResponse,
    TradeRequest,
    TradeResponse,
    UpdateRequest,
    UpdateResponse,
)
from tests.raw_service import answered

SIDE_BUY = stock_pb2.SIDE_BUY

Types = dict[str, type[LookupResponse] | type[TradeResponse] | type[UpdateResponse]]


def service() -> Service:
    """The stock service on a catalog of two."""
    return stock_service(
        Exchange(MemoryCatalog([Stock("A", 1599, 10), Stock("Max", INT64_MAX, INT64_MAX)], LOCKINGS["mutex"]))
    )


def test_its_methods_are_those_of_the_protocol() -> None:
    """Every rpc of the protobuf service has its method, under its full path, and there is no other method."""
    described = stock_pb2.DESCRIPTOR.services_by_name["StockService"]
    assert service().name == STOCK_SERVICE == "stock_service.v1.StockService"
    assert set(service().methods) == {f"/{STOCK_SERVICE}/{rpc.name}" for rpc in described.methods}


def test_a_session_in_bytes() -> None:
    """Requests and replies are the encoded messages, every field of them."""
    stocks = service()
    trade = TradeRequest(name="A", quantity=4, side=stock_pb2.SIDE_SELL, request_id="id").SerializeToString()
    traded = TradeResponse(status=stock_pb2.STATUS_OK, volume=4, sequence=1)
    assert TradeResponse.FromString(answered(stocks, TRADE, trade)) == traded
    assert TradeResponse.FromString(answered(stocks, TRADE, trade)) == traded
    updated = answered(stocks, UPDATE, UpdateRequest(name="A", price_cents=2000).SerializeToString())
    assert UpdateResponse.FromString(updated) == UpdateResponse(status=stock_pb2.STATUS_OK, sequence=2)
    found = answered(stocks, LOOKUP, LookupRequest(name="A").SerializeToString())
    assert LookupResponse.FromString(found) == LookupResponse(
        status=stock_pb2.STATUS_OK, price_cents=2000, volume=4, sequence=2
    )


def test_a_response_is_made_once_for_each_state_of_a_stock() -> None:
    """A response is made once for each state of a stock, and anew after a change. A response for an unknown name is not
    kept."""
    methods = service().methods

    def looked_up(name: str) -> LookupResponse:
        response = methods[LOOKUP].function(LookupRequest(name=name))  # type: ignore[call-arg]
        assert isinstance(response, LookupResponse)
        return response

    first = looked_up("A")
    assert looked_up("A") is first
    methods[UPDATE].function(UpdateRequest(name="A", price_cents=1))  # type: ignore[call-arg]
    assert looked_up("A").price_cents == 1
    assert looked_up("none") is not looked_up("none")


@pytest.mark.parametrize(("more", "kept"), [(0, True), (1, False)])
def test_responses_are_kept_of_so_many_stocks(more: int, kept: bool) -> None:
    """Responses are kept for a bounded number of stocks. In a larger catalog each is made anew."""
    stocks = [Stock(f"S{number}", 1, 10) for number in range(KEPT_MAX + more)]
    function = stock_service(Exchange(MemoryCatalog(stocks, LOCKINGS["mutex"]))).methods[LOOKUP].function
    first, again = (function(LookupRequest(name="S0")) for _ in range(2))  # type: ignore[call-arg]
    assert (first is again) is kept
    assert first == again


def test_a_side_past_32_bits_is_none() -> None:
    """Protobuf cuts 2^32 + 1 off to the 1 of BUY. Nothing is traded."""
    asked = TradeRequest(name="A", quantity=1).SerializeToString() + b"\x18\x81\x80\x80\x80\x10"
    assert TradeResponse.FromString(answered(service(), TRADE, asked)).status == stock_pb2.STATUS_INVALID_SIDE


@given(st.sampled_from([LOOKUP, TRADE, UPDATE]), st.binary(max_size=200))
def test_any_bytes_get_a_reply_or_a_fault(path: str, payload: bytes) -> None:
    """No bytes make a method raise anything but a fault, or answer without a status."""
    types: Types = {LOOKUP: LookupResponse, TRADE: TradeResponse, UPDATE: UpdateResponse}
    encoded: bytes | None = None
    with suppress(InvalidRequest):
        encoded = answered(service(), path, payload)
    assert encoded is None or types[path].FromString(encoded).status != stock_pb2.STATUS_UNSPECIFIED
