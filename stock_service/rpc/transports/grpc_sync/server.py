"""The server of the gRPC transport: grpcio's thread-based one.

It answers any generated client, offers the standard health service and reflection, and decodes inside the
handler, so that undecodable bytes are INVALID_ARGUMENT (grpcio's generated code would say INTERNAL).

A call that finds no room in the executor is RESOURCE_EXHAUSTED; ``requests_max`` is the executor's own limit.
``connections_max``, ``idle_s``, ``frame_bytes_max`` and ``pipeline_max`` (streams of one connection) are gRPC core's.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from stock_service.rpc.concurrency import Executor, Task
from stock_service.rpc.descriptors import Descriptors
from stock_service.rpc.errors import Fault
from stock_service.rpc.grpcio.draining import LAST_S, drain
from stock_service.rpc.grpcio.securing import REFLECTION, Checks, add_port, checks_of
from stock_service.rpc.grpcio.serving import (
    CANCEL_S,
    FAILED,
    STATUS,
    call_of,
    check_free,
    core_options,
    quieten,
)
from stock_service.rpc.health import Health, response
from stock_service.rpc.service import Answer, Method, Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.grpc_sync.arriving import Arriving
from stock_service.rpc.transports.grpc_sync.reflections import Reflections

_log = logging.getLogger(__name__)

T = TypeVar("T")


class GrpcServer:
    """A server that is listening; see ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        check_free(options.host, options.port, options.shares_port)
        quieten()
        timeline = options.timeline
        execute = executor.execute if timeline is None else _stamping(executor.execute, timeline)
        if options.metrics is not None:
            execute = options.metrics.waited(execute)
        self._arriving = Arriving(execute)
        self._reflections = Reflections()
        self._last: set[Any] | None = None
        limits = core_options(
            options.frame_bytes_max,
            options.pipeline_max,
            options.idle_s,
            options.connections_max,
            options.shares_port,
        )
        self._server = grpc.server(self._arriving, options=limits)
        checks = checks_of(options.access, service)

        def behaviour_of(path: str, method: Method[Any, Any]) -> Behaviour:
            behaviour = _behaviour(method)
            if checks is not None:
                behaviour = _checked(behaviour, checks, path.encode())
            return behaviour if timeline is None else _stamped(behaviour, timeline, path)

        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(behaviour_of(path, method))
            for path, method in service.methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        self._server.add_registered_method_handlers(service.name, handlers)
        self._health = _Checked(service.health or Health(service.name))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for name in ("", service.name):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflected = (service.name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflecting = reflection.ReflectionServicer(reflected, pool=Descriptors())
        if checks is not None:
            reflecting.ServerReflectionInfo = _checked(reflecting.ServerReflectionInfo, checks, REFLECTION)
        reflecting.ServerReflectionInfo = self._reflections.own(reflecting.ServerReflectionInfo)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflecting, self._server)
        port = add_port(self._server, (options.host, options.port), options.tls, options.shares_port)
        self.address: Address = (options.host, port)
        self._server.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``."""
        self._health.enter_graceful_shutdown()
        drained = drain(self.address[1], lambda: len(self._under_way()), self._refuse, grace_s)
        ended = self._server.stop(LAST_S if drained else 0).wait(LAST_S + CANCEL_S)
        self._reflections.shutdown(wait=False)
        return drained and ended

    def _refuse(self) -> None:
        """From now on every call is refused; those under way are finished."""
        self._arriving.refuse()
        self._last = self._under_way()

    def _under_way(self) -> set[Any]:
        """Calls whose message is there and whose reply is not sent; of them, once calls are refused, those before that.

        Watches are ended, and reflections not counted: they have no end of their own.
        """
        _end_watches(self._health)
        known = self._server._state  # type: ignore[attr-defined]
        with known.lock:
            calls: set[Any] = known.rpc_states - self._arriving.waiting.keys() - self._reflections.open.keys()
        return calls if self._last is None else calls & self._last


class _Checked(health.HealthServicer):  # type: ignore[misc]  # which has no types
    """grpcio's, whose Check asks whether the server serves. Its Watch says what it is told of: the stop."""

    def __init__(self, served: Health) -> None:
        super().__init__()
        self._served = served

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's name
        """The status of a service by its name; NOT_FOUND for others."""
        if self._served.knows(request.service) and not self._served.serving():
            return response(False)
        return super().Check(request, context)


def _end_watches(servicer: health.HealthServicer) -> None:
    """Ends every call that watches the health: it has no end of its own, and the stop would wait for it."""
    with servicer._lock:
        watches = [send for sends in servicer._send_response_callbacks.values() for send in sends]
    for send in watches:
        send(None)


Behaviour = Callable[[bytes, grpc.ServicerContext], bytes]
"""A method as grpcio calls it."""


def _behaviour(method: Method[Any, Any]) -> Behaviour:
    """A method as grpcio calls it; one that wants no call costs nothing of what makes one."""
    if not method.wants_call:
        return partial(_answer, method.answer())
    answer_call = method.answer_call()

    def answer(payload: bytes, context: grpc.ServicerContext) -> bytes:
        return _answer(lambda payload: answer_call(call_of(payload, context)), payload, context)

    return answer


def _answer(answer: Answer, payload: bytes, context: grpc.ServicerContext) -> bytes:
    """A method's answer, its faults as grpcio's statuses."""
    try:
        return answer(payload)
    except Fault as fault:
        context.abort(STATUS[fault.code], fault.detail)
    except BaseException:  # SystemExit too: every request gets its reply
        _log.exception("a handler raised")
        context.abort(grpc.StatusCode.INTERNAL, FAILED)


def _checked(behaviour: Callable[..., T], checks: Checks, path: bytes) -> Callable[..., T]:
    """The same, for those alone who may ask for it."""

    def checked(request: Any, context: grpc.ServicerContext) -> T:
        try:
            checks.check(path, context)  # type: ignore[arg-type]  # what it knows are lists of bytes
        except Fault as fault:
            context.abort(STATUS[fault.code], fault.detail)
        return behaviour(request, context)

    return checked


def _stamped(behaviour: Behaviour, timeline: Timeline, path: str) -> Behaviour:
    """The same, noting in a timeline that its reply is there, or its fault."""
    local, number = timeline.local, timeline.method_number(path)

    def answer_stamped(payload: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return behaviour(payload, context)
        finally:
            local.stamper.handled(number)

    return answer_stamped


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
