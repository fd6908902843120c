"""``python -m stock_service.socket_server``: the stock service on raw sockets."""

import sys

from stock_service import stock_server

if __name__ == "__main__":
    stock_server.main("python -m stock_service.socket_server", "sockets", sys.argv[1:])
