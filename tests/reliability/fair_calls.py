"""Connections that each keep a number of calls open, on any transport that the lean client speaks.

``python -m tests.reliability.fair_calls TRANSPORT HOST PORT CONNECTIONS CALLS SECONDS`` is a process with these
connections. It prints ``begun``, and then the number of answers in that time.
"""

import os
import select
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from stock_service.rpc.transports import Address, load
from stock_service.rpc.wire.codec import Codec, Prepared
from stock_service.trading.service import LOOKUP
from tests.conformance.running import WAIT_S
from tests.reliability.honest import ASK, Served
from tests.reliability.socket_attacker import NICE


@dataclass(slots=True)
class Caller:
    """One connection."""

    socket: socket.socket
    codec: Codec
    unsent: bytes
    sent_s: dict[int, float] = field(default_factory=dict)
    """Its open calls, with the time of each send."""

    def call(self, prepared: Prepared, calls: int) -> None:
        """Opens calls until this number are open, and sends the bytes that the server takes."""
        data = self.unsent + self.codec.take_outgoing()
        while len(self.sent_s) < calls and self.codec.room():
            number, request = self.codec.start(prepared)
            self.sent_s[number] = time.monotonic()
            data += request
        try:
            sent = self.socket.send(data) if data else 0
        except BlockingIOError:
            sent = 0
        self.unsent = data[sent:]

    def take(self, served: Served) -> None:
        """Takes the replies that are there."""
        data = self.socket.recv(1 << 16)
        assert data, "the server closed a connection"
        now_s = time.monotonic()
        for number, reply in self.codec.feed(data):
            took_s = now_s - self.sent_s.pop(number)
            if isinstance(reply, bytes):
                served.took_s.append(took_s)
            else:
                served.failed += 1


def called(
    transport: str,
    address: Address,
    connections: int,
    calls: int,
    duration_s: float,
    path: str = LOOKUP,
    payload: bytes = ASK,
) -> Served:
    """The outcomes of requests on several connections, each with several open at a time. Blocks meanwhile."""
    served, callers = Served(), dict[int, Caller]()
    prepared = _codec(transport, address).prepare(path, payload, WAIT_S)
    with ExitStack() as sockets, select.epoll() as epoll:
        for _ in range(connections):
            connected = sockets.enter_context(socket.create_connection(address, WAIT_S))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setblocking(False)
            codec = _codec(transport, address)
            callers[connected.fileno()] = Caller(connected, codec, codec.hello)
            epoll.register(connected, select.EPOLLIN)
        until_s = time.monotonic() + duration_s
        for caller in callers.values():
            caller.call(prepared, calls)
        while time.monotonic() < until_s:
            for descriptor, _ in epoll.poll(0.1):
                callers[descriptor].take(served)
                callers[descriptor].call(prepared, calls)
    return served


def _codec(transport: str, address: Address) -> Codec:
    codec = load(transport).codec(address)
    assert codec is not None, f"the lean client does not speak {transport}"
    return codec


if __name__ == "__main__":
    transport, host, port, connections, calls, seconds = sys.argv[1:]
    os.nice(NICE)
    print("begun", flush=True)
    print(len(called(transport, (host, int(port)), int(connections), int(calls), float(seconds)).took_s))
