"""The gRPC transport on grpcio: its thread-based server and its blocking client.

The server answers any generated client, offers the standard health service and reflection, and decodes inside the
handler, so that undecodable bytes are INVALID_ARGUMENT (grpcio's generated code would say INTERNAL).

``requests_max`` becomes grpcio's ``maximum_concurrent_rpcs``: one more is RESOURCE_EXHAUSTED. ``connections_max``,
``idle_s``, ``frame_bytes_max`` and ``pipeline_max`` (streams of one connection) are gRPC core's own limits; ``read_s``
and ``dispatch`` mean nothing here.
"""

import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar, cast

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from stock_service.rpc.concurrency import Executor
from stock_service.rpc.concurrency.submit import Submitting
from stock_service.rpc.concurrency.thread_pool import ThreadPool
from stock_service.rpc.errors import Fault, FaultCode, Unavailable
from stock_service.rpc.service import Answer, Service
from stock_service.rpc.timeline import Timeline
from stock_service.rpc.transports import Address, ServeOptions
from stock_service.rpc.wire.grpc_status import status_fault

_log = logging.getLogger(__name__)

DEFAULT_PORT = 50051
DEFAULT_EXECUTOR = "thread-pool"

_STATUS = {code: next(status for status in grpc.StatusCode if status.value[0] == code) for code in FaultCode}

_READY = grpc.ChannelConnectivity.READY.value[0]
_UNREACHABLE = grpc.ChannelConnectivity.TRANSIENT_FAILURE.value[0]

_CANCEL_AFTER_S = 0.1
"""How long after the grace grpcio cancels calls, so that to end by then is told from being cancelled."""

_CANCEL_S = 1.0
"""How long grpcio gets to end the calls that it cancels after the grace."""


class GrpcServer:
    """A server that is listening; see ``transports.Server``."""

    def __init__(self, service: Service, executor: Executor, options: ServeOptions) -> None:
        with socket.create_server((options.host, options.port)):
            pass  # says what is wrong with an address, where gRPC core logs it and says no more than that it failed
        pool = executor.pool if isinstance(executor, ThreadPool) else Submitting(executor)
        timeline = options.timeline
        if timeline is not None:
            pool = _Stamping(pool, timeline)
        self._server = grpc.server(pool, options=_limits(options), maximum_concurrent_rpcs=options.requests_max)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(
                partial(_answer, answer) if timeline is None else _stamped(answer, timeline, path)
            )
            for path, answer in service.methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, handlers),))
        self._server.add_registered_method_handlers(service.name, handlers)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for name in ("", service.name):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflected = (service.name, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(reflected, self._server, _Descriptors())
        try:
            port = self._server.add_insecure_port(f"{options.host}:{options.port}")
        except RuntimeError as error:  # which does not say why; a socket of our own does
            socket.create_server((options.host, options.port)).close()
            raise OSError(f"cannot listen on {options.host}:{options.port}") from error
        self.address: Address = (options.host, port)
        self._server.start()

    def stop(self, grace_s: float) -> bool:
        """See ``transports.Server.stop``."""
        self._health.enter_graceful_shutdown()
        stopped = self._server.stop(grace_s + _CANCEL_AFTER_S)
        _end_watches(self._health)
        in_time = stopped.wait(grace_s)
        return in_time or (stopped.wait(_CANCEL_S) and False)


def _end_watches(servicer: health.HealthServicer) -> None:
    """Ends every call that watches the health: it has no end of its own, and the stop would wait for it."""
    with servicer._lock:
        watches = [send for sends in servicer._send_response_callbacks.values() for send in sends]
    for send in watches:
        send(None)


def serve(service: Service, executor: Executor, options: ServeOptions) -> GrpcServer:
    """A server that listens when this returns. Raises OSError where it cannot."""
    return GrpcServer(service, executor, options)


def _limits(options: ServeOptions) -> list[tuple[str, int]]:
    """Our limits in gRPC core's terms."""
    return [
        ("grpc.so_reuseport", 0),  # a port in use is an error, not a second server behind the same port
        ("grpc.max_receive_message_length", options.frame_bytes_max),
        ("grpc.max_concurrent_streams", options.pipeline_max),
        ("grpc.max_connection_idle_ms", int(options.idle_s * 1000)),
        ("grpc.max_allowed_incoming_connections", options.connections_max),
    ]


def _answer(answer: Answer, payload: bytes, context: grpc.ServicerContext) -> bytes:
    """A method as grpcio calls it."""
    try:
        return answer(payload)
    except Fault as fault:
        context.abort(_STATUS[fault.code], fault.detail)
    except BaseException:  # SystemExit too: every request gets its reply
        _log.exception("a handler raised")
        context.abort(grpc.StatusCode.INTERNAL, "the handler failed; the server's log says why")


def _stamped(answer: Answer, timeline: Timeline, path: str) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    """A method as grpcio calls it, noting in a timeline that its reply is there, or its fault."""
    local, number = timeline.local, timeline.method_number(path)

    def answer_stamped(payload: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return _answer(answer, payload, context)
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


class _Descriptors:
    """protobuf's descriptor pool as reflection uses it, which also finds a method.

    The pool itself knows services and messages by name but no methods, and ghz asks for just that.
    """

    def __init__(self) -> None:
        pool = descriptor_pool.Default()
        self._pool = pool
        self.FindFileByName = pool.FindFileByName
        self.FindMessageTypeByName = pool.FindMessageTypeByName
        self.FindExtensionByNumber = pool.FindExtensionByNumber
        self.FindAllExtensions = pool.FindAllExtensions

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802  # protobuf's name
        """The file that defines a symbol, or a service's method. Raises KeyError."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service_name, _, method = symbol.rpartition(".")
            service = self._pool.FindServiceByName(service_name)
            return service.methods_by_name[method].containing_service.file


class GrpcConnection:
    """See ``transports.Connection``. Made by ``connect``. Its channel is not shared with any other connection."""

    def __init__(self, address: Address) -> None:
        self._target = f"{address[0]}:{address[1]}"
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        self._channel = grpc.insecure_channel(self._target, options)
        self._calls: dict[str, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {}

    def open(self, timeout_s: float) -> None:
        """Waits until the channel is connected. Raises Unavailable.

        Asks the channel's core itself: ``channel_ready_future`` leaves a watch behind that keeps ``close`` waiting for
        up to 200 ms, and starts a thread for it.
        """
        core = self._channel._channel  # type: ignore[attr-defined]
        deadline_s = time.clock_gettime(time.CLOCK_REALTIME) + timeout_s  # the clock of gRPC core's deadlines
        while (state := core.check_connectivity_state(True)) != _READY:
            if state == _UNREACHABLE:
                self.close()
                raise Unavailable(f"no connection to {self._target}: it cannot be reached")
            if not core.watch_connectivity_state(state, deadline_s).success:
                self.close()
                raise Unavailable(f"no connection to {self._target} within {timeout_s:g} s")

    def call(self, path: str, payload: bytes, timeout_s: float) -> bytes:
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = self._channel.unary_unary(path)
        try:
            return call(payload, timeout_s)
        except grpc.RpcError as error:
            raise _fault(error, self._target) from error

    def close(self) -> None:
        self._channel.close()


def connect(address: Address, timeout_s: float) -> GrpcConnection:
    """A connection that is made when this returns. Blocks for ``timeout_s`` at most; raises Unavailable."""
    connection = GrpcConnection(address)
    connection.open(timeout_s)
    return connection


def _fault(error: grpc.RpcError, target: str) -> Fault:
    """grpcio's error as a fault of ours."""
    call = cast(grpc.Call, error)  # which is what the blocking client raises
    return status_fault(call.code().value[0], call.details() or "", target)
