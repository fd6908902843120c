"""Where a request's processor time goes in a server on the core: the stages, one by one, and the whole server's.

The stages are the server's own functions, run here on connections of this machine. A step runs the first few of them
for every request. The next step runs one more, so a stage is the difference of two steps. A step's figure is the median
over turns, in which all steps follow each other. Processor time of the process is counted, which holds all threads'.
What the client's end does is left out of it. What the whole server takes besides is the last line: the reading
thread's loop, waking threads and waiting for the GIL, and waking a client that sleeps on another core.
"""

import gc
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from experiments.design.setting import setting
from experiments.measure.bench import Bench
from experiments.performance.table import Section
from experiments.performance.turns import Measuring, Plan, measure
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.decoding import decoder
from stock_service.rpc.server_core.connection import PlainStream, ServedConnection
from stock_service.rpc.server_core.connection import task as request_task
from stock_service.rpc.server_core.listening import READ_BYTES
from stock_service.rpc.server_core.protocol import Methods, WireProtocol, methods_of
from stock_service.rpc.service import Service
from stock_service.rpc.transports.grpc_static.requests import GrpcRequests
from stock_service.rpc.transports.sockets.frames import Frames
from stock_service.rpc.wire import http2
from stock_service.rpc.wire.framing import encode_request
from stock_service.rpc.wire.grpc_replies import PREFIX
from stock_service.rpc.wire.header_blocks import encode_block
from stock_service.rpc.wire.served_stream import ServedStream
from stock_service.trading.catalog import MemoryCatalog
from stock_service.trading.catalog_file import DEFAULT_STOCKS
from stock_service.trading.exchange import Exchange
from stock_service.trading.locking import Mutex, Snapshot
from stock_service.trading.service import LOOKUP, stock_service
from stock_service.v1 import stock_pb2

CONNECTIONS = (1, 16)

TURNS, REQUESTS = 21, 800
"""Turns, and requests of each step in a turn."""

WORKERS, WAITING_MAX = 8, 1024

_MANY = 1 << 30
_TIMEOUT_MS = 5000
_BYTES_MAX = 1 << 20
_REPLY_S = 10.0
_REPLY = bytes(30)
"""As long as one is."""

Made = Callable[[Service, Methods], WireProtocol[Any]]


@dataclass(frozen=True, slots=True)
class Speech:
    """A protocol, and how a client speaks it."""

    protocol: Made
    speaks: bool
    """Whether connections have sessions, which speak by themselves."""
    hello: bytes
    request: Callable[[int, bytes], bytes]
    """The bytes of a connection's request, of its number from 0 and its message."""


def _grpc_request(number: int, message: bytes) -> bytes:
    stream = 2 * number + 1
    body = PREFIX.pack(0, len(message)) + message
    return http2.headers(stream, _BLOCK, False) + http2.frame(http2.DATA, http2.END_STREAM, stream, body)


_BLOCK = encode_block(
    [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", LOOKUP.encode()),
        (b":authority", b"127.0.0.1"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
        (b"grpc-timeout", b"%dm" % _TIMEOUT_MS),
    ]
)

SPEECHES: Mapping[str, Speech] = {
    "sockets": Speech(
        lambda _, methods: Frames(methods, _BYTES_MAX),
        False,
        b"",
        lambda number, message: encode_request(number + 1, _TIMEOUT_MS, LOOKUP.encode(), message),
    ),
    "grpc_static": Speech(
        lambda service, methods: GrpcRequests(service, methods, _BYTES_MAX, _MANY),
        True,
        http2.PREFACE + http2.settings() + http2.window_update(0, http2.WINDOW_MAX - http2.WINDOW_DEFAULT),
        _grpc_request,
    ),
}
"""By transport."""


LOAD_PROGRAMS: Mapping[str, str] = {"sockets": "c", "grpc_static": "h2load"}
"""By transport: what loads the whole server."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far requests are taken: through all that is there."""

    name: str
    """The stage that is new in it."""
    polls: bool = True
    receives: bool = True
    cuts: bool = True
    answers: Callable[[bytes], bytes] | None = None
    """The method; None: requests are not answered."""
    sends: bool = False
    hands_over: bool = False
    """Whether it is done as the pool says: by its threads, or on a place that it lends; else who reads does it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A stage, and its microseconds of a request at each number of connections."""

    stage: str
    took_us: tuple[float, ...]


def steps() -> tuple[Step, ...]:
    """From nothing to the whole of a Lookup."""
    message = stock_pb2.LookupRequest(name=DEFAULT_STOCKS[0].name).SerializeToString()
    unlocked, locked = (Exchange(MemoryCatalog(DEFAULT_STOCKS, each)).version for each in (Snapshot, Mutex))
    decode = decoder(stock_pb2.LookupRequest)
    whole = stock_service(Exchange(MemoryCatalog(DEFAULT_STOCKS, Mutex))).methods[LOOKUP].answer()
    reply = whole(message)

    def constant(_: bytes) -> bytes:
        return reply

    def decoding(payload: bytes) -> bytes:
        decode(payload)
        return reply

    def looking(payload: bytes) -> bytes:
        unlocked(decode(payload).name)
        return reply

    def locking(payload: bytes) -> bytes:
        locked(decode(payload).name)
        return reply

    return (
        Step("nothing", polls=False),
        Step("epoll", receives=False),
        Step("recv", cuts=False),
        Step("cut"),
        Step("task, method and frame", answers=constant),
        Step("decode", answers=decoding),
        Step("look up", answers=looking),
        Step("lock", answers=locking),
        Step("encode", answers=whole),
        Step("send", answers=whole, sends=True),
        Step("hand-over", answers=whole, sends=True, hands_over=True),
    )


class Rig:
    """The server's ends of some connections, and the clients'. The server's are taken through a step."""

    def __init__(self, speech: Speech, step: Step, connections: int, stack: ExitStack) -> None:
        self._step = step
        service = stock_service(Exchange(MemoryCatalog(DEFAULT_STOCKS, Mutex)))
        methods = methods_of(service)
        if step.answers is not None:
            methods = replace(methods, plain={LOOKUP.encode(): step.answers})
        protocol = speech.protocol(service, methods)
        self._task = _task(step, protocol)
        self._pool = StaticPool(WORKERS, WAITING_MAX)
        stack.callback(self._pool.stop, 1.0)
        self._epoll = stack.enter_context(select.epoll())
        self._served: dict[int, ServedConnection[Any]] = {}
        self.clients: list[socket.socket] = []
        """The clients' ends."""
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for _ in range(connections):
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
            accepted, peer = listener.accept()
            for end in (client, stack.enter_context(accepted)):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.settimeout(_REPLY_S)
            accepted.setblocking(False)
            cutter: Any = protocol.decoder()
            session = cutter if speech.speaks else None
            stream = ServedStream(cutter, protocol.objection, _MANY, time.monotonic_ns(), session)
            served = ServedConnection(PlainStream(accepted, peer[:2]), stream, session)
            if speech.hello:
                served.take(speech.hello, 0, 0)
            self._served[served.fd] = served
            self.clients.append(client)
            self._epoll.register(served.fd, select.EPOLLIN)
        message = stock_pb2.LookupRequest(name=DEFAULT_STOCKS[0].name).SerializeToString()
        self._speech, self._message, self._number = speech, message, 0

    def turn(self, rounds: int) -> float:
        """Processor time of a request in so many rounds, each a request of every connection. In microseconds."""
        took_ns = 0
        for _ in range(rounds):
            self.send()
            began_ns = time.process_time_ns()
            self.round()
            waited_ns = self._replies() if self._step.hands_over else 0  # the pool's thread may have begun just now
            took_ns += time.process_time_ns() - began_ns - waited_ns
            if not self._step.hands_over:
                self._settle()
        return took_ns / rounds / len(self.clients) / 1000

    def send(self) -> None:
        """The clients' part of a round: a request of each."""
        request = self._speech.request(self._number, self._message)
        self._number += 1
        for client in self.clients:
            client.send(request)

    def round(self) -> None:
        """The server's part of a round, as far as the step goes; a pool's thread may still be at it after."""
        step, served = self._step, self._served
        if not step.polls:
            return
        batch = []
        now_ns = time.monotonic_ns()
        for fd, _ in self._epoll.poll(None, 256):
            connection = served[fd]
            if not step.receives:
                continue
            data = connection.bytes.receive(READ_BYTES)
            if step.cuts:
                request = connection.take(data, now_ns, now_ns)
                if request is not None and step.answers is not None:
                    batch.append(partial(self._task, connection, request, now_ns))
        if step.hands_over:
            self._pool.execute_all(batch)
            return
        for task in batch:
            task()

    def _settle(self) -> None:
        """Until the round is over at both ends: what the step left unread is read, and a reply goes back in any case.

        Without it the kernel would acknowledge each request by itself, which no server has.
        """
        for served in self._served.values():
            if not (self._step.polls and self._step.receives):
                served.bytes.receive(READ_BYTES)
            if not self._step.sends:
                served.bytes.send(_REPLY)
        self._replies()

    def _replies(self) -> int:
        """Has the clients' ends take their replies; gives the processor time of that, in nanoseconds."""
        began_ns = time.thread_time_ns()
        for client in self.clients:
            client.recv(READ_BYTES)
        return time.thread_time_ns() - began_ns


def _task(step: Step, protocol: WireProtocol[Any]) -> Callable[[Any, Any, int], None]:
    """What the pool is given for each request."""
    if not step.sends:

        def answer(connection: ServedConnection[Any], request: Any, arrived_ns: int) -> None:
            protocol.answer(request, arrived_ns, connection.peer)

        return answer
    return request_task(protocol.answer, _unasked)


def _unasked(connection: ServedConnection[Any]) -> None:
    """Nothing is left to be done for a client that takes its replies."""


@contextmanager
def _rigs(speech: Speech, connections: int) -> Iterator[list[Rig]]:
    with ExitStack() as stack:
        yield [Rig(speech, step, connections, stack) for step in steps()]


def stages(transport: str, turns: int = TURNS, requests: int = REQUESTS) -> list[Line]:
    """What each stage takes, on one core, as a server has one. Blocks for seconds."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        return _stages(SPEECHES[transport], turns, requests)
    finally:
        os.sched_setaffinity(0, allowed)


def _stages(speech: Speech, turns: int, requests: int) -> list[Line]:
    found: list[list[float]] = []
    for connections in CONNECTIONS:
        with _rigs(speech, connections) as rigs:
            gc.collect()
            seen = [[rig.turn(requests // connections) for rig in rigs] for _ in range(turns)]
        middles = [median(each) for each in zip(*seen, strict=True)]
        found.append([middles[at] - middles[at - 1] for at in range(1, len(middles))])
    names = [step.name for step in steps()][1:]
    return [Line(name, took_us) for name, took_us in zip(names, zip(*found, strict=True), strict=True)]


def whole(transport: str, on: Bench) -> Line:
    """What the server as a process takes, loaded by a program in C. Blocks. Raises ProgramFailed."""
    client = LOAD_PROGRAMS[transport]
    arms = {str(number): setting(transport=transport, connections=number, client=client) for number in CONNECTIONS}
    section = Section("budget", "The whole server", arms, (tuple(arms),), ())
    seen = measure(section, Measuring(on, Plan(blocks=1, turns=6)), lambda _: None)
    return Line("the whole server", tuple(median(turn.cpu_us for turn in seen if turn.arm == name) for name in arms))


def table(found: list[Line], server: Line | None) -> list[str]:
    """The lines of the budget, in Markdown; ``server`` None: it could not be loaded."""
    heads = [f"{number} connection{'s' * (number > 1)}, µs" for number in CONNECTIONS]
    total = Line("all of these", tuple(sum(column) for column in zip(*(each.took_us for each in found), strict=True)))
    shown = [*found, total]
    if server is not None:
        rest = tuple(all_us - of_us for all_us, of_us in zip(server.took_us, total.took_us, strict=True))
        shown += [server, Line("the server besides", rest)]
    lines = ["| stage | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    return lines + [f"| {each.stage} | " + " | ".join(f"{us:.2f}" for us in each.took_us) + " |" for each in shown]
