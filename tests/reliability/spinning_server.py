"""A server process whose handler computes for half a millisecond: ``python -m tests.reliability.spinning_server …``.

``Spin`` takes the moment at which its client gives up, on ``time.monotonic_ns``, which all processes share. ``Ran``
gives three numbers: handlers that ran, handlers that began after their client had given up, and the handlers' processor
time, in nanoseconds. Compared servers get one value of ``--turns``: two servers that measured their own values would
not be equal.
"""

import sys
import time
from collections.abc import Sequence
from struct import Struct

from stock_service.rpc.process import serving
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.service import Service
from stock_service.rpc.transports import TRANSPORTS
from tests.raw_service import raw_service

NAME = "tests.v1.Spinning"
SPIN, RAN = f"/{NAME}/Spin", f"/{NAME}/Ran"

DEADLINE = Struct("!q")
"""Payload of ``Spin``: nanoseconds."""

SPIN_S = 0.0005
"""Time for which the handler computes on a free core."""


def spin(turns: int) -> None:
    """Computes, and holds the GIL as Python's own code does."""
    for _ in range(turns):
        pass


def turns_of(seconds: float) -> int:
    """Number of iterations of the loop that take this time on this machine, by the quickest of some tries."""

    def took_s(turns: int) -> float:
        began_s = time.perf_counter()
        spin(turns)
        return time.perf_counter() - began_s

    return int(1000 * seconds / min(took_s(1000) for _ in range(50)))


def spinning_service(turns: int) -> Service:
    """The service of the module's docstring. ``turns``: turns of the loop for a request."""
    late: list[None] = []
    took_ns: list[int] = []  # of each handler; any thread appends

    def spun(payload: bytes) -> bytes:
        if time.monotonic_ns() > DEADLINE.unpack(payload)[0]:
            late.append(None)
        began_ns = time.thread_time_ns()
        spin(turns)
        took_ns.append(time.thread_time_ns() - began_ns)
        return b""

    return raw_service(NAME, {SPIN: spun, RAN: lambda _: b"%d %d %d" % (len(took_ns), len(late), sum(took_ns))})


def main(arguments: Sequence[str]) -> None:
    """Serves. Does not return."""
    program = "python -m tests.reliability.spinning_server"
    parser = Parser(program, "A service that computes.")
    parser.add_argument("--transport", choices=TRANSPORTS, required=True)
    parser.add_argument("--turns", type=int, required=True, help="turns of the loop that a request computes for")
    chosen, _ = parser.parse_known_args(arguments)
    serving.add_server_options(parser, chosen.transport)
    options = parser.parse_args(arguments)
    serving.leave(serving.run(program, options.transport, spinning_service(options.turns), options))


if __name__ == "__main__":
    main(sys.argv[1:])
