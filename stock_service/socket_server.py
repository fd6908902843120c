"""Main program ``python -m stock_service.socket_server``: the stock service on raw sockets."""

import sys

from stock_service.rpc.process.beginning import begin

if __name__ == "__main__":
    begin()  # before the import, which takes long
    from stock_service import stock_server

    stock_server.main("python -m stock_service.socket_server", "sockets", sys.argv[1:])
