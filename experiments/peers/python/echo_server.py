"""Sends every message back over a socket API, in one thread, as ``experiments/peers/c/sockets/server.c`` does in C.

    python -m experiments.peers.python.echo_server --api berkeley|zeromq|nng [--host HOST] [--port N] [--grace-s S]

The server prints ``ready HOST:PORT`` when it serves. After SIGTERM or SIGINT the server answers the messages that have
arrived, and exits with 0. If these answers take longer than ``--grace-s``, the exit code is 1. A second signal ends the
server at once with exit code 1. For a bad option or a taken port, the server prints one line and exits with 2.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence

from experiments.peers.python.echo_channels import CHANNELS, Channel, Gone, channel
from stock_service.rpc.process.command_line import Parser, integer, number

PROGRAM = "python -m experiments.peers.python.echo_server"

WAIT_S = 0.05
"""Longest time in seconds between two checks for a signal."""

DRAIN_S = 0.05
"""Time in seconds after a signal during which the server still answers messages that arrive."""

SETTLE_S = 0.05
"""Pause in seconds before the close, since NNG drops unsent messages at a close."""

GRACE_S_LEAST = 0.25
"""Time in seconds that a server without unanswered messages takes to end. A shorter ``--grace-s`` is raised to this
time.
"""


class Ending:
    """Handler of the signals that end the server. ``asked`` is True after the first signal, so that the server finishes
    its work. A second signal, or the end of the grace time, ends the process at once with exit code 1."""

    def __init__(self, grace_s: float) -> None:
        self.asked = False
        self._grace_s = grace_s
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._told)
        signal.signal(signal.SIGALRM, self._too_late)

    def _told(self, *_: object) -> None:
        if self.asked:
            os._exit(1)
        self.asked = True
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, GRACE_S_LEAST))

    def _too_late(self, *_: object) -> None:
        os.write(2, f"--grace-s {self._grace_s:g} was too short: what had not ended was given up\n".encode())
        os._exit(1)


def serve(served: Channel, ending: Ending) -> None:
    """Sends every message back, until ``DRAIN_S`` after a signal. Blocks."""
    until_s = float("inf")
    while time.monotonic() < until_s:
        message = served.receive()
        if message is not None:
            try:
                served.send(message)
            except Gone as gone:
                print(f"a reply could not be sent: {gone}", file=sys.stderr)
        if ending.asked and until_s == float("inf"):
            until_s = time.monotonic() + DRAIN_S
    time.sleep(SETTLE_S)


def main(arguments: Sequence[str]) -> int:
    """Serves until a signal ends the server. Returns the exit code."""
    parser = Parser(PROGRAM, "Sends every message back, over a socket API.")
    parser.add_argument("--api", choices=CHANNELS, required=True, help="which socket API")
    parser.add_argument("--host", default="127.0.0.1", help="an address 127.… of this machine (default: 127.0.0.1)")
    parser.add_argument("--port", type=integer(0, 65535), default=50081, metavar="N", help="0: a free port")
    parser.add_argument("--grace-s", type=number(0, 3600), default=5.0, metavar="S", help="to answer what has come")
    options = parser.parse_args(arguments)
    if not options.host.startswith("127."):
        parser.error(f"--host: got {options.host!r}, allowed: a loopback address of IPv4, such as 127.0.0.1")
    try:
        with socket.create_server((options.host, options.port)) as probe:  # not every API tells the error or the port
            port = probe.getsockname()[1]
    except OSError as error:
        parser.error(f"--port: got {options.port} ({error.strerror}), allowed: one that is not taken, or 0")
    served = channel(options.api, True, WAIT_S)
    ending = Ending(options.grace_s)
    served.listen(options.host, port)
    print(f"ready {options.host}:{port}", flush=True)
    serve(served, ending)
    served.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
