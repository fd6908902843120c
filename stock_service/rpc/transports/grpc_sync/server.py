"""The server of the gRPC transport: grpcio's thread-based one.

It answers any generated client, offers the standard health service and reflection, and decodes inside the
handler, so that undecodable bytes are INVALID_ARGUMENT (grpcio's generated code would say INTERNAL).

``requests_max`` becomes grpcio's ``maximum_concurrent_rpcs``: one more is RESOURCE_EXHAUSTED. ``connections_max``,
``idle_s``, ``frame_bytes_max`` and ``pipeline_max`` (streams of one connection) are gRPC core's own limits.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

import grpc
from grpc import _server as grpcio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.concurrency.submit import Submitting
from stock_service.rpc.concurrency.thread_pool import ThreadPool
from stock_service.rpc.descriptors import Descriptors
from stock_service.rpc.errors import Fault, FaultCode
from stock_service.rpc.grpcio.draining import LAST_S, drain
from stock_service.rpc.grpcio.serving import (
    CANCEL_S,
    FAILED,
    STATUS,
    call_of,
    check_free,
    core_options,
    quieten,
)
from stock_service.rpc.service import Answer, Method, Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.transports.grpc_sync.reflections import Reflections

_log = logging.getLogger(__name__)


class GrpcServer:
    """A server that is listening; see ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        check_free(options.host, options.port, options.shares_port)
        quieten()
        pool = executor.pool if isinstance(executor, ThreadPool) else Submitting(executor)
        timeline = options.timeline
        if timeline is not None:
            pool = _Stamping(pool, timeline)
        self._reflections = Reflections()
        self._last: set[Any] | None = None
        limits = core_options(
            options.frame_bytes_max,
            options.pipeline_max,
            options.idle_s,
            options.connections_max,
            options.shares_port,
        )
        self._server = grpc.server(pool, options=limits, maximum_concurrent_rpcs=options.requests_max)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(
                _behaviour(method) if timeline is None else _stamped(_behaviour(method), timeline, path)
            )
            for path, method in service.methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        self._server.add_registered_method_handlers(service.name, handlers)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for name in ("", service.name):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflected = (service.name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflecting = reflection.ReflectionServicer(reflected, pool=Descriptors())
        reflecting.ServerReflectionInfo = self._reflections.own(reflecting.ServerReflectionInfo)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflecting, self._server)
        try:
            port = self._server.add_insecure_port(f"{options.host}:{options.port}")
        except RuntimeError as error:  # which does not say why
            check_free(options.host, options.port, options.shares_port)
            raise OSError(f"cannot listen on {options.host}:{options.port}") from error
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
        known = self._server._state  # type: ignore[attr-defined]
        with known.lock:
            known.thread_pool = _Refusing()
            self._last = set(known.rpc_states)

    def _under_way(self) -> set[Any]:
        """Calls whose reply is not sent; of them, once calls are refused, those from before that.

        Left out are those that may never end: watches, which are ended here, reflections, and calls for whose message
        a worker waits. Of a call that no worker has, nobody knows whether its message is there: it counts.
        """
        _end_watches(self._health)
        known = self._server._state  # type: ignore[attr-defined]
        with known.lock:
            calls: set[Any] = known.rpc_states - self._reflections.open.keys()
        calls = {call for call in calls if grpcio._RECEIVE_MESSAGE_TOKEN not in call.due}
        return calls if self._last is None else calls & self._last


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


def _stamped(behaviour: Behaviour, timeline: Timeline, path: str) -> Behaviour:
    """The same, noting in a timeline that its reply is there, or its fault."""
    local, number = timeline.local, timeline.method_number(path)

    def answer_stamped(payload: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return behaviour(payload, context)
        finally:
            local.stamper.handled(number)

    return answer_stamped


P = ParamSpec("P")
T = TypeVar("T")


class _Stamping(ThreadPoolExecutor):
    """An executor as grpcio uses it, noting in a timeline when it gave a call to it, and when that began and ended.

    Of a call that is none of the service's, health and reflection, nothing is kept. Owns no thread, as ``Submitting``.
    """

    def __init__(self, pool: ThreadPoolExecutor, timeline: Timeline) -> None:
        super().__init__(max_workers=1)
        self._pool = pool
        self._local = timeline.local
        self._now_ns = timeline.now_ns

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._pool.submit(self._call, self._now_ns(), partial(fn, *args, **kwargs))

    def _call(self, accepted_ns: int, function: Callable[[], T]) -> T:
        stamper = self._local.stamper
        stamper.begin(accepted_ns)
        try:
            return function()
        finally:
            if stamper.handled_ns:
                stamper.end()


class _Refusing(ThreadPoolExecutor):
    """What grpcio has for its executor once the server is stopping: it refuses each call by name. Starts no thread."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Ends a call that grpcio gives away. Never raises, as in ``Submitting``."""
        _, event, state, *_ = cast(tuple[Any, ...], args)
        with state.condition:
            grpcio._abort(state, event.call, int(FaultCode.UNAVAILABLE), b"the server is stopping")
        refused: Future[T] = Future()
        refused.cancel()
        return refused
