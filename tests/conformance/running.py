"""Servers of any kind on a free port, their connections, and a service to try them with; for the transports' checks.

A ``Kind`` is one combination of the factors; ``KINDS`` are all of them, so that a transport or executor added to its
table is checked without a word here. ``Probe`` is a service whose handlers block, fail or echo as a check needs it.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from stock_service.rpc.concurrency import EXECUTORS
from stock_service.rpc.concurrency.static_pool import StaticPool
from stock_service.rpc.errors import FAULTS, Fault, FaultCode
from stock_service.rpc.server_core.connection import ByteStream
from stock_service.rpc.server_core.options import ReadOptions
from stock_service.rpc.server_core.protocol import Methods, WireProtocol
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.service import Service
from stock_service.rpc.transports import TRANSPORTS, Address, Connection, ServeOptions, load
from stock_service.rpc.transports.grpc_aio import AioOptions
from stock_service.rpc.transports.sockets import SocketOptions
from tests.raw_service import raw_service

WAIT_S = 10.0
"""Longest time for any expected event: a hundred times its time on a quiet machine."""

POLL_S = 0.002
"""Time between two looks at a state that has no notification."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One combination of transport, executor and, where the transport has several, dispatch."""

    transport: str
    executor: str
    dispatch: str = "request"

    def __str__(self) -> str:
        return f"{self.transport}-{self.executor}" + ("" if self.dispatch == "request" else f"-{self.dispatch}")


KINDS = [
    Kind(transport, executor)
    for transport in TRANSPORTS
    for executor in EXECUTORS
    if executor not in load(transport).REFUSED_EXECUTORS
]
KINDS += [Kind("sockets", executor, "connection") for executor in EXECUTORS if executor != "leader-followers"]
KINDS += [Kind("grpc_aio", "static-pool", "loop")]  # where no executor runs anything


def one_executor_each(turn: int) -> list[Kind]:
    """A kind for each transport and dispatch. Executors take turns among them, and from one ``turn`` to the next."""
    served = dict.fromkeys((kind.transport, kind.dispatch) for kind in KINDS)
    among = [[kind for kind in KINDS if (kind.transport, kind.dispatch) == each] for each in served]
    return [kinds[(turn + place) % len(kinds)] for place, kinds in enumerate(among)]


DISPATCHED: dict[str, SocketOptions | AioOptions] = {"sockets": SocketOptions(), "grpc_aio": AioOptions()}
"""The transports that have several dispatches, with their own options."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A server's limits; ``requests_max`` and ``dispatch`` are set from the rest."""

    workers: int = 4
    queue_limit: int = 64
    options: ServeOptions = field(default=ServeOptions())


class Running:
    """A server that runs until ``with`` ends, which also closes the connections and fails unless all ends in time."""

    def __init__(self, kind: Kind, service: Service, limits: Limits) -> None:
        self.kind = kind
        self._transport = load(kind.transport)
        requests_max = limits.workers + limits.queue_limit
        options = replace(limits.options, requests_max=requests_max)
        if kind.transport in DISPATCHED:
            own = options.own or DISPATCHED[kind.transport]
            assert isinstance(own, SocketOptions | AioOptions)
            options = replace(options, own=replace(own, dispatch=kind.dispatch))  # type: ignore[arg-type]  # its own
        self._executor = EXECUTORS[kind.executor](limits.workers, limits.queue_limit)
        self._connections: list[Connection] = []
        try:
            self.server = self._transport.serve(service, self._executor, options)
        except BaseException:
            self._executor.stop(WAIT_S)
            raise
        self.address: Address = self.server.address

    def connect(self, timeout_s: float = WAIT_S) -> Connection:
        """A connection that ``with`` closes."""
        connection = self._transport.connect(self.address, timeout_s)
        self._connections.append(connection)
        return connection

    def stop(self, grace_s: float = WAIT_S) -> bool:
        """Stops the server, then the executor; whether all ended in time."""
        finished = self.server.stop(grace_s)
        return self._executor.stop(grace_s) and finished

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for connection in self._connections:
            connection.close()
        assert self.stop() or error is not None, "the server had work left when its clients were gone"


def outcome(connection: Connection, path: str, payload: bytes = b"") -> FaultCode | None:
    """The fault in which a call ended: None if it was answered."""
    try:
        connection.call(path, payload, WAIT_S)
    except Fault as fault:
        return fault.code
    return None


class Maker(Protocol):
    """Starts a server of one kind."""

    def __call__(self, service: Service, limits: Limits = ...) -> Running:
        """A running server; use it in ``with``."""


def maker(kind: Kind) -> Maker:
    """A function that starts servers of this kind."""

    def make(service: Service, limits: Limits = Limits()) -> Running:
        return Running(kind, service, limits)

    return make


@contextmanager
def core_server(
    methods: Methods,
    protocol: WireProtocol[Any],
    options: ServeOptions,
    own: ReadOptions,
    carrier: Callable[[socket.socket, Address], ByteStream] | None = None,
    sessions: Any = None,
    workers: int = 1,
) -> Iterator[RequestServer[Any]]:
    """A server of the server core by itself, on a static pool, until ``with`` ends, which fails unless all ends in
    time."""
    pool = StaticPool(workers, options.requests_max - workers)
    server = RequestServer(methods, protocol, pool, options, own, carrier, sessions)
    try:
        yield server
    finally:
        stopped = server.stop(WAIT_S)
        assert pool.stop(WAIT_S)
        assert stopped


PROBE = "tests.v1.Probe"
ECHO, BLOCK, FAIL = (f"/{PROBE}/{name}" for name in ("Echo", "Block", "Fail"))


class Probe:
    """``Echo`` gives back what it gets; ``Block`` does so once ``released``; ``Fail`` raises.

    ``Fail`` gets the code of the fault to raise as a decimal number. For ``exit`` it raises SystemExit, for other texts
    an error that is not a Fault. Leaving ``with`` releases, so that no failed check waits for its own handlers.
    """

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun: list[bytes] = []  # what Block was called with; appending is atomic
        self._entered = threading.Semaphore(0)
        self.service = raw_service(PROBE, {ECHO: bytes, BLOCK: self._block, FAIL: self._fail})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.released.set()

    def entered(self) -> None:
        """Blocks until one more call of ``Block`` has begun."""
        assert self._entered.acquire(timeout=WAIT_S), "no handler began"

    def _block(self, payload: bytes) -> bytes:
        self.begun.append(payload)
        self._entered.release()
        assert self.released.wait(3 * WAIT_S), "nobody released the handler"
        return payload

    def _fail(self, payload: bytes) -> bytes:
        if payload.isdigit():
            raise FAULTS[int(payload)](f"planted {payload.decode()}")
        raise SystemExit("planted") if payload == b"exit" else RuntimeError("planted")


def until(condition: Callable[[], bool], what: str) -> None:
    """Blocks until a condition holds; fails with ``what`` if it does not in time."""
    deadline_s = time.monotonic() + WAIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {WAIT_S:g} s: {what}"
        pause.wait(POLL_S)


def refuses(address: Address) -> bool:
    """Tell whether the address refuses connections."""
    try:
        socket.create_connection(address, WAIT_S).close()
    except OSError:
        return True
    return False


def stopping(running: Running) -> Future[bool]:
    """Starts a stop of a server on a thread. Gives its result to come, once the server accepts no connections."""
    thread = ThreadPoolExecutor(1, "stopping")
    result = thread.submit(running.stop)
    thread.shutdown(wait=False)
    until(partial(refuses, running.address), "the server stops accepting")
    return result
