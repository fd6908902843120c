"""The server of the gRPC transport: grpcio's thread-based one, by its public names alone.

It answers any generated client, and offers the standard health service and reflection. ``calls.py`` is its thread pool,
``handlers.py`` has the service's methods.

``requests_max`` is grpcio's own ``maximum_concurrent_rpcs``: a call over it is RESOURCE_EXHAUSTED at its headers.
``connections_max``, ``idle_timeout_s``, ``frame_bytes_max`` and ``pipeline_max`` (of one connection) are gRPC core's.
A call has a thread from its headers on, though its message may be late: see ``rpc/grpcio/README.md``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from stock_service.rpc.concurrency import Executor, Task
from stock_service.rpc.descriptors import Descriptors
from stock_service.rpc.grpcio.draining import LAST_S, drain
from stock_service.rpc.grpcio.securing import REFLECTION, add_port, checks_of
from stock_service.rpc.grpcio.serving import CANCEL_S, check_free, core_options, quieten
from stock_service.rpc.health import Health, response
from stock_service.rpc.service import Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.grpc_sync.calls import CallPool
from stock_service.rpc.transports.grpc_sync.handlers import Handlers, checked
from stock_service.rpc.transports.grpc_sync.reflections import Reflections


class GrpcServer:
    """A server that is listening; see ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, delay_target_ms: float, options: ServeOptions) -> None:
        check_free(options.host, options.port, options.shares_port)
        quieten()
        timeline = options.timeline
        noting = timeline is not None or options.metrics is not None
        self._pool = CallPool(executor.execute, None if noting else getattr(executor, "submit", None))
        if timeline is not None:
            self._pool.give = _stamping(self._pool.give, timeline)
        if options.metrics is not None:
            self._pool.give = options.metrics.waited(self._pool.give)
        self._reflections = Reflections()
        self._handlers = Handlers(self._pool.arrival, delay_target_ms, options.metrics, timeline)
        limits = core_options(
            options.frame_bytes_max,
            options.pipeline_max,
            options.idle_timeout_s,
            options.connections_max,
            options.shares_port,
        )
        self._server = grpc.server(
            self._pool,  # type: ignore[arg-type]  # of a ThreadPoolExecutor it uses what every Executor has
            options=limits,
            maximum_concurrent_rpcs=options.requests_max,
        )
        checks = checks_of(options.access, service)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(self._handlers.behaviour(path, method, checks))
            for path, method in service.methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        self._server.add_registered_method_handlers(service.name, handlers)
        self._health = _Health(service.health or Health(service.name))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflected = (service.name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflecting = reflection.ReflectionServicer(reflected, pool=Descriptors())
        if checks is not None:
            reflecting.ServerReflectionInfo = checked(reflecting.ServerReflectionInfo, checks, REFLECTION)
        reflecting.ServerReflectionInfo = self._reflections.own(reflecting.ServerReflectionInfo)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflecting, self._server)
        port = add_port(self._server, (options.host, options.port), options.tls, options.shares_port)
        self.address: Address = (options.host, port)
        self._server.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``."""
        self._health.end()
        drained = drain(self.address[1], self._under_way, self._pool.refuse, grace_s)
        ended = self._server.stop(LAST_S if drained else 0).wait(LAST_S + CANCEL_S)
        self._reflections.shutdown(wait=False)
        self._pool.shutdown(wait=False)
        return drained and ended

    def _under_way(self) -> int:
        """Calls that wait for a thread, and those begun whose reply has not left; no watch, no reflection."""
        return len(self._pool.waiting) + len(self._handlers.under_way)


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # which has no types
    """The standard health service. A watch is told the status at once, and that it ends."""

    def __init__(self, served: Health) -> None:
        self._served = served
        self._watches: dict[Callable[[Any], None], Any] = {}  # each with its last word

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802  # gRPC's name
        """The status of a service by its name; NOT_FOUND for others."""
        if not self._served.knows(request.service):
            context.abort(grpc.StatusCode.NOT_FOUND, "no service of that name")
        return response(self._served.serving())

    def Watch(self, request: Any, context: grpc.ServicerContext, send: Callable[[Any], None]) -> None:  # noqa: N802
        """The status now, and again at the end. The call has a thread for no longer than this takes."""
        last = response(False)
        if self._served.knows(request.service):
            send(response(self._served.serving()))
        else:
            last.status = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            send(last)
        self._watches[send] = last
        context.add_callback(partial(self._watches.pop, send, None))
        if self._served.stopping:
            self.end()

    Watch.experimental_non_blocking = True  # type: ignore[attr-defined]  # so grpcio gives ``send``, and awaits no reply

    def end(self) -> None:
        """From now on nothing is served; ends every watch. gRPC core keeps a last word that is not taken."""
        self._served.stopping = True
        while self._watches:
            try:
                send, last = self._watches.popitem()
            except KeyError:
                return  # another thread has ended it
            send(last)
            send(None)


def _stamping(execute: Callable[[Task], None], timeline: Timeline) -> Callable[[Task], None]:
    """The same, noting in a timeline when a call's message was there, and when a thread began and ended with it.

    Of a call that is none of the service's, such as health's, nothing is kept.
    """
    local, now_ns = timeline.local, timeline.now_ns

    def run(accepted_ns: int, task: Task) -> None:
        stamper = local.stamper
        stamper.begin(accepted_ns)
        try:
            task()
        finally:
            if stamper.handled_ns:
                stamper.end()

    return lambda task: execute(partial(run, now_ns(), task))
