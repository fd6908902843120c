"""The stock server with one more method: ``python -m tests.reliability.meeting_server --transport NAME …``.

``Meet`` waits until each worker of the server has a ``Meet`` request. The reply says if the requests met within
``MEET_S`` seconds. If a worker is stuck, the requests never meet. All other methods are the stock service's.
"""

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from stock_service import stock_server
from stock_service.rpc.process import serving
from stock_service.rpc.process.beginning import begin
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.service import Service
from stock_service.rpc.transports import TRANSPORTS, Address
from tests.conformance.raw_socket import RawSocket, frame
from tests.raw_service import raw

MEET = "/tests.v1.Meeting/Meet"
"""The payload names the meeting. Requests with one name meet."""

MEET_S = 1.0
MET, ALONE = b"met", b"alone"

WORKERS = 8
"""Default number of workers of a server."""


def meeting(service: Service, workers: int) -> Service:
    """The same service with ``Meet``."""
    meetings: dict[bytes, threading.Barrier] = {}

    def meet(name: bytes) -> bytes:
        try:
            meetings.setdefault(name, threading.Barrier(workers)).wait(MEET_S)
        except threading.BrokenBarrierError:
            return ALONE
        return MET

    return replace(service, methods={**service.methods, MEET: raw(meet)})


def met_after_s(address: Address, name: str) -> float | None:
    """The time until all workers of a server on sockets were at a meeting; None if they never were."""
    with ExitStack() as stack:
        clients = [stack.enter_context(RawSocket(address)) for _ in range(WORKERS)]
        began_s = time.monotonic()
        for client in clients:
            client.send(frame(1, MEET, name.encode()))
        replies = [client.reply() for client in clients]
        took_s = time.monotonic() - began_s
    return took_s if all(reply is not None and reply.payload == MET for reply in replies) else None


def main(arguments: Sequence[str]) -> None:
    """Serves. Does not return."""
    begin()
    program = "python -m tests.reliability.meeting_server"
    parser = Parser(program, "The stock service, and a method that occupies all workers.", serving.EXITS)
    parser.add_argument("--transport", choices=TRANSPORTS, required=True)
    chosen, _ = parser.parse_known_args(arguments)
    serving.add_server_options(parser, chosen.transport)
    stock_server.add_stock_options(parser, chosen.transport)
    options = parser.parse_args(arguments)
    stock_server.serve_stocks(program, options.transport, options, lambda service: meeting(service, options.workers))


if __name__ == "__main__":
    main(sys.argv[1:])
