"""A server process whose handlers can be made to hang: ``python -m tests.end_to_end.blocking_server --transport T …``.

Handlers of the stock service do not wait, but these handlers do. So tests see the behaviour of a server with hanging
handlers, on the usual transports and with the usual process contract. ``Hang`` never returns; ``Hanging`` gives the
number of hanging handlers.
"""

import sys
import threading
from collections.abc import Sequence

from stock_service.rpc.process import family, serving
from stock_service.rpc.process.command_line import Parser
from stock_service.rpc.transports import TRANSPORTS
from tests.raw_service import raw_service

NAME = "tests.v1.Blocking"
HANG, HANGING = f"/{NAME}/Hang", f"/{NAME}/Hanging"


def main(arguments: Sequence[str]) -> None:
    """Serves. Does not return."""
    program = "python -m tests.end_to_end.blocking_server"
    parser = Parser(program, "A service that hangs.")
    parser.add_argument("--transport", choices=TRANSPORTS, required=True)
    chosen, _ = parser.parse_known_args(arguments)
    serving.add_server_options(parser, chosen.transport)
    options = parser.parse_args(arguments)
    if family.begins(options):
        serving.leave(family.run(program, options))
    hanging: list[None] = []

    def hang(_: bytes) -> bytes:
        hanging.append(None)
        threading.Event().wait()
        raise AssertionError("nobody sets it")

    service = raw_service(NAME, {HANG: hang, HANGING: lambda _: bytes([len(hanging)])})
    serving.leave(serving.run(program, options.transport, service, options))


if __name__ == "__main__":
    main(sys.argv[1:])
