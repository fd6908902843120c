"""``python -m stock_service.grpc_server``: the stock service on gRPC."""

import sys

from stock_service import stock_server

if __name__ == "__main__":
    stock_server.main("python -m stock_service.grpc_server", "grpc", sys.argv[1:])
