"""The stock server with more methods, whose handlers hang, meet or compute: ``python -m tests.more_methods …``.

``Hang`` never returns, and ``Hanging`` gives the number of hanging handlers. ``Meet`` waits until each worker of the
server has a ``Meet`` request. The reply says if the requests met within ``MEET_S`` seconds. If a worker is stuck, the
requests never meet.

``Spin`` computes for ``--turns`` turns of a loop. It takes the moment at which its client gives up, on
``time.monotonic_ns``, which all processes share. ``Ran`` gives three numbers: handlers of ``Spin`` that ran, handlers
that began after their client had given up, and the handlers' processor time, in nanoseconds. Compared servers get one
value of ``--turns``: two servers that measured their own values would not be equal.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from struct import Struct

from stock_service import stock_server
from stock_service.rpc.process import serving
from stock_service.rpc.process.beginning import begin
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.service import Service
from stock_service.rpc.transports import TRANSPORTS
from tests.raw_service import raw

PROGRAM = "tests.more_methods"

HANG, HANGING, MEET, SPIN, RAN = (f"/tests.v1.More/{name}" for name in ("Hang", "Hanging", "Meet", "Spin", "Ran"))

MEET_S = 1.0
MET, ALONE = b"met", b"alone"
"""Replies of ``Meet``. Its payload names the meeting. Requests with one name meet."""

DEADLINE = Struct("!q")
"""Payload of ``Spin``: nanoseconds."""

SPIN_S = 0.0005
"""Time for which ``Spin`` computes on a free core, with ``turns_of(SPIN_S)``."""


def spin(turns: int) -> None:
    """Computes, and holds the GIL as Python's own code does."""
    for _ in range(turns):
        pass


def turns_of(seconds: float) -> int:
    """Number of turns of the loop that take this time on this machine, by the quickest of some tries."""

    def took_s(turns: int) -> float:
        began_s = time.perf_counter()
        spin(turns)
        return time.perf_counter() - began_s

    return int(1000 * seconds / min(took_s(1000) for _ in range(50)))


def more(service: Service, workers: int, turns: int) -> Service:
    """The same service with the methods of the module's docstring."""
    hanging: list[None] = []
    meetings: dict[bytes, threading.Barrier] = {}
    late: list[None] = []
    took_ns: list[int] = []  # of each handler; any thread appends

    def hang(_: bytes) -> bytes:
        hanging.append(None)
        threading.Event().wait()
        raise AssertionError("nobody sets it")

    def meet(name: bytes) -> bytes:
        try:
            meetings.setdefault(name, threading.Barrier(workers)).wait(MEET_S)
        except threading.BrokenBarrierError:
            return ALONE
        return MET

    def spun(payload: bytes) -> bytes:
        if time.monotonic_ns() > DEADLINE.unpack(payload)[0]:
            late.append(None)
        began_ns = time.thread_time_ns()
        spin(turns)
        took_ns.append(time.thread_time_ns() - began_ns)
        return b""

    answers: dict[str, Callable[[bytes], bytes]] = {
        HANG: hang,
        HANGING: lambda _: bytes([len(hanging)]),
        MEET: meet,
        SPIN: spun,
        RAN: lambda _: b"%d %d %d" % (len(took_ns), len(late), sum(took_ns)),
    }
    return replace(service, methods={**service.methods, **{path: raw(answer) for path, answer in answers.items()}})


def main(arguments: Sequence[str]) -> None:
    """Serves. Does not return."""
    begin()
    program = f"python -m {PROGRAM}"
    parser = Parser(program, "The stock service, and methods that hang, meet or compute.", serving.EXITS)
    parser.add_argument("--transport", choices=TRANSPORTS, required=True)
    parser.add_argument("--turns", type=int, default=0, help="turns of the loop that Spin computes for")
    chosen, _ = parser.parse_known_args(arguments)
    serving.add_server_options(parser, chosen.transport)
    stock_server.add_stock_options(parser, chosen.transport)
    parser.set_defaults(store="memory")
    options = parser.parse_args(arguments)
    with_more = partial(more, workers=options.workers, turns=options.turns)
    stock_server.serve_stocks(program, options.transport, options, with_more)


if __name__ == "__main__":
    main(sys.argv[1:])
