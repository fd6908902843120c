"""The stock service on grpcio alone: replies, and the end after SIGTERM."""

import sys

import grpc
import pytest

from stock_service.v1 import stock_pb2 as pb
from stock_service.v1.stock_pb2_grpc import StockServiceStub
from tests.end_to_end.process import WAIT_S, Server


@pytest.mark.slow
def test_it_answers_and_stops() -> None:
    """Lookup, Trade and Update have the statuses of our service. SIGTERM ends the server with 0."""
    command = (sys.executable, "-m", "experiments.peers.python.stock_server", "--port", "0")
    with Server(command, program=()) as server, grpc.insecure_channel(server.at) as channel:
        stub = StockServiceStub(channel)
        traded = stub.Trade(pb.TradeRequest(name="FishCo", quantity=3, side=pb.SIDE_BUY), timeout=WAIT_S)
        assert traded == pb.TradeResponse(status=pb.STATUS_OK, volume=3, sequence=1)
        updated = stub.Update(pb.UpdateRequest(name="FishCo", price_cents=7), timeout=WAIT_S)
        assert updated == pb.UpdateResponse(status=pb.STATUS_OK, sequence=2)
        seen = stub.Lookup(pb.LookupRequest(name="FishCo"), timeout=WAIT_S)
        assert seen == pb.LookupResponse(status=pb.STATUS_OK, price_cents=7, volume=3, sequence=2)
        refused = (
            (stub.Lookup(pb.LookupRequest(name="x"), timeout=WAIT_S), pb.STATUS_UNKNOWN_STOCK),
            (stub.Trade(pb.TradeRequest(name="FishCo"), timeout=WAIT_S), pb.STATUS_INVALID_QUANTITY),
            (stub.Trade(pb.TradeRequest(name="FishCo", quantity=1), timeout=WAIT_S), pb.STATUS_INVALID_SIDE),
            (stub.Update(pb.UpdateRequest(name="FishCo", price_cents=-1), timeout=WAIT_S), pb.STATUS_INVALID_PRICE),
        )
        assert all(reply.status == status for reply, status in refused)
        assert server.stopped().code == 0
