"""Connections that each keep a number of calls open, on any transport that the lean client speaks.

``python -m tests.reliability.fair_calls TRANSPORT HOST PORT CONNECTIONS CALLS SECONDS`` is a process with these
connections. It prints ``begun``, and then the number of answers in that time.
"""

import os
import select
import sys
import time
from contextlib import ExitStack

from stock_service.rpc.transports import Address
from stock_service.rpc.wire.codec import Prepared
from stock_service.trading.service import LOOKUP
from tests.conformance.running import WAIT_S
from tests.end_to_end.process import LOOKUP_ONE
from tests.reliability.honest import Served
from tests.reliability.open_loop import Lane, codec_of
from tests.reliability.socket_attacker import NICE


def _call(lane: Lane, prepared: Prepared, calls: int) -> None:
    """Opens calls until this number are open, and sends the bytes that the server takes."""
    lane.unsent += lane.codec.take_outgoing()
    while len(lane.due_s) < calls and lane.codec.room():
        number, request = lane.codec.start(prepared)
        lane.due_s[number] = time.monotonic()
        lane.unsent += request
    lane.push()


def _take(lane: Lane, served: Served) -> None:
    """Takes the replies that are there."""
    data = lane.socket.recv(1 << 16)
    assert data, "the server closed a connection"
    now_s = time.monotonic()
    for number, reply in lane.codec.feed(data):
        took_s = now_s - lane.due_s.pop(number)
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
    payload: bytes = LOOKUP_ONE,
) -> Served:
    """The outcomes of requests on several connections, each with several open at a time. Blocks meanwhile."""
    served, lanes = Served(), dict[int, Lane]()
    prepared = codec_of(transport, address).prepare(path, payload, WAIT_S)
    with ExitStack() as sockets, select.epoll() as epoll:
        for _ in range(connections):
            lane = Lane(transport, address)
            lanes[sockets.enter_context(lane.socket).fileno()] = lane
            epoll.register(lane.socket, select.EPOLLIN)
        until_s = time.monotonic() + duration_s
        for lane in lanes.values():
            _call(lane, prepared, calls)
        while time.monotonic() < until_s:
            for descriptor, _ in epoll.poll(0.1):
                _take(lanes[descriptor], served)
                _call(lanes[descriptor], prepared, calls)
    return served


if __name__ == "__main__":
    transport, host, port, connections, calls, seconds = sys.argv[1:]
    os.nice(NICE)
    print("begun", flush=True)
    print(len(called(transport, (host, int(port)), int(connections), int(calls), float(seconds)).took_s))
