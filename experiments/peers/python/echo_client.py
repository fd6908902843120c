"""Sends messages in a closed loop, one at a time, and measures the response times, as ``client.c`` does in C.

    python -m experiments.peers.python.echo_client --api berkeley|zeromq|nng --address HOST:PORT
        [--size BYTES] [--count N] [--timeout-s S]

The time of a message begins just before the send, and ends when the whole reply has come. Then the client compares the
reply with the sent message. The client prints the lines of the C client: ``connect``, ``first call`` and ``call``, with
times in nanoseconds. If an API connects only at the first call, ``first call`` includes the time of connecting. The
exit code is 1 for a lost server or a wrong reply, and 2 for a bad option.
"""

import gc
import sys
import time
from collections.abc import Sequence

from experiments.peers.python.echo_channels import CHANNELS, MESSAGE_BYTES_MAX, Channel, Gone, channel
from stock_service.rpc.process.command_line import Parser, address, integer, number

PROGRAM = "python -m experiments.peers.python.echo_client"

NUMBER_BYTES = 8
"""Size in bytes of a message's number. Each message begins with its number."""


def drive(asked: Channel, size: int, count: int) -> tuple[list[int], list[int]]:
    """Sends ``count`` messages. Returns the moment of each send, and the time from each send until the reply.

    Moments and times are in nanoseconds. Raises Gone for a lost server, a missing reply or a wrong reply.
    """
    rest = bytes(size - NUMBER_BYTES)
    sent_ns, took_ns = list[int](), list[int]()
    for place in range(count):
        message = place.to_bytes(NUMBER_BYTES) + rest
        began_ns = time.perf_counter_ns()
        asked.send(message)
        reply = asked.receive()
        ended_ns = time.perf_counter_ns()
        if reply is None:
            raise Gone("no reply in time")
        if reply != message:
            raise Gone(f"a reply of {len(reply)} bytes that is not what was sent")
        sent_ns.append(began_ns)
        took_ns.append(ended_ns - began_ns)
    return sent_ns, took_ns


def main(arguments: Sequence[str]) -> int:
    """Sends all messages, and prints the times. Returns the exit code."""
    parser = Parser(PROGRAM, "Sends messages over a socket API, and says how long each took to come back.")
    parser.add_argument("--api", choices=CHANNELS, required=True, help="which socket API")
    parser.add_argument("--address", type=address, required=True, metavar="HOST:PORT", help="of the server")
    sizes = integer(NUMBER_BYTES, MESSAGE_BYTES_MAX)
    parser.add_argument("--size", type=sizes, default=10_000, metavar="BYTES", help="of a message")
    parser.add_argument("--count", type=integer(1, 10_000_000), default=1000, metavar="N", help="messages")
    parser.add_argument("--timeout-s", type=number(0.01, 3600), default=5.0, metavar="S", help="for each reply")
    options = parser.parse_args(arguments)
    gc.disable()  # as in every load client here, so that no call includes a garbage collection
    asked = channel(options.api, False, options.timeout_s)
    began_ns = time.perf_counter_ns()  # the library is loaded by now
    try:
        asked.connect(*options.address)
        connect_ns = time.perf_counter_ns() - began_ns
        sent_ns, took_ns = drive(asked, options.size, options.count)
    except Gone as gone:
        print(f"echo_client: {gone}", file=sys.stderr)
        return 1
    finally:
        asked.close()
    print(f'{{"what":"connect","ns":{connect_ns}}}')
    for place, (at_ns, ns) in enumerate(zip(sent_ns, took_ns, strict=True)):
        print(f'{{"what":"{"call" if place else "first call"}","at_ns":{at_ns - sent_ns[0]},"ns":{ns}}}')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
