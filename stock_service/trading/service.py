"""The stock service. Its methods take and return protobuf messages, and call the exchange."""

from typing import Any

from stock_service.rpc.security import Right
from stock_service.rpc.service import Method, Service
from stock_service.rpc.waiting import Flush
from stock_service.trading.catalog import Version
from stock_service.trading.exchange import Exchange, looked_up
from stock_service.v1 import stock_pb2

STOCK_SERVICE = stock_pb2.DESCRIPTOR.services_by_name["StockService"].full_name
LOOKUP = f"/{STOCK_SERVICE}/Lookup"
TRADE = f"/{STOCK_SERVICE}/Trade"
UPDATE = f"/{STOCK_SERVICE}/Update"

KEPT_MAX = 1024
"""Largest catalog, in stocks, for which the service caches the response to each stock's last Lookup. With more stocks,
finding a cached response in memory would take as much time as making a new response.
"""


def stock_service(exchange: Exchange, flush: Flush | None = None) -> Service:
    """Makes the stock service on an exchange. ``flush`` becomes ``Service.flush``, the function that starts a commit
    that several requests share.

    If a stock has not changed since its last Lookup, a Lookup gets the cached response, since making a response takes
    half of a Lookup's time in this module.
    """
    version_of, keeps = exchange.version, exchange.stocks <= KEPT_MAX
    responses: dict[str, tuple[Version, stock_pb2.LookupResponse]] = {}  # cached responses by name

    def lookup(request: stock_pb2.LookupRequest) -> stock_pb2.LookupResponse:
        name = request.name
        version = version_of(name)
        known = responses.get(name)
        if known is not None and known[0] is version:
            return known[1]
        reply = looked_up(version)
        response = stock_pb2.LookupResponse(
            status=reply.status,  # type: ignore[arg-type]  # the numbers of Status are the wire's
            price_cents=reply.price_cents,
            volume=reply.volume,
            sequence=reply.sequence,
        )
        if keeps and version is not None:
            responses[name] = version, response
        return response

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

    methods: dict[str, Method[Any, Any]] = {
        LOOKUP: Method(stock_pb2.LookupRequest, stock_pb2.LookupResponse, lookup, right=Right.TRADER),
        TRADE: Method(stock_pb2.TradeRequest, stock_pb2.TradeResponse, trade, right=Right.TRADER),
        UPDATE: Method(stock_pb2.UpdateRequest, stock_pb2.UpdateResponse, update, right=Right.ADMIN),
    }
    return Service(STOCK_SERVICE, methods, flush)
