"""The stock service in grpcio's usual style: a servicer on a ``ThreadPoolExecutor``, without code of our server.

    python -m experiments.peers.python.stock_server --port 0

Studies compare our own server on grpcio with this server. This server has grpcio's defaults, ten threads as in grpcio's
examples, and the default four stocks without a volume limit. The server ignores a ``request_id``, so a repeated trade
has a second effect. The server prints ``ready HOST:PORT``. After SIGTERM or Ctrl-C the server answers the calls
that have begun, for ``GRACE_S`` at most, and ends.
"""

import argparse
import signal
import threading
from concurrent import futures

import grpc

from stock_service.v1 import stock_pb2, stock_pb2_grpc

GRACE_S = 5.0
"""Longest time, in seconds, for the server's last answers after a signal."""


class StockService(stock_pb2_grpc.StockServiceServicer):
    """Servicer of the stock service, with all stocks in memory. One lock guards all stocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._prices = {"GameStart": 1599, "FishCo": 4250, "BoarCo": 875, "MenhirCo": 10120}
        self._volumes = dict.fromkeys(self._prices, 0)
        self._sequences = dict.fromkeys(self._prices, 0)
        self._commits = 0

    def Lookup(  # noqa: N802
        self, request: stock_pb2.LookupRequest, context: grpc.ServicerContext
    ) -> stock_pb2.LookupResponse:
        """Replies with a stock's price, volume and sequence number."""
        with self._lock:
            if request.name not in self._prices:
                return stock_pb2.LookupResponse(status=stock_pb2.STATUS_UNKNOWN_STOCK)
            return stock_pb2.LookupResponse(
                status=stock_pb2.STATUS_OK,
                price_cents=self._prices[request.name],
                volume=self._volumes[request.name],
                sequence=self._sequences[request.name],
            )

    def Trade(  # noqa: N802
        self, request: stock_pb2.TradeRequest, context: grpc.ServicerContext
    ) -> stock_pb2.TradeResponse:
        """Adds the quantity of a buy or a sell to a stock's volume. Replies with the new volume and the sequence number
        of the change."""
        with self._lock:
            if request.name not in self._prices:
                return stock_pb2.TradeResponse(status=stock_pb2.STATUS_UNKNOWN_STOCK)
            if not 0 < request.quantity < 2**31:
                return stock_pb2.TradeResponse(status=stock_pb2.STATUS_INVALID_QUANTITY)
            if request.side not in (stock_pb2.SIDE_BUY, stock_pb2.SIDE_SELL):
                return stock_pb2.TradeResponse(status=stock_pb2.STATUS_INVALID_SIDE)
            self._volumes[request.name] += request.quantity
            volume, sequence = self._volumes[request.name], self._committed(request.name)
            return stock_pb2.TradeResponse(status=stock_pb2.STATUS_OK, volume=volume, sequence=sequence)

    def Update(  # noqa: N802
        self, request: stock_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> stock_pb2.UpdateResponse:
        """Sets a stock's price, in cents. Replies with the sequence number of the change."""
        with self._lock:
            if request.name not in self._prices:
                return stock_pb2.UpdateResponse(status=stock_pb2.STATUS_UNKNOWN_STOCK)
            if request.price_cents < 0:
                return stock_pb2.UpdateResponse(status=stock_pb2.STATUS_INVALID_PRICE)
            self._prices[request.name] = request.price_cents
            return stock_pb2.UpdateResponse(status=stock_pb2.STATUS_OK, sequence=self._committed(request.name))

    def _committed(self, name: str) -> int:
        """Counts a change of a stock. Returns the change's sequence number. The caller must hold the lock."""
        self._commits += 1
        self._sequences[name] = self._commits
        return self._commits


def main() -> None:
    """Serves until a signal ends the server."""
    parser = argparse.ArgumentParser(description="The stock service on grpcio alone.")
    parser.add_argument("--workers", type=int, default=10, help="threads of the pool (default: 10)")
    parser.add_argument("--port", type=int, default=50051, help="where to listen, on 127.0.0.1; 0: a free port")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=options.workers))
    stock_pb2_grpc.add_StockServiceServicer_to_server(StockService(), server)
    port = server.add_insecure_port(f"127.0.0.1:{options.port}")
    server.start()
    print(f"ready 127.0.0.1:{port}", flush=True)
    ended.wait()
    server.stop(GRACE_S).wait()


if __name__ == "__main__":
    main()
