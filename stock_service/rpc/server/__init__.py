"""``grpc.server`` on our own gRPC transport: ``server(...)`` gives what serves a generated servicer unchanged.

It is one more server of the core (``server_core/``): a thread reads all connections, and a handler has a thread of the
given pool, a streaming one for as long as it lasts. Limits and TLS are the core's. What is not kept is refused by name
when it is given.

Differences from grpcio: at most ``limits.requests_max`` calls are accepted at a time, where ``maximum_concurrent_rpcs``
says no other number; a client that takes no byte of a reply for ``read_timeout_s`` loses its connection; of a client's
certificate a handler is told the common name alone; ``grpc.ServerCredentials`` cannot be read by anybody, so TLS needs
a ``ServerTls``.
"""

import socket
import threading
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import grpc

from stock_service.rpc import option_types
from stock_service.rpc.concurrency import Task
from stock_service.rpc.concurrency.thread_pool import ThreadPool
from stock_service.rpc.errors import Unavailable
from stock_service.rpc.server.connections import HandlerConnection
from stock_service.rpc.server.context import kept
from stock_service.rpc.server.handlers import Handler, HandlerRequests, Handlers
from stock_service.rpc.server_core.listening import BACKLOG, RECEIVE_BYTES
from stock_service.rpc.server_core.options import PassedListener, ReadOptions, ServeOptions
from stock_service.rpc.server_core.protocol import Methods
from stock_service.rpc.server_core.reactor import RequestServer
from stock_service.rpc.tls import ServerTls
from stock_service.rpc.wire.grpc_calls import GrpcRequest

LIMITS = ServeOptions(frame_bytes_max=4 << 20, pipeline_max=1000, own=ReadOptions(delay_target_ms=0))
"""Limits of a server: grpcio's largest message; as on grpcio, no call is refused because it waits."""

_KEPT = {
    "grpc.max_receive_message_length": ("frame_bytes_max", 1),
    "grpc.max_concurrent_streams": ("pipeline_max", 1),
    "grpc.max_connection_idle_ms": ("idle_timeout_s", 1e-3),
    "grpc.max_connection_age_ms": ("connection_age_s", 1e-3),
    "grpc.max_connection_age_grace_ms": ("connection_grace_s", 1e-3),
}
"""grpcio's options that are kept, each with the limit that it sets, and the limit's unit."""

_REUSE, _MOST = "grpc.so_reuseport", 1 << 30

_RESETS = 4
"""Calls of one connection that the pool may have, for each call that may be open: calls that were reset count too."""

_DRAIN_S = 1.0
"""Longest wait of a stop until no further call is taken. A callback that stops its own server waits in vain."""

_WATCH_S = 0.25
"""Seconds between two looks at the program's main thread."""


class GivenPool(ThreadPool):
    """A pool that its user made and ends, as an ``Executor``: it takes ``limit`` tasks at a time."""

    def __init__(self, pool: ThreadPoolExecutor, limit: int) -> None:
        self._pool, self.workers, self.limit = pool, pool._max_workers, limit
        self._lock = threading.Lock()  # guards the next two
        self._accepted = self._paused = 0
        self._stopping = False

    def pause(self, count: int) -> None:
        """Adds to the number of tasks that wait for a client. They keep their threads."""
        with self._lock:
            self._paused += count

    @property
    def under_way(self) -> int:
        """See ``Executor``; without tasks that wait for a client."""
        return self._accepted - self._paused

    def submit(self, task: Task) -> "Future[None]":
        """See ``ThreadPool``. Raises Unavailable where the pool's user has ended it, too."""
        if self._pool._shutdown:
            raise Unavailable("the server's pool of threads has ended")
        return super().submit(task)

    def stop(self, grace_s: float) -> bool:
        """Does nothing: the pool is its user's."""
        return True


class HandlerServer(RequestServer[GrpcRequest]):
    """A listening server of one port; see ``RequestServer``."""

    def __init__(self, protocol: HandlerRequests, pool: GivenPool, options: ServeOptions) -> None:
        self._pause = pool.pause
        self.draining = threading.Event()
        """Set once it takes no further calls."""
        unpaused, own = replace(options, pipeline_max=_RESETS * options.pipeline_max), options.own or ReadOptions()
        super().__init__(Methods({}, {}), protocol, pool, unpaused, own, sessions=protocol.decoder)

    def _run(self) -> None:
        opened = self._opened
        self._opened = lambda *accepted: HandlerConnection(opened(*accepted), self._ask, self._pause)
        super()._run()

    def _drain(self, now_ns: int) -> None:
        super()._drain(now_ns)
        self.draining.set()

    def _end(self) -> None:
        self.draining.set()
        for connection in self._connections.by_fd.values():
            assert isinstance(connection, HandlerConnection)
            connection.cancel()
        super()._end()


class Server(grpc.Server):
    """See ``grpc.Server``. Any thread may use it."""

    def __init__(self, pool: GivenPool, handlers: Handlers, compresses: bool, limits: ServeOptions) -> None:
        self._pool, self._handlers, self._limits = pool, handlers, limits
        self._protocol = HandlerRequests(handlers, compresses, limits.frame_bytes_max, limits.pipeline_max)
        self._lock = threading.Lock()  # guards the three below
        self._bound: list[tuple[socket.socket, ServerTls | None]] = []
        self._serving: list[HandlerServer] = []
        self._started = False
        self._ended = threading.Event()

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """See ``grpc.Server``."""
        for each in (added := list(generic_rpc_handlers)):
            if getattr(each, "service", None) is None:
                raise AttributeError(f'"{each}" must conform to grpc.GenericRpcHandler, and has no method "service"')
        self._handlers.generic += added

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Handler]) -> None:
        """See ``grpc.Server``; generated code calls this."""
        for name, handler in method_handlers.items():
            self._handlers.registered[f"/{service_name}/{name}"] = handler

    def add_insecure_port(self, address: str) -> int:
        """Opens ``HOST:PORT`` and returns the port. Raises RuntimeError where it cannot."""
        return self._bind(address, None)

    def add_secure_port(self, address: str, server_credentials: "grpc.ServerCredentials | ServerTls") -> int:
        """The same for connections in TLS. Raises TypeError for grpcio's credentials, whose files nobody can read."""
        if not isinstance(server_credentials, ServerTls):
            given = type(server_credentials).__name__
            raise TypeError(
                f'server_credentials: got {given}, allowed: ServerTls(files, ["h2"]) of stock_service.rpc.tls'
            )
        return self._bind(address, server_credentials)

    def start(self) -> None:
        """Serves from now on. Raises ValueError where it was started before."""
        with self._lock:
            if self._started:
                raise ValueError("Cannot start already-started server!")
            self._started = True
            for listener, tls in self._bound:
                options = replace(self._limits, listener=PassedListener(listener), tls=tls)
                self._serving.append(HandlerServer(self._protocol, self._pool, options))
        threading.Thread(target=self._watch, name="server-watch").start()

    def stop(self, grace: float | None) -> threading.Event:
        """Ends the server: what it has accepted may take ``grace`` seconds, and is then cancelled.

        Returns an event that is set at the end; None: at once, and blocks until the end.
        """
        with self._lock:
            self._started = True
            bound, self._bound = self._bound, []
        for listener, _ in bound:
            listener.close()
        if grace is None:
            self._end(0)
        else:
            threading.Thread(target=self._end, args=(grace,), name="server-stop").start()
            for each in self._serving:
                each.draining.wait(_DRAIN_S)
        return self._ended

    def wait_for_termination(self, timeout: float | None = None) -> bool:
        """Blocks until the server has ended; returns True where the time was up first."""
        return not self._ended.wait(timeout)

    def _bind(self, address: str, tls: ServerTls | None) -> int:
        try:
            at = option_types.address(address, 0)
            both, reuse, family = at[0] == "::", self._limits.shares_port, option_types.family_of(at[0])
            listener = socket.create_server(at, family=family, backlog=BACKLOG, reuse_port=reuse, dualstack_ipv6=both)
        except (OSError, ArgumentTypeError) as error:
            raise RuntimeError(f"Failed to bind to address {address}: {error}") from error
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)  # accepted sockets inherit it
        with self._lock:
            self._bound.append((listener, tls))
        return int(listener.getsockname()[1])

    def _end(self, grace_s: float) -> None:
        """Stops the servers of all ports at once; without a grace in turn, since a program that ends has no threads."""
        stopping = [threading.Thread(target=each.stop, args=(grace_s,)) for each in self._serving if grace_s]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        for each in self._serving:
            each.stop(0)
        self._ended.set()

    def _watch(self) -> None:
        """Ends the server with its program: the main thread's end, as after an interrupt, leaves nobody to do it."""
        while not self._ended.wait(_WATCH_S):
            if not threading.main_thread().is_alive():
                self.stop(None)


def server(
    thread_pool: ThreadPoolExecutor,
    handlers: Sequence[grpc.GenericRpcHandler] | None = None,
    interceptors: Sequence[grpc.ServerInterceptor] | None = None,
    options: Sequence[tuple[str, Any]] | None = None,
    maximum_concurrent_rpcs: int | None = None,
    compression: grpc.Compression | None = None,
    limits: ServeOptions = LIMITS,
) -> Server:
    """A server like ``grpc.server``'s. Raises ValueError, by its name, for what it does not keep.

    ``limits`` has the core's further limits, and metrics, which count refusals and waits, and no requests by method.
    """
    for name in ("timeline", "access", "listener", "tls"):
        if getattr(limits, name) is not None:
            raise ValueError(f"limits.{name}: not kept by a server of servicers")
    for name, value in options or ():
        if name in _KEPT and (type(value) is not int or not 1 <= value <= _MOST):
            raise ValueError(f"{name}: got {value!r}, allowed: 1 to {_MOST}")
        if name in _KEPT:
            limit, unit = _KEPT[name]
            limits = replace(limits, **{limit: value * unit})
        elif name == _REUSE and value in (0, 1):
            limits = replace(limits, shares_port=bool(value))
        else:
            raise ValueError(f"{name}={value!r}: not kept, allowed: {', '.join((*_KEPT, _REUSE))}")
    pool = GivenPool(thread_pool, maximum_concurrent_rpcs or limits.requests_max)
    made = Server(pool, Handlers(interceptors or ()), kept(compression), limits)
    made.add_generic_rpc_handlers(handlers or ())
    return made
