"""An RPC service free of any transport, and the stock service as one.

A ``Service`` maps full method names to methods; a transport serves any service and knows none. The payload on every
transport is the protobuf message's bytes, so that comparing transports does not compare codecs. Decoding happens here,
once, so that undecodable bytes are INVALID_ARGUMENT everywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from stock_service.errors import InvalidRequest
from stock_service.exchange import Exchange
from stock_service.v1 import stock_pb2

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Answer = Callable[[bytes], bytes]
"""A method in bytes: an encoded request to an encoded response; raises a Fault."""


@dataclass(frozen=True, slots=True)
class Service:
    """``name`` is the protobuf service's full name; ``methods`` maps ``/name/Method`` to what answers it.

    The methods are called from any thread, several at once.
    """

    name: str
    methods: Mapping[str, Answer]


def method(request_type: type[Request], function: Callable[[Request], Response]) -> Answer:
    """A function of messages as a function of bytes. The answer raises InvalidRequest for bytes that do not decode."""
    decode: Callable[[bytes], Request] = request_type.FromString

    def answer(payload: bytes) -> bytes:
        try:
            request = decode(payload)
        except DecodeError as error:
            raise InvalidRequest(f"{len(payload)} bytes that are no {request_type.DESCRIPTOR.full_name}") from error
        return function(request).SerializeToString()

    return answer


STOCK_SERVICE = stock_pb2.DESCRIPTOR.services_by_name["StockService"].full_name
LOOKUP = f"/{STOCK_SERVICE}/Lookup"
TRADE = f"/{STOCK_SERVICE}/Trade"
UPDATE = f"/{STOCK_SERVICE}/Update"


def stock_service(exchange: Exchange) -> Service:
    """The stock service on an exchange."""

    def lookup(request: stock_pb2.LookupRequest) -> stock_pb2.LookupResponse:
        reply = exchange.lookup(request.name)
        return stock_pb2.LookupResponse(
            status=reply.status,  # type: ignore[arg-type]  # the numbers of Status are the wire's
            price_cents=reply.price_cents,
            volume=reply.volume,
            sequence=reply.sequence,
        )

    def trade(request: stock_pb2.TradeRequest) -> stock_pb2.TradeResponse:
        reply = exchange.trade(request.name, request.quantity, request.side, request.request_id)
        return stock_pb2.TradeResponse(
            status=reply.status,  # type: ignore[arg-type]
            volume=reply.volume,
            sequence=reply.sequence,
        )

    def update(request: stock_pb2.UpdateRequest) -> stock_pb2.UpdateResponse:
        reply = exchange.update(request.name, request.price_cents)
        return stock_pb2.UpdateResponse(status=reply.status, sequence=reply.sequence)  # type: ignore[arg-type]

    methods = {
        LOOKUP: method(stock_pb2.LookupRequest, lookup),
        TRADE: method(stock_pb2.TradeRequest, trade),
        UPDATE: method(stock_pb2.UpdateRequest, update),
    }
    return Service(STOCK_SERVICE, methods)
