"""Promise: bounded memory. Each of 1,000 peers sends the longest request without its last byte, and then nothing. The
bytes that a server holds count against a budget (``--buffered-bytes-max``). An honest client is answered meanwhile.

``python -m tests.reliability.held TRANSPORT HOST PORT PEERS SECONDS`` is the process of the peers. At the end it prints
the number of its connections, and the MiB that the kernel took.
"""

import sys

from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.wire.framing import FRAME_BYTES_MAX
from stock_service.trading.service import LOOKUP
from tests.conformance.raw_socket import frame
from tests.end_to_end.process import Running
from tests.reliability.honest import SUCCESS, honest
from tests.reliability.rows import Row
from tests.reliability.serving import files_at_most, memory_mib, usual_server
from tests.reliability.socket_attacker import Attack, attack, once
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, data, head, message

PEERS, SOME = 1_000, 100

BUDGET_MIB = ReadOptions().buffered_bytes_max / 2**20
MORE_MIB = 32.0

TRANSPORTS_TRIED = ("sockets", "grpc_static")

FRAME_BYTES = 16_384
"""Most bytes of a message in a frame of HTTP/2."""

PIECE_BYTES = 1 << 18
"""Number of bytes that a peer sends at a time."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for half a minute."""
    duration_s, peers = (10.0, PEERS) if minutes else (2.0, SOME)
    return [row for transport in TRANSPORTS_TRIED for row in _held(transport, duration_s, peers)]


def _held(transport: str, duration_s: float, peers: int) -> list[Row]:
    with usual_server(transport) as server:
        honest(transport, server.address, 0.2)
        before_mib = memory_mib(server.pid)
        arguments = map(str, (transport, *server.address, peers, duration_s))
        with Running("tests.reliability.held", *arguments) as attacking:
            served = honest(transport, server.address, duration_s)
            _, opened, sent_mib = attacking.ended().stdout.split()
        grown_mib = memory_mib(server.pid, "VmHWM") - before_mib
    limit_mib, what = BUDGET_MIB + MORE_MIB, f"{transport}: {peers:,} requests but for a byte each"
    figure = f"{grown_mib:.0f} MiB more at most, of {int(sent_mib):,} MiB sent on {int(opened):,} connections"
    return [
        Row(f"{what}: memory", f"≤ {limit_mib:g} MiB more", figure, grown_mib <= limit_mib),
        Row(f"{what}: answers", f"≥ {SUCCESS:.1%}", str(served), served.success >= SUCCESS),
    ]


def longest(transport: str) -> bytes:
    """The bytes of a client that sends the longest request."""
    if transport == "sockets":
        return frame(1, LOOKUP, bytes(FRAME_BYTES_MAX - 9 - len(LOOKUP)))
    body = message(bytes(FRAME_BYTES_MAX))
    pieces = [body[at : at + FRAME_BYTES] for at in range(0, len(body), FRAME_BYTES)]
    frames = [data(1, piece, ends=at == len(pieces) - 1) for at, piece in enumerate(pieces)]
    return HELLO + head(1, LOOKUP.encode()) + b"".join(frames)


if __name__ == "__main__":
    name, host, port, count, seconds = sys.argv[1:]
    files_at_most(20_000)
    but_one = longest(name)[:-1]
    pieces = once(*(but_one[at : at + PIECE_BYTES] for at in range(0, len(but_one), PIECE_BYTES)))
    opened, sent = attack((host, int(port)), Attack(pieces, int(count)), float(seconds))
    print(opened, sent >> 20)
