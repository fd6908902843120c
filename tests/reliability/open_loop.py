"""An open loop on the sockets protocol: requests that come when they are due, whatever became of those before them.

One thread; requests are pipelined over a few connections. So it offers more than a server takes, which a client with
one request under way a connection cannot.
"""

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct

from stock_service.rpc.transports import Address
from stock_service.rpc.wire.framing import encode_request

TICK_S = 0.001
"""What is due is sent this often."""

PATIENCE_S = 3.0
"""How long replies are waited for after the last request."""

_REPLY = Struct("!IIB")
_CALL = Struct("!I")


@dataclass(slots=True)
class Offered:
    """What became of an open loop's requests. Times are seconds from when a request was due."""

    sent: int = 0
    answered_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    lag_s: list[float] = field(default_factory=list)
    """How late the last request of each tick was given to the kernel, or kept for it."""
    codes: dict[int, int] = field(default_factory=dict)

    def in_time(self, deadline_s: float) -> int:
        """Answers within the deadline."""
        return sum(each <= deadline_s for each in self.answered_s)

    @property
    def unanswered(self) -> int:
        """Requests of which nothing was heard."""
        return self.sent - len(self.answered_s) - len(self.refused_s)


class _Lane:
    """One connection."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.unsent = bytearray()
        self.received = b""

    def push(self) -> None:
        """Sends what the kernel takes."""
        try:
            del self.unsent[: self.socket.send(self.unsent)]
        except BlockingIOError:
            pass  # the server reads no more of it now


def offer(
    address: Address,
    path: bytes,
    payload: Callable[[int], bytes],
    rate_hz: float,
    duration_s: float,
    deadline_s: float,
    connections: int = 16,
) -> Offered:
    """Sends ``rate_hz`` requests a second for ``duration_s``, and takes the replies. Blocks.

    ``payload`` gets when the client gives up, in ns on ``time.monotonic_ns``. The server is told the deadline, too.
    """
    lanes = [_Lane(address) for _ in range(connections)]
    by_descriptor = {lane.socket.fileno(): lane for lane in lanes}
    epoll = select.epoll()
    for descriptor in by_descriptor:
        epoll.register(descriptor, select.EPOLLIN)
    offered, due_s = Offered(), [0.0]  # calls are numbered from 1
    timeout_ms = int(deadline_s * 1000)
    began_s = time.monotonic()
    try:
        while True:
            now_s = time.monotonic()
            upto = int(min(now_s - began_s, duration_s) * rate_hz)
            for call in range(offered.sent + 1, upto + 1):
                at_s = began_s + call / rate_hz
                due_s.append(at_s)
                given_up_ns = int((at_s + deadline_s) * 1e9)
                lanes[call % connections].unsent += encode_request(call, timeout_ms, path, payload(given_up_ns))
            if upto > offered.sent:
                offered.lag_s.append(time.monotonic() - due_s[offered.sent + 1])
            offered.sent = max(offered.sent, upto)
            for lane in lanes:
                if lane.unsent:
                    lane.push()
            for descriptor, _ in epoll.poll(TICK_S):
                _take(by_descriptor[descriptor], offered, due_s)
            if now_s - began_s > duration_s and (not offered.unanswered or now_s - began_s > duration_s + PATIENCE_S):
                return offered
    finally:
        epoll.close()
        for lane in lanes:
            lane.socket.close()


def _take(lane: _Lane, offered: Offered, due_s: list[float]) -> None:
    """Takes the replies that have come."""
    data = lane.received + lane.socket.recv(1 << 18)
    now_s, start = time.monotonic(), 0
    while len(data) - start >= _REPLY.size:
        length, call, code = _REPLY.unpack_from(data, start)
        if len(data) - start < 4 + length:
            break
        start += 4 + length
        offered.codes[code] = offered.codes.get(code, 0) + 1
        (offered.refused_s if code else offered.answered_s).append(now_s - due_s[call])
    lane.received = data[start:]
