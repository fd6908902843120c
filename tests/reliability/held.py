"""Promise: bounded memory. Each of 1,000 peers sends the longest request without its last byte, and then nothing. The
bytes that a server holds count against a budget (``--buffered-bytes-max``). An honest client is answered meanwhile.
"""

import select
import socket
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.transports import Address
from stock_service.rpc.wire.framing import FRAME_BYTES_MAX
from stock_service.trading.service import LOOKUP
from tests.conformance.raw_socket import frame
from tests.end_to_end.process import Running
from tests.reliability import hostile_http2
from tests.reliability.honest import SUCCESS, Served, honest
from tests.reliability.rows import Row
from tests.reliability.serving import files_at_most, memory_mib, usual_server
from tests.unit.stock_service.rpc.wire.grpc_client_bytes import HELLO, data, head, message

PEERS, SOME = 1_000, 100

BUDGET_MIB = ReadOptions().buffered_bytes_max / 2**20
MORE_MIB = 32.0


HONEST: Mapping[str, Callable[[Address, float], Served]] = MappingProxyType(
    {"sockets": honest, "grpc_static": hostile_http2.honest}
)
"""The honest client of each transport that is tried."""

PIECE_BYTES = 16_384
"""Most bytes of a message in a frame of HTTP/2."""


def check(minutes: bool, _seed: int = 0) -> list[Row]:
    """Blocks for some seconds; with ``minutes`` for half a minute."""
    duration_s, peers = (10.0, PEERS) if minutes else (2.0, SOME)
    return [row for transport in HONEST for row in _held(transport, duration_s, peers)]


def _held(transport: str, duration_s: float, peers: int) -> list[Row]:
    honest_for = HONEST[transport]
    with usual_server(transport) as server:
        honest_for(server.address, 0.2)
        before_mib = memory_mib(server.pid)
        arguments = map(str, (transport, *server.address, peers, duration_s))
        with Running("tests.reliability.held", *arguments) as attacking:
            served = honest_for(server.address, duration_s)
            opened, sent_mib = map(int, attacking.line().split())
            attacking.ended()
        grown_mib = memory_mib(server.pid, "VmHWM") - before_mib
    limit_mib, what = BUDGET_MIB + MORE_MIB, f"{transport}: {peers:,} requests but for a byte each"
    figure = f"{grown_mib:.0f} MiB more at most, of {sent_mib:,} MiB sent on {opened:,} connections"
    return [
        Row(f"{what}: memory", f"≤ {limit_mib:g} MiB more", figure, grown_mib <= limit_mib),
        Row(f"{what}: answers", f"≥ {SUCCESS:.1%}", str(served), served.success >= SUCCESS),
    ]


def longest(transport: str) -> bytes:
    """The bytes of a client that sends the longest request."""
    if transport == "sockets":
        return frame(1, LOOKUP, bytes(FRAME_BYTES_MAX - 9 - len(LOOKUP)))
    body = message(bytes(FRAME_BYTES_MAX))
    pieces = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]
    frames = [data(1, piece, ends=at == len(pieces) - 1) for at, piece in enumerate(pieces)]
    return HELLO + head(1, LOOKUP.encode()) + b"".join(frames)


def attack(transport: str, address: Address, peers: int, duration_s: float) -> tuple[int, int]:
    """Keeps this number of peers connected; replaces a peer that is cut off. Gives the number of connections, and the
    MiB that the kernel took."""
    whole = longest(transport)[:-1]
    until_s, opened, sent = time.monotonic() + duration_s, 0, 0
    waiting: dict[int, tuple[socket.socket, int]] = {}
    with select.epoll() as epoll:
        while time.monotonic() < until_s:
            while len(waiting) < peers:
                peer = socket.socket()
                peer.setblocking(False)
                peer.connect_ex(address)
                waiting[peer.fileno()] = (peer, 0)
                epoll.register(peer, select.EPOLLIN | select.EPOLLOUT)
                opened += 1
            for descriptor, events in epoll.poll(0.1):
                peer, at = waiting[descriptor]
                try:
                    if events & (select.EPOLLHUP | select.EPOLLERR) or (
                        events & select.EPOLLIN and not peer.recv(1 << 16)
                    ):
                        raise ConnectionResetError
                    if at == len(whole):
                        continue
                    count = peer.send(whole[at : at + (1 << 18)])
                    sent += count
                    waiting[descriptor] = (peer, at + count)
                    if at + count == len(whole):
                        epoll.modify(descriptor, select.EPOLLIN)
                except BlockingIOError:
                    pass  # the server reads no more of it now
                except OSError:
                    waiting.pop(descriptor)[0].close()
    for peer, _ in waiting.values():
        peer.close()
    return opened, sent >> 20


if __name__ == "__main__":
    name, host, port, count, seconds = sys.argv[1:]
    files_at_most(20_000)
    print(*attack(name, (host, int(port)), int(count), float(seconds)), flush=True)
