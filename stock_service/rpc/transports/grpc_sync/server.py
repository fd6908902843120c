"""Server of the transport ``grpc``: grpcio's thread-based server, used only through grpcio's public names.

The server answers any generated client, and has the standard health service and server reflection. ``calls.py`` is the
server's thread pool. ``handlers.py`` makes the handlers of the service's methods.

The option ``requests_max`` becomes grpcio's ``maximum_concurrent_rpcs``: a call over this limit gets RESOURCE_EXHAUSTED
when its headers come. gRPC core itself keeps the limits ``connections_max``, ``idle_timeout_s``, ``frame_bytes_max``
and ``pipeline_max`` (calls of one connection). A call occupies a thread as soon as its headers have come, even if its
message has not come yet (``rpc/grpcio/README.md``).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import grpc

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.grpcio.draining import LAST_S, drain
from stock_service.rpc.grpcio.securing import Checks, add_port
from stock_service.rpc.grpcio.serving import (
    CANCEL_S,
    add_methods,
    behaviour_of,
    check_free,
    core_options,
    quieten,
    stamping,
)
from stock_service.rpc.health import CHECK, Health
from stock_service.rpc.service import Service
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.grpc_sync.calls import CallPool
from stock_service.rpc.transports.grpc_sync.handlers import Handlers, answered
from stock_service.rpc.transports.grpc_sync.reflections import Reflections


class GrpcServer:
    """Implementation of ``transports.Server`` on grpcio's thread-based server."""

    def __init__(self, service: Service, executor: Executor, delay_target_ms: float, options: ServeOptions) -> None:
        check_free(options)
        quieten()
        timeline, metrics = options.timeline, options.metrics
        noting = timeline is not None or metrics is not None
        self._pool = CallPool(executor.execute, None if noting else getattr(executor, "submit", None))
        if timeline is not None:
            self._pool.give = stamping(self._pool.give, timeline)
        if metrics is not None:
            self._pool.give = metrics.waited(self._pool.give)
        self._reflections = Reflections()
        self._handlers = Handlers(self._pool.arrival, delay_target_ms, metrics, timeline)
        self._server = grpc.server(
            self._pool,  # type: ignore[arg-type]  # grpcio uses only methods that every Executor has
            options=core_options(options),
            maximum_concurrent_rpcs=options.requests_max,
        )
        service = service.with_health()
        assert service.health is not None
        self._watches = _Watches(service.health)
        checks = Checks(options.access, service)
        handlers = {path: self._handlers.handler(path, method, checks) for path, method in service.methods.items()}
        handlers[CHECK] = partial(answered, behaviour_of(service.methods[CHECK]))  # never refused; a stop does not wait
        add_methods(self._server, handlers, self._watches.watch, self._reflections.own(checks.reflect))
        self.address: Address = (options.host, add_port(self._server, options))
        self._server.start()

    def stop(self, grace_s: float) -> bool:
        """Stops the server, as ``transports.Server.stop`` describes."""
        self._watches.end()
        drained = drain(self.address[1], self._under_way, self._pool.refuse, grace_s)
        ended = self._server.stop(LAST_S if drained else 0).wait(LAST_S + CANCEL_S)
        self._watches.close()
        self._reflections.shutdown(wait=False)
        self._pool.shutdown(wait=False)
        return drained and ended

    def _under_way(self) -> int:
        """Returns the number of calls that wait for a thread or have begun. Watches and reflection do not count."""
        return len(self._pool.waiting) + len(self._handlers.under_way)


class _Watches:
    """Open calls of the health service's Watch. A new watch gets the status at once. One thread sends each change of
    the status to all watches.

    A client that takes no bytes can block this thread. Then no other watch gets a change.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._open: dict[Callable[[Any], None], Any] = {}  # by ``send``: the watch's request, and the last status sent
        self._ending = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="grpc-health")
        self._thread.submit(int)  # starts the thread now, since the system may refuse a thread later
        health.tell(self._change)

    def watch(self, request: Any, context: grpc.ServicerContext, send: Callable[[Any], None]) -> None:
        """Handler of a watch: sends the status now, and registers the watch for changes. The call occupies a thread
        only during this function.
        """
        status = self._health.watched(request)
        send(status)
        self._open[send] = [request, status]
        if context.add_callback(partial(self._open.pop, send, None)):
            self._change(send)  # the status may have changed meanwhile
        else:
            self._open.pop(send, None)  # the client has left

    watch.experimental_non_blocking = True  # type: ignore[attr-defined]  # grpcio passes ``send``, awaits no reply

    def end(self) -> None:
        """Changes the status to NOT_SERVING. Makes the thread send this status to every watch, and then end every
        watch.
        """
        self._ending = True
        self._health.stop()

    def close(self) -> None:
        """Makes the thread send all remaining changes, and then end. Does not wait for the thread."""
        self._thread.shutdown(wait=False)

    def _change(self, *sends: Callable[[Any], None]) -> None:
        """Makes the thread send the status to the given watches, or to all watches if none is given."""
        with suppress(RuntimeError):  # the server has stopped
            self._thread.submit(self._tell, sends)

    def _tell(self, sends: tuple[Callable[[Any], None], ...]) -> None:
        """Sends the status to each watch whose last status was different. Runs on the watches' thread."""
        for send in sends or tuple(self._open):
            asked = self._open.get(send)
            if asked is None:  # the client has left
                continue
            request, told = asked
            asked[1] = status = self._health.watched(request)
            if status != told:
                send(status)
            if self._ending and self._open.pop(send, None) is not None:
                send(None)
