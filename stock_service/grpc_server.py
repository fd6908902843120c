"""Main program ``python -m stock_service.grpc_server``: serves the stock service on gRPC, with grpcio's server, or with
our own server (``--server static``).
"""

import sys

from stock_service.rpc.process.beginning import begin

if __name__ == "__main__":
    begin()  # before the other imports, which take long

from collections.abc import Sequence
from typing import NoReturn

from stock_service import stock_server
from stock_service.rpc.process.command_line import Parser

PROGRAM = "python -m stock_service.grpc_server"

SERVERS = {"grpcio": "grpc", "static": "grpc_static"}
"""Transport of each value of ``--server``. The first value is the default."""


def main(arguments: Sequence[str]) -> NoReturn:
    """Reads the option ``--server``, and serves the stock service on the transport that this option chooses. The
    further options and the help depend on the transport. Does not return.
    """
    first = Parser(PROGRAM, "The stock service on gRPC.")
    _add_server(first)
    chosen, _ = first.parse_known_args([each for each in arguments if each not in ("-h", "--help")])
    stock_server.main(PROGRAM, SERVERS[chosen.server], arguments, _add_server)


def _add_server(parser: Parser) -> None:
    help_text = "whose server: grpcio's on threads, or our own (static); each has its own port, store and options"
    parser.add_argument("--server", choices=SERVERS, default=next(iter(SERVERS)), help=help_text)


if __name__ == "__main__":
    main(sys.argv[1:])
