"""Counts of requests, on every transport. Without them a request costs nothing more."""

from contextlib import suppress
from dataclasses import replace

import pytest

from stock_service.rpc.errors import Fault, Overloaded
from stock_service.rpc.metrics import Metrics
from stock_service.rpc.server_core.guarding import guarded
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.server_core.protocol import methods_of
from stock_service.rpc.service import Method
from stock_service.rpc.transports import ServeOptions
from stock_service.rpc.transports.http1.requests import Http
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.trading.service import LOOKUP, STOCK_SERVICE, TRADE, UPDATE, stock_service
from stock_service.v1 import stock_pb2
from tests.conformance.running import WAIT_S, Kind, Limits, core_server, maker, one_executor_each
from tests.conformance.transports import fresh_exchange

FULL, AWAITED, NOTHING = (f"/{STOCK_SERVICE}/{name}" for name in ("Full", "Awaited", "Nothing"))

KNOWN = stock_pb2.LookupRequest(name="GameStart")


def full(_: stock_pb2.LookupRequest) -> stock_pb2.LookupResponse:
    """Refuses."""
    raise Overloaded("as told")


def suspended(_: stock_pb2.LookupRequest) -> stock_pb2.LookupResponse:
    """Says so."""
    return stock_pb2.LookupResponse(status=stock_pb2.STATUS_SUSPENDED)


async def awaited(request: stock_pb2.LookupRequest) -> stock_pb2.LookupResponse:
    """Counts of requests, on a loop."""
    return suspended(request)


OTHERS = {
    FULL: Method(stock_pb2.LookupRequest, stock_pb2.LookupResponse, full),
    AWAITED: Method(stock_pb2.LookupRequest, stock_pb2.LookupResponse, suspended, on_loop=awaited),
}

ASKED = [
    (LOOKUP, KNOWN),
    (LOOKUP, KNOWN),
    (LOOKUP, stock_pb2.LookupRequest(name="none")),
    (TRADE, stock_pb2.TradeRequest(name="GameStart", quantity=1, side=stock_pb2.SIDE_BUY)),
    (TRADE, stock_pb2.TradeRequest(name="GameStart", quantity=0, side=stock_pb2.SIDE_BUY)),
    (TRADE, stock_pb2.TradeRequest(name="GameStart", quantity=1, side=stock_pb2.SIDE_BUY, request_id="a" * 65)),
    (UPDATE, stock_pb2.UpdateRequest(name="GameStart", price_cents=-1)),
    (FULL, KNOWN),
    (AWAITED, KNOWN),
    (NOTHING, KNOWN),
]

COUNTED = {
    LOOKUP: {"OK": 2, "UNKNOWN_STOCK": 1},
    TRADE: {"OK": 1, "INVALID_QUANTITY": 1, "INVALID_ARGUMENT": 1},
    UPDATE: {"INVALID_PRICE": 1},
    FULL: {"RESOURCE_EXHAUSTED": 1},
    AWAITED: {"SUSPENDED": 1},
}


@pytest.mark.parametrize("kind", one_executor_each(0), ids=str)
def test_requests_are_counted_by_method_and_outcome(kind: Kind) -> None:
    """Each request is counted once, before its reply is there. A request without a method is not counted."""
    service, metrics = stock_service(fresh_exchange()), Metrics()
    counted = replace(service, methods={**service.methods, **OTHERS}).counted(metrics)
    with maker(kind)(counted, Limits(options=ServeOptions(metrics=metrics))) as running:
        connection = running.connect()
        for path, request in ASKED:
            with suppress(Fault):
                connection.call(path, request.SerializeToString(), WAIT_S)
        ended = {path: {k: v for k, v in meter.outcomes().items() if v} for path, meter in metrics.meters.items()}
        assert ended == COUNTED


def test_without_metrics_and_callers_the_parts_are_the_bare_ones() -> None:
    """The method in bytes, the protocol, what hands requests over; with them each is another."""
    service, metrics = stock_service(fresh_exchange()), Metrics()
    counted = service.counted(metrics)
    bare, metering = "stock_service.rpc.service", "stock_service.rpc.metering"
    assert {method.answer().__module__ for method in service.methods.values()} == {bare}
    assert {method.answer().__module__ for method in counted.methods.values()} == {metering}
    asked = Http(service, methods_of(service), ServeOptions())
    assert guarded(asked, None, service) is asked
    assert [*are_bare(None), *are_bare(metrics)] == [True, True, False, False]


def are_bare(metrics: Metrics | None) -> tuple[bool, bool]:
    """Tell whether a server refuses and dispatches by the very parts that it was given."""
    methods = methods_of(stock_service(fresh_exchange()))
    protocol = Frames(methods, 1000)
    with core_server(methods, protocol, ServeOptions(requests_max=2, metrics=metrics), ReadOptions()) as server:
        return server._protocol is protocol, server._queue._samples is None
