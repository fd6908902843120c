"""What every client's command line shares: which server, and what to say when it does not answer."""

import argparse

from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.process.command_line import address, seconds
from stock_service.rpc.transports import TRANSPORTS, Address, Connection, load

FAULT_EXIT = 3
"""The exit code for a request that got no outcome."""

DEFAULT_TRANSPORT = "grpc"

TIMEOUT_S_MAX = 60.0
"""The longest wait for a reply that a client takes, in seconds; also the largest that the load client records."""

NO_STOCK = "the server does not have these stocks; give its own with --stocks"
"""What to say of UNKNOWN_STOCK where a program chose the stocks."""

_ADVICE = {
    FaultCode.INVALID_ARGUMENT: "change the request",
    FaultCode.DEADLINE_EXCEEDED: "wait longer with --timeout-s, or look at what keeps the server busy",
    FaultCode.NOT_FOUND: "ask for what the server has",
    FaultCode.RESOURCE_EXHAUSTED: "send less, or give the server higher limits",
    FaultCode.UNIMPLEMENTED: "check that --address is a stock server of this version",
    FaultCode.INTERNAL: "look into the server's log",
}


def add_options(parser: argparse.ArgumentParser, repeated: bool = False) -> None:
    """``--transport``, ``--address`` and ``--timeout-s``.

    ``repeated``: they are a subcommand's. They may have been given before it too, so they have no defaults here.
    """

    def default(value: object) -> object:
        return argparse.SUPPRESS if repeated else value

    names = sorted(TRANSPORTS)
    parser.add_argument(
        "--transport",
        choices=names,
        metavar="NAME",
        default=default(DEFAULT_TRANSPORT),
        help=f"how to talk to the server: {', '.join(names)}",
    )
    parser.add_argument(
        "--address",
        type=address,
        metavar="HOST:PORT",
        default=argparse.SUPPRESS,
        help="where the server listens (default: this machine, the transport's default port)",
    )
    parser.add_argument(
        "--timeout-s", type=seconds(0.001, TIMEOUT_S_MAX), default=default(5.0), help="seconds to wait for a reply"
    )


def server_address(options: argparse.Namespace) -> Address:
    """The address given, or the default one of the transport given."""
    given: Address | None = getattr(options, "address", None)
    return given or ("127.0.0.1", load(options.transport).DEFAULT_PORT)


def connect(options: argparse.Namespace) -> Connection:
    """A connection to the server that the options name. Blocks; raises a Fault."""
    return load(options.transport).connect(server_address(options), options.timeout_s)


def explained(fault: Fault, transport: str) -> str:
    """A fault in one line that ends with what to do about it."""
    if fault.code is FaultCode.UNAVAILABLE:
        other = "what listens there may speak another protocol"
        start = f"python -m stock_service serve --transport {transport}"
        advice = f"check --address and --transport ({other}), or start a server: {start}"
    else:
        advice = _ADVICE[fault.code]
    return f"{' '.join(str(fault).split())}; {advice}"
