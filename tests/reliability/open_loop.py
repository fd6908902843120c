"""An open loop on any transport that the lean client speaks: requests come when due, for any outcome of earlier ones.

One thread keeps many requests open on each connection. So the loop can offer more requests than a server takes. A
request waits here until a connection has room, as in gRPC's own clients, and is given up at its deadline.
"""

import math
import select
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType

from stock_service.rpc.errors import FaultCode
from stock_service.rpc.transports import Address, load
from stock_service.rpc.wire.codec import Codec, Prepared
from tests.conformance.running import WAIT_S

TICK_S = 0.001
"""Time between two sends of the due requests."""

ALIKE_S = 0.0005
"""Requests that are due within this time share the deadline of the first request."""

LANES_A_TICK = 16
"""Most connections that the due requests of a tick go to: each costs a call of the kernel."""

PATIENCE_S = 3.0
"""Longest wait for replies after the last request."""

CONNECTIONS: Mapping[str, int] = MappingProxyType({"sockets": 16})
CONNECTIONS_ELSE = 64
"""On ``grpc_static`` 64 connections have up to 2,048 open calls, since a client opens half of a connection's 64 calls.
On sockets only the kernel's buffers limit the number of open requests."""


@dataclass(slots=True)
class Offered:
    """The outcomes of an open loop's requests. Times are seconds from when a request was due."""

    due: int = 0
    given_up: int = 0
    """Requests that were never sent, since no connection had room until their deadline."""
    good: int = 0
    """Answers within the deadline and before the loop's end. A closed loop counts its answers so, too."""
    answered_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    codes: Counter[FaultCode] = field(default_factory=Counter)
    """Number of refusals."""
    lag_s: list[float] = field(default_factory=list)
    """Lateness of the first request of each tick: time from due until the request was given to the kernel, or queued
    for it."""

    @property
    def unanswered(self) -> int:
        """Requests that were sent and not answered."""
        return self.due - self.given_up - len(self.answered_s) - len(self.refused_s)


def codec_of(transport: str, address: Address) -> Codec:
    """A codec of the lean client. Fails for a transport that the lean client does not speak."""
    codec = load(transport).codec(address)
    assert codec is not None, f"the lean client does not speak {transport}"
    return codec


class Lane:
    """A connection with several open calls. The caller closes its socket."""

    def __init__(self, transport: str, address: Address) -> None:
        self.socket = socket.create_connection(address, WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.codec = codec_of(transport, address)
        self.unsent = bytearray(self.codec.hello)
        self.due_s: dict[int, float] = {}
        """Times at which its open calls were due."""

    def push(self) -> None:
        """Sends what the kernel takes."""
        try:
            del self.unsent[: self.socket.send(self.unsent)]
        except BlockingIOError:
            pass  # the server reads no more of it now


def offer(
    transport: str,
    address: Address,
    path: str,
    payload: Callable[[int], bytes],
    rate_hz: float,
    duration_s: float,
    deadline_s: float,
) -> Offered:
    """Offers ``rate_hz`` requests a second for ``duration_s``, and takes the replies. Blocks. ``payload`` gets the
    moment at which the client gives up, in ns on ``time.monotonic_ns``. The server gets the deadline, too.
    """
    codec = codec_of(transport, address)
    with ExitStack() as opened:
        lanes = [Lane(transport, address) for _ in range(CONNECTIONS.get(transport, CONNECTIONS_ELSE))]
        epoll = opened.enter_context(select.epoll())
        for lane in lanes:
            opened.enter_context(lane.socket)
            epoll.register(lane.socket, select.EPOLLIN)

        def prepared(given_up_ns: int, left_s: float) -> Prepared:
            return codec.prepare(path, payload(given_up_ns), left_s)

        return _OpenLoop(lanes, epoll, prepared, deadline_s).run(rate_hz, duration_s)


class _OpenLoop:
    """See ``offer``."""

    def __init__(
        self, lanes: list[Lane], epoll: select.epoll, prepare: Callable[[int, float], Prepared], deadline_s: float
    ) -> None:
        self._prepare, self._deadline_s = prepare, deadline_s
        self._offered = Offered()
        self._waiting: deque[float] = deque()  # when each request was due that is not sent yet
        self._lanes = deque(lanes)
        self._by_descriptor = {lane.socket.fileno(): lane for lane in lanes}
        self._epoll = epoll

    def run(self, rate_hz: float, duration_s: float) -> Offered:
        """Run the loop, and give the outcomes of its requests."""
        offered, waiting = self._offered, self._waiting
        began_s = time.monotonic()
        until_s = began_s + duration_s
        while True:
            now_s = time.monotonic()
            upto = int(min(now_s - began_s, duration_s) * rate_hz)
            if upto > offered.due:
                waiting.extend([began_s + call / rate_hz for call in range(offered.due + 1, upto + 1)])
                offered.due = upto
            if waiting:
                first_s = waiting[0]
                self._start(now_s)
                offered.lag_s.append(time.monotonic() - first_s)
            for lane in self._lanes:
                if lane.unsent:
                    lane.push()
            for descriptor, _ in self._epoll.poll(TICK_S):
                self._take(self._by_descriptor[descriptor], until_s)
            if now_s > until_s and (not offered.unanswered or now_s > until_s + PATIENCE_S):
                return offered

    def _start(self, now_s: float) -> None:
        """Starts due requests on the connections in rotation, as long as there is room."""
        waiting, lanes, offered = self._waiting, self._lanes, self._offered
        share = 1 + len(waiting) // LANES_A_TICK
        alike_s, full = 0.0, 0
        prepared: Prepared = ()
        while waiting and full < len(lanes):
            lane = lanes[0]
            lanes.rotate(-1)
            full += 1
            for _ in range(share):
                while waiting and now_s >= waiting[0] + self._deadline_s:
                    waiting.popleft()
                    offered.given_up += 1
                if not waiting or not lane.codec.room():
                    break
                due_s = waiting.popleft()
                if due_s > alike_s:
                    prepared, alike_s = self._prepared(due_s, now_s), due_s + ALIKE_S
                number, request = lane.codec.start(prepared)
                lane.due_s[number] = due_s
                lane.unsent += request
                full = 0

    def _prepared(self, due_s: float, now_s: float) -> Prepared:
        """The encoded request that was due at this time. The server gets the remaining time as its timeout."""
        given_up_s = due_s + self._deadline_s
        left_ms = max(1, math.ceil((given_up_s - now_s) * 1000))
        return self._prepare(int(given_up_s * 1e9), left_ms / 1000)

    def _take(self, lane: Lane, until_s: float) -> None:
        """Takes the replies that have come."""
        data = lane.socket.recv(1 << 18)
        assert data, "the server closed a connection"
        offered, now_s = self._offered, time.monotonic()
        for number, reply in lane.codec.feed(data):
            took_s = now_s - lane.due_s.pop(number)
            if isinstance(reply, bytes):
                offered.answered_s.append(took_s)
                offered.good += took_s <= self._deadline_s and now_s <= until_s
            else:
                offered.refused_s.append(took_s)
                offered.codes[reply.code] += 1
        lane.unsent += lane.codec.take_outgoing()
